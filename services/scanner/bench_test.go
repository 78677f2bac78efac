package scanner

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/evm"
	"perpkeeper/services/devnet/evmnode"
)

// Publishing history: blocks and logs per second in ranges, against the same block by block, with a node at hand and
// one that takes 20 ms to answer. The node, the broker and the scanner share the machine. Run it by: go test -run '^$'
// -bench Backfill -benchtime 1x ./services/scanner.
func BenchmarkBackfill(b *testing.B) {
	for _, delay := range []uint64{0, 20} {
		for _, logsEvery := range []uint64{0, 10, 2} {
			for _, ranges := range []bool{true, false} {
				b.Run(fmt.Sprintf("delay=%dms/logs_every=%d/ranges=%t", delay, logsEvery, ranges), func(b *testing.B) {
					benchBackfill(b, delay, logsEvery, ranges)
				})
			}
		}
	}
}

func benchBackfill(b *testing.B, delayMS, logsEvery uint64, ranges bool) {
	const blocks = 600
	d := startDevnet(b)
	for n := range uint64(blocks) {
		if logsEvery > 0 && n%logsEvery == 0 {
			d.emit(0, orderCreated(byte(n)), marketUpdated(byte(n)), orderExecuted(byte(n)))
		}
		d.mine(1)
	}
	if delayMS > 0 {
		if err := d.Inject(evmnode.Fault{DelayMS: delayMS}); err != nil {
			b.Fatal(err)
		}
	}
	for range b.N {
		b.StopTimer()
		k := startKafka(b)
		cfg := testConfig(d, k.Addr())
		cfg.Chain.HedgeAfter = time.Second // one node under two names: asking it twice would only slow it down
		cfg.Scanner.Backfill.MaxRange = 64
		cfg.Scanner.Signers = nil
		if !ranges {
			cfg.Scanner.Backfill.MinBlocks = 1 << 30
		}
		metrics := NewMetrics(prometheus.NewRegistry())
		node, err := evm.Dial(b.Context(), cfg.Keeper.ChainID, cfg.Chain, zerolog.Nop(),
			evm.NewMetrics(prometheus.NewRegistry()))
		if err != nil {
			b.Fatal(err)
		}
		s := New(cfg, node, k.client, zerolog.Nop(), metrics)
		ctx, cancel := context.WithCancel(b.Context())
		var wg sync.WaitGroup
		b.StartTimer()
		began := time.Now()
		wg.Go(func() { _ = s.Run(ctx) })
		tick := time.NewTicker(time.Millisecond)
		for testutil.ToFloat64(metrics.block) < blocks {
			<-tick.C
		}
		seconds := time.Since(began).Seconds()
		b.StopTimer()
		tick.Stop()
		cancel()
		wg.Wait()
		node.Close()
		b.ReportMetric(blocks/seconds, "blocks/s")
		b.ReportMetric(testutil.ToFloat64(metrics.records.WithLabelValues("log"))/seconds, "logs/s")
	}
}
