package price

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// lie is how a source's report differs from an honest one.
type lie struct {
	shiftMs           int64  // of the time it claims
	numerator, divide uint64 // of the price
	staleMs           int64  // how long ago its price was the market's
}

var lies = map[string]lie{
	"a little ahead":   {1900, 1, 1, 0},
	"ahead":            {4000, 1, 1, 0},
	"far ahead":        {55_000, 1, 1, 0},
	"a little behind":  {-4000, 1, 1, 4000},
	"behind":           {-50_000, 1, 1, 50_000},
	"too old":          {-70_000, 1, 1, 70_000},
	"an old price":     {0, 1, 1, 30_000},
	"ten times":        {0, 10, 1, 0},
	"a tenth":          {0, 1, 10, 0},
	"off by 5 %":       {0, 105, 100, 0},
	"off by 15 %":      {0, 85, 100, 0},
	"absurd and ahead": {55_000, 10, 1, 0},
	"absurd, behind":   {-50_000, 10, 1, 50_000},
	"nothing wrong":    {0, 1, 1, 0},
}

// market is a price that moves a little each second, and now and then crashes or jumps.
type market []uint64

func (m market) at(ms int64) uint64 { return m[max(ms/1000, 0)] }

// playLiar has sources report each second, one of which lies, for a while or for ever, always or one time in twenty,
// and calls check after each report and each election.
func playLiar(t *rapid.T, sources int, check func(now int64, honest []Report, source int, emitted []Report)) {
	const seconds = 100
	names := make([]string, 0, len(lies))
	for name := range lies {
		names = append(names, name)
	}
	liar, constant := rapid.IntRange(0, sources-1).Draw(t, "liar"), rapid.Bool().Draw(t, "constant")
	from, to := rapid.SampledFrom([]int64{0, 20_000}).Draw(t, "from"), rapid.SampledFrom([]int64{40_000, 200_000}).
		Draw(t, "to")
	how := lies[rapid.SampledFrom(names).Draw(t, "lie")]
	seed := rapid.Uint64().Draw(t, "seed")
	random := func(n uint64) uint64 { seed = seed*6364136223846793005 + 1442695040888963407; return seed >> 33 % n }
	m := market{1_000_000}
	for range seconds + 1 {
		next := m[len(m)-1] * (9970 + random(61)) / 10_000
		if random(40) == 0 {
			next = next * (60 + random(80)) / 100
		}
		m = append(m, next)
	}
	begin := time.UnixMilli(nowMs)
	b, _ := newDefaultArbiter(sources, begin)
	var honest []Report
	phases := make([]int64, sources)
	for i := range phases {
		phases[i] = int64(random(10)) * 100
	}
	for tick := int64(0); tick < seconds*1000; tick += 100 {
		now := begin.Add(time.Duration(tick) * time.Millisecond)
		if tick%600 == 0 {
			v, _ := b.elect(now)
			check(tick, honest, -1, v.emit)
		}
		for i := range sources {
			if tick%1000 != phases[i] {
				continue
			}
			price := m.at(tick) * (9990 + random(21)) / 10_000
			r := at(tick, price, price)
			if i == liar && tick >= from && tick < to && (constant || random(20) == 0) {
				price = m.at(tick-how.staleMs) * how.numerator / how.divide
				r = at(tick+how.shiftMs, price, price)
			}
			if i != liar {
				honest = append(honest, r)
			}
			check(tick, honest, i, b.observe(i, r, now).emit)
		}
	}
}

// confirmed reports whether an honest source reported about the same price for about that time or later.
func confirmed(r Report, honest []Report) bool {
	const around = 10 * time.Second
	for _, h := range honest {
		if !ahead(r.TimeMs, h.TimeMs, around) && !apart(r, h, DefaultGates().MaxDeviation) {
			return true
		}
	}
	return false
}

// With at most one liar among three sources the price that is accepted is always one that an honest source confirms,
// and never older than what two honest ones confirm by more than a source may be silent.
func TestOneLiarOfThreeDecidesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var newest, since int64
		playLiar(t, 3, func(now int64, honest []Report, source int, emitted []Report) {
			for _, r := range emitted {
				if !confirmed(r, honest) {
					t.Fatalf("%d ms: emitted %s of %d ms, after a report of source %d; honest ones reported %v", now,
						r.Min,
						int64(r.TimeMs)-nowMs, source, tail(honest))
				}
				newest, since = max(newest, int64(r.TimeMs)-nowMs), now
			}
			// failover.after 5 s, gates.max_ahead 2 s, the pace of reports and elections, and a jump that has to be
			// agreed on
			const most = 10_000
			if now-newest > most {
				t.Fatalf("%d ms: the newest that was emitted is of %d ms, since %d ms", now, newest, since)
			}
		})
	})
}

// With one liar of two sources nothing wrong is accepted; what they do not agree on waits.
func TestOneLiarOfTwoIsNotBelieved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		playLiar(t, 2, func(now int64, honest []Report, source int, emitted []Report) {
			for _, r := range emitted {
				if !confirmed(r, honest) {
					t.Fatalf("%d ms: emitted %s of %d ms, after a report of source %d; the honest one reported %v", now,
						r.Min,
						int64(r.TimeMs)-nowMs, source, tail(honest))
				}
			}
		})
	})
}

func tail(reports []Report) (out []string) {
	for _, r := range reports[max(0, len(reports)-12):] {
		out = append(out, r.Min.String())
	}
	return out
}
