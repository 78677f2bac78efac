package price

import (
	"testing"
	"time"
)

// readAt is a report of the first token that was read on the chain: in a block, milliseconds after nowMs, where the
// price was written so long before that block.
func readAt(ms int64, before time.Duration, price uint64) Report {
	r := at(ms, price, price)
	r.Provider, r.RoundMs = token(8), r.TimeMs-uint64(before.Milliseconds())
	return r
}

// A price that is written to the chain once a day serves all day, at the times of the blocks it is read in, until it is
// older than its source may let it be.
func TestPriceWrittenLongAgoServes(t *testing.T) {
	now := time.UnixMilli(nowMs)
	b, r := newDefaultArbiter(1, now)
	r.maxAge[0] = 24 * time.Hour
	for second := range int64(60) {
		now = time.UnixMilli(nowMs + 1000*second)
		d := b.observe(0, readAt(1000*second, 20*time.Hour, 100), now)
		if len(d.emit) != 1 || d.emit[0].TimeMs != uint64(now.UnixMilli()) {
			t.Fatalf("second %d: %+v", second, d)
		}
	}
	now = now.Add(time.Second)
	d := b.observe(0, readAt(60_000, 24*time.Hour+time.Millisecond, 100), now)
	if len(d.refused) != 1 || d.refused[0].reason != stale {
		t.Errorf("older than its heartbeat: %+v", d)
	}
}

// A price that was written to the chain long ago is no word on the market of now, however new the block is that it is
// read in: it holds up no report of a source that sees the market fall.
func TestPriceWrittenLongAgoContradictsNobody(t *testing.T) {
	now := time.UnixMilli(nowMs)
	b, r := newDefaultArbiter(2, now)
	r.maxAge[1] = 24 * time.Hour
	observe := func(from int, report Report) decision { return b.observe(from, report, now) }
	observe(0, at(0, 100_000, 100_000))
	observe(1, readAt(0, time.Hour, 100_000))
	for second := int64(1); second <= 10; second++ {
		now = time.UnixMilli(nowMs + 1000*second)
		price := uint64(100_000 - 1000*second)
		d := observe(0, at(1000*second, price, price))
		if n := len(d.emit); n == 0 || d.emit[n-1].TimeMs != uint64(now.UnixMilli()) {
			t.Fatalf("second %d, at %d: %+v", second, price, d)
		}
		if d = observe(1, readAt(1000*second, time.Hour, 100_000)); len(d.emit) != 0 {
			t.Errorf("second %d: %+v", second, d)
		}
		if _, changed := b.elect(now); changed {
			t.Fatalf("second %d: source %d serves", second, b.serving)
		}
	}
}

// A round that says it was written after the block it was read in is of that block: one endpoint could make up such a
// round, and would be compared with nobody.
func TestPriceWrittenAheadOfItsBlockIsCompared(t *testing.T) {
	now := time.UnixMilli(nowMs)
	b, _ := newDefaultArbiter(2, now)
	b.observe(0, at(0, 100, 100), now)
	b.observe(1, readAt(0, 0, 100), now)
	now = now.Add(time.Second)
	b.observe(0, at(1000, 100, 100), now)
	if d := b.observe(1, readAt(1000, -time.Hour, 110), now); len(d.refused) != 1 || d.refused[0].reason != deviation {
		t.Errorf("a made-up round: %+v", d)
	}
	now = now.Add(time.Second)
	b.observe(1, readAt(2000, time.Second, 100), now)
	d := b.observe(0, at(2000, 100, 100), now)
	if n := len(d.emit); n == 0 || d.emit[n-1].TimeMs != uint64(now.UnixMilli()) {
		t.Errorf("afterwards: %+v", d)
	}
}
