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

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/evm"
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

// workload is a history: how long, how late its node answers, and what is in it.
type workload struct{ blocks, delayMS, logsEvery uint64 }

func benchBackfill(b *testing.B, w workload, ranges bool) {
	blocks, logs := float64(w.blocks), 0.0
	d := startDevnet(b)
	for n := range w.blocks {
		if w.logsEvery > 0 && n%w.logsEvery == 0 {
			d.emit(0, orderCreated(byte(n)), marketUpdated(byte(n)), orderExecuted(byte(n)))
			logs += 3
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
		cfg.Scanner.Backfill.MaxRange = 64
		if !ranges {
			cfg.Scanner.Backfill.MaxRange = 1 << 40 // so much is never missing
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
		b.ReportMetric(logs/seconds, "logs/s")
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
