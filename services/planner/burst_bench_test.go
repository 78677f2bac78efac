package planner

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// The burst: of 50 000 positions 1000 become due with one tick.
const burstOpen, burstDue = 50_000, 1000

// burst is a planner with these positions and an hour-old calm price of $5000; the tick comes by the returned function.
// Of the due ones collateral is so little that $4500 takes it all, of each another amount; the others have plenty.
func burst(b *testing.B) (p *Planner, tick func(usd uint64)) {
	p, _ = brokered(b)
	p.cfg.Keeper.Signers = []chain.Address{{100}, {101}}
	p.finder.signers = p.cfg.signers()
	d := &fixture{finder: p.finder, quotes: p.quotes, at: nowMs}
	rows := make([]perp.Row, burstOpen)
	for i := range rows {
		var account chain.Address
		binary.BigEndian.PutUint32(account[:], uint32(i+1))
		collateral := uint64(3000)
		if i%(burstOpen/burstDue) == 0 {
			collateral = 1000
		}
		position := long(account, collateral)
		position.CollateralAmount = position.CollateralAmount.Add(chain.U64(uint64(i)))
		rows[i] = position
	}
	d.load(rows...)
	ms := uint64(nowMs)
	tick = func(usd uint64) {
		ms += 1000
		d.report(usdc, chain.Pow10(24), ms)
		d.report(eth, dollarsPerEther(usd), ms)
	}
	tick(5000)
	if err := p.tick(b.Context()); err != nil {
		b.Fatal(err)
	}
	return p, tick
}

// BenchmarkBurst measures from a tick that makes 1000 of 50 000 positions due: to the jobs found, born and in order,
// and beside it (written-ms) to the last of them standing on the topic of an embedded broker.
func BenchmarkBurst(b *testing.B) {
	p, tick := burst(b)
	var found, written time.Duration
	checked := false
	for b.Loop() {
		b.StopTimer()
		tick(5000)
		if err := p.tick(b.Context()); err != nil || len(p.live.all()) != 0 {
			b.Fatalf("%d jobs live after the recovery, %v", len(p.live.all()), err)
		}
		tick(4500)
		b.StartTimer()
		began := time.Now()
		tokens, _ := p.quotes.take()
		fresh, err := p.finder.findAll(b.Context(), maps.Keys(p.book.reached(tokens)), p.moment())
		if err != nil {
			b.Fatal(err)
		}
		p.live.order(fresh)
		found += time.Since(began)
		if err := p.publish(b.Context(), fresh); err != nil {
			b.Fatal(err)
		}
		written += time.Since(began)
		if !checked {
			checkBurst(b, fresh)
			checked = true
		}
	}
	b.ReportMetric(float64(found.Microseconds())/1000/float64(b.N), "found-ms")
	b.ReportMetric(float64(written.Microseconds())/1000/float64(b.N), "written-ms")
}

func checkBurst(b *testing.B, jobs []job.Job) {
	if len(jobs) != burstDue || !slices.IsSortedFunc(jobs, func(x, y job.Job) int { return x.Ratio.Cmp(y.Ratio) }) {
		b.Fatalf("%d jobs, sorted by ratio: %v", len(jobs),
			slices.IsSortedFunc(jobs, func(x, y job.Job) int { return x.Ratio.Cmp(y.Ratio) }))
	}
	for _, j := range jobs {
		if j.Kind != job.Liquidation || j.DueSinceMs != jobs[0].DueSinceMs {
			b.Fatalf("%+v", j)
		}
	}
}

// BenchmarkBurstAfterARestart measures the first pass of a planner that finds the 1000 due since 300 seconds of
// reports: the dearest walk back there is.
func BenchmarkBurstAfterARestart(b *testing.B) {
	p, tick := burst(b)
	for range longest + 10 {
		tick(4500)
	}
	for b.Loop() {
		p.finder.dueTimes.known, p.live.markets = map[string]run{}, map[chain.Address]map[string]job.Job{}
		fresh, err := p.finder.findAll(b.Context(), maps.Keys(p.finder.everywhere()), p.moment())
		if err != nil || len(fresh) != burstDue {
			b.Fatalf("%d jobs, %v", len(fresh), err)
		}
	}
}
