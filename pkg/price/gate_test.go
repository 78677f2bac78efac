package price

import (
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
)

// at is a report of the first token: milliseconds after nowMs, from a minimum to a maximum.
func at(ms int64, low, high uint64) Report {
	return Report{Token: token(0), TimeMs: uint64(nowMs + ms), Min: chain.U64(low), Max: chain.U64(high)}
}

const nowMs = 1_800_000_000_000

func TestGates(t *testing.T) {
	gates := Gates{MaxAge: time.Second, MaxAhead: 500 * time.Millisecond, MaxSpread: 100}
	huge := at(0, 1, 1)
	huge.Max = chain.Pow10(60)
	for name, tt := range map[string]struct {
		r    Report
		want reason
	}{
		"good":              {at(0, 1000, 1000), ""},
		"just young enough": {at(-1000, 1000, 1000), ""},
		"too old":           {at(-1001, 1000, 1000), stale},
		"a little ahead":    {at(500, 1000, 1000), ""},
		"from the future":   {at(501, 1000, 1000), future},
		"the end of time": {Report{Token: token(0), TimeMs: 1<<64 - 1, Min: chain.U64(1), Max: chain.U64(1)},
			future},
		"spread at the bound": {at(0, 199, 201), ""},
		"spread above it":     {at(0, 19899, 20100), spread},
		"no price":            {at(0, 0, 1), invalid},
		"inverted":            {at(0, 2, 1), invalid},
		"absurd":              {huge, invalid},
		"no token":            {Report{TimeMs: nowMs, Min: chain.U64(1), Max: chain.U64(1)}, invalid},
		"no time":             {Report{Token: token(0), Min: chain.U64(1), Max: chain.U64(1)}, invalid},
	} {
		if got, err := gates.check(tt.r, nowMs, gates.MaxAge); got != tt.want || (err == nil) != (tt.want == "") {
			t.Errorf("%s: %q, %v; want %q", name, got, err, tt.want)
		}
	}
}

func TestApart(t *testing.T) {
	for _, tt := range []struct {
		a, b, points uint64
		want         bool
	}{{1200, 1000, 2000, false}, {1201, 1000, 2000, true}, {800, 1000, 2000, false}, {799, 1000, 2000, true},
		{1000, 1000, 1, false}} {
		if got := apart(at(0, tt.a, tt.a), at(0, tt.b, tt.b), tt.points); got != tt.want {
			t.Errorf("%+v: %t", tt, got)
		}
	}
}

func TestGatesAreChecked(t *testing.T) {
	if err := DefaultGates().Validate(); err != nil {
		t.Error(err)
	}
	for want, spoil := range map[string]func(*Gates){
		"max_deviation: 0 is not": func(g *Gates) { g.MaxDeviation = 0 },
	} {
		g := DefaultGates()
		spoil(&g)
		if err := g.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s…", err, want)
		}
	}
}

func TestElect(t *testing.T) {
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	live := func(since time.Duration) *liveness { return &liveness{last: ago(time.Second), since: ago(since)} }
	dead, never := &liveness{last: ago(6 * time.Second), since: ago(time.Hour)}, &liveness{}
	f := Failover{After: 5 * time.Second, ReturnAfter: 30 * time.Second}
	for name, tt := range map[string]struct {
		pulses       []*liveness
		serves, want int
	}{
		"the first lives":                    {[]*liveness{live(0), live(time.Hour)}, 0, 0},
		"the first is dead":                  {[]*liveness{dead, live(0)}, 0, 1},
		"the first two are dead":             {[]*liveness{dead, never, live(0)}, 0, 2},
		"nobody lives":                       {[]*liveness{dead, never, dead}, 2, 2},
		"the first is back, but not steady":  {[]*liveness{live(29 * time.Second), live(time.Hour)}, 1, 1},
		"the first is steady":                {[]*liveness{live(30 * time.Second), live(time.Hour)}, 1, 0},
		"the substitute is dead, any is it":  {[]*liveness{live(time.Second), dead}, 1, 0},
		"a less preferred one that is older": {[]*liveness{live(0), live(time.Hour), live(time.Hour)}, 1, 1},
	} {
		if got := f.elect(tt.pulses, []time.Duration{f.After, f.After, f.After}, tt.serves, now); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// A pause is a break if it is longer than the bound, and then the run begins anew.
func TestPulse(t *testing.T) {
	p, begin := &liveness{}, time.Now()
	for _, s := range []int{0, 4, 8, 14, 18} {
		p.passed(begin.Add(time.Duration(s)*time.Second), 5*time.Second)
	}
	if p.since != begin.Add(14*time.Second) || p.last != begin.Add(18*time.Second) {
		t.Errorf("since %s, last %s", p.since.Sub(begin), p.last.Sub(begin))
	}
}
