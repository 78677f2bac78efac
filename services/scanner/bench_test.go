package scanner

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/services/devnet/evmnode"
)

// Publishing history: blocks and logs per second in ranges, against the same block by block, with a node at hand and
// one that takes 20 ms to answer. The node, the broker and the scanner share the machine. Run it by: go test -run '^$'
// -bench 'Backfill$' -benchtime 1x ./services/scanner.
func BenchmarkBackfill(b *testing.B) {
	for _, delay := range []uint64{0, 20} {
		for _, logsEvery := range []uint64{0, 10, 2} {
			for _, ranges := range []bool{true, false} {
				b.Run(fmt.Sprintf("delay=%dms/logs_every=%d/ranges=%t", delay, logsEvery, ranges), func(b *testing.B) {
					benchBackfill(b, workload{blocks: 600, delayMS: delay, logsEvery: logsEvery}, ranges)
				})
			}
		}
	}
}

// Publishing history with signers, who have sent a transaction without logs in every two hundredth block, from a node
// that takes 20 ms to answer. Run it by: go test -run '^$' -bench BackfillWithSigners -benchtime 1x ./services/scanner.
func BenchmarkBackfillWithSigners(b *testing.B) {
	for _, logsEvery := range []uint64{0, 100} {
		b.Run(fmt.Sprintf("logs_every=%d", logsEvery), func(b *testing.B) {
			benchBackfill(b, workload{blocks: 6000, delayMS: 20, logsEvery: logsEvery, sentEvery: 200}, true)
		})
	}
}

// workload is a history: how long, how late its node answers, and what is in it.
type workload struct{ blocks, delayMS, logsEvery, sentEvery uint64 }

func benchBackfill(b *testing.B, w workload, ranges bool) {
	blocks := float64(w.blocks)
	d := startDevnet(b)
	for n := range w.blocks {
		if w.logsEvery > 0 && n%w.logsEvery == 0 {
			d.emit(0, orderCreated(byte(n)), marketUpdated(byte(n)), orderExecuted(byte(n)))
		}
		if w.sentEvery > 0 && n%w.sentEvery == 0 {
			d.send(2, chain.Address{0xdd}, nil)
		}
		d.mine(1)
	}
	if w.delayMS > 0 {
		if err := d.Inject(evmnode.Fault{DelayMS: w.delayMS}); err != nil {
			b.Fatal(err)
		}
	}
	for range b.N {
		b.StopTimer()
		k := startKafka(b)
		cfg := testConfig(d, k.Addr())
		cfg.Chain.HedgeAfter = time.Second // one node under two names: asking it twice would only slow it down
		if w.sentEvery == 0 {
			cfg.Scanner.Signers, cfg.Scanner.Backfill.MaxRange = nil, 64
		}
		if !ranges {
			cfg.Scanner.Backfill.MinBlocks = 1 << 30
		}
		metrics := newMetrics(prometheus.NewRegistry())
		node, err := evm.Dial(b.Context(), cfg.Keeper.ChainID, cfg.Chain, zerolog.Nop(),
			evm.NewMetrics(prometheus.NewRegistry()))
		if err != nil {
			b.Fatal(err)
		}
		s := New(cfg, node, k.client, zerolog.Nop(), metrics)
		ctx, cancel := context.WithCancel(b.Context())
		var wg sync.WaitGroup
		b.StartTimer()
		began, used := time.Now(), cpuTime(b)
		wg.Go(func() { _ = s.Run(ctx) })
		tick := time.NewTicker(time.Millisecond)
		for testutil.ToFloat64(metrics.block) < blocks {
			<-tick.C
		}
		seconds, cpu := time.Since(began).Seconds(), cpuTime(b)-used
		b.StopTimer()
		tick.Stop()
		cancel()
		wg.Wait()
		node.Close()
		b.ReportMetric(blocks/seconds, "blocks/s")
		b.ReportMetric(float64(cpu.Microseconds())/blocks, "CPU-µs/block") // the node's and the broker's too
		b.ReportMetric(testutil.ToFloat64(metrics.records.WithLabelValues("log"))/seconds, "logs/s")
	}
}

// cpuTime is what the process has used.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
