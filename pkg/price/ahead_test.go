package price

import (
	"testing"
	"time"
)

// newDefaultArbiter returns an arbiter of so many sources under the default rules, and these rules.
func newDefaultArbiter(sources int, now time.Time) (*arbiter, *rules) {
	r := &rules{gates: DefaultGates(), failover: DefaultFailover()}
	for range sources {
		r.maxAge, r.after = append(r.maxAge, r.gates.MaxAge), append(r.after, r.failover.After)
	}
	return newArbiter(token(0), r, 0, now), r
}

// A report ahead of time is refused, and hides nothing of what it and others say in time.
func TestReportAheadSilencesNobody(t *testing.T) {
	now := time.UnixMilli(nowMs)
	b, _ := newDefaultArbiter(2, now)
	observe := func(from int, ahead time.Duration, price uint64) decision {
		return b.observe(from, at(now.Add(ahead).UnixMilli()-nowMs, price, price), now)
	}
	observe(0, 0, 100_000)
	observe(1, 0, 100_000)
	now = now.Add(time.Second)
	for _, ahead := range []time.Duration{2001 * time.Millisecond, 3 * time.Second, 55 * time.Second, time.Hour} {
		if v := observe(0, ahead, 100_000); len(v.emit) != 0 || len(v.refused) != 1 || v.refused[0].reason != future {
			t.Errorf("%s ahead: %+v", ahead, v)
		}
	}
	for i := range 54 { // the market falls by a quarter of a percent each second, and both sources say so, in time
		now = now.Add(time.Second)
		price := 100_000 - uint64(250*i)
		emitted := len(observe(0, 0, price).emit) + len(observe(1, 0, price).emit)
		if b.elect(now); emitted != 1 || b.serving != 0 {
			t.Fatalf("second %d: %d reports emitted, source %d serves", i, emitted, b.serving)
		}
	}
}

// Reports are judged by the chain's clock: this machine's may be wrong. Where it is the chain's that is behind, two
// sources that agree are right.
func TestReportsAreJudgedByTheChainsClock(t *testing.T) {
	for _, off := range []time.Duration{-time.Hour, time.Hour} {
		machine := time.UnixMilli(nowMs).Add(off)
		b, r := newDefaultArbiter(1, machine)
		if v := b.observe(0, at(0, 100, 100), machine); len(v.emit) != 0 {
			t.Errorf("off by %s, and no other clock: %+v", off, v)
		}
		r.clock = func(now time.Time) uint64 { return uint64(now.Add(-off).UnixMilli()) }
		if v := b.observe(0, at(0, 100, 100), machine); len(v.emit) != 1 {
			t.Errorf("off by %s: %+v", off, v)
		}
	}
	now := time.UnixMilli(nowMs)
	b, r := newDefaultArbiter(2, now)
	r.clock = func(now time.Time) uint64 { return uint64(now.Add(-10 * time.Second).UnixMilli()) }
	// source 0 serves, and source 1 bears it out from its first report on
	for i, want := range []int{0, 1, 1, 0, 1, 0} {
		now = now.Add(500 * time.Millisecond)
		v := b.observe(i%2, at(now.UnixMilli()-nowMs, 100, 100), now)
		if i > 1 && (len(v.refused) != 0 || len(v.emit) != (i+1)%2) {
			t.Errorf("report %d of sources that agree: %+v, want %d", i, v, want)
		}
	}
	lone, alone := newDefaultArbiter(1, now)
	alone.clock = r.clock
	if v := lone.observe(0, at(now.UnixMilli()-nowMs, 100, 100), now); len(v.refused) != 1 ||
		v.refused[0].reason != future {
		t.Errorf("a lone source ahead of the chain: %+v", v)
	}
}

// A source whose reports are in order and late gives its place to one whose reports are of now.
func TestSourceThatLagsIsReplaced(t *testing.T) {
	now := time.UnixMilli(nowMs)
	b, _ := newDefaultArbiter(2, now)
	var newest uint64
	for range 60 {
		now = now.Add(time.Second)
		ms := now.UnixMilli() - nowMs
		for from, behind := range []int64{50_000, 0} {
			for _, r := range b.observe(from, at(ms-behind, 100, 100), now).emit {
				newest = r.TimeMs
			}
		}
		v, _ := b.elect(now)
		for _, r := range v.emit {
			newest = r.TimeMs
		}
	}
	if b.serving != 1 || newest != uint64(now.UnixMilli()) {
		t.Errorf("source %d serves, and its newest report is %d ms old", b.serving, uint64(now.UnixMilli())-newest)
	}
}
