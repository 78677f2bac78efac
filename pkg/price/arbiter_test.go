package price

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func testRules(sources int) *rules {
	r := &rules{
		gates: Gates{MaxAge: 10 * time.Second, MaxAhead: 2 * time.Second, MaxSpread: 100, MaxJump: 1000,
			MaxDeviation: 100, Confirmations: 3},
		failover: Failover{After: 2 * time.Second, ReturnAfter: 5 * time.Second},
	}
	for range sources {
		r.maxAge, r.after = append(r.maxAge, r.gates.MaxAge), append(r.after, r.failover.After)
	}
	return r
}

// step is a report of a source: tenths of a second after the start, and a price. A negative source means that only the
// election is due.
type step struct {
	tenth int64
	from  int
	price uint64
}

// playSteps plays reports and returns what became of them, such as "100 jump(120) >1 120".
func playSteps(b *arbiter, steps []step) string {
	var out []string
	note := func(v decision, price uint64) {
		for _, r := range v.refused {
			out = append(out, fmt.Sprintf("%s(%d)", r.reason, price))
		}
		for range v.repeated {
			out = append(out, fmt.Sprintf("repeated(%d)", price))
		}
		for _, r := range v.emit {
			out = append(out, r.Min.String())
		}
	}
	for _, s := range steps {
		now := time.UnixMilli(nowMs + 100*s.tenth)
		v, changed := b.elect(now)
		if changed {
			out = append(out, fmt.Sprintf(">%d", b.serving))
		}
		note(v, 0)
		if s.from >= 0 {
			note(b.observe(s.from, at(100*s.tenth, s.price, s.price), now), s.price)
		}
	}
	return strings.Join(out, " ")
}

func TestArbiter(t *testing.T) {
	const nobody = -1
	//nolint:dupword // the wanted texts repeat words
	for name, tt := range map[string]struct {
		sources int
		steps   []step
		want    string
	}{
		"calm":                  {1, []step{{0, 0, 100}, {1, 0, 101}, {2, 0, 99}}, "100 101 99"},
		"the same moment twice": {1, []step{{0, 0, 100}, {0, 0, 101}}, "100 repeated(101)"},
		"a spike is refused":    {1, []step{{0, 0, 100}, {1, 0, 150}, {2, 0, 101}}, "100 jump(150) 101"},
		"a crash is confirmed": {1, []step{{0, 0, 100}, {1, 0, 70}, {2, 0, 71}, {3, 0, 69}},
			"100 jump(70) jump(71) 70 71 69"},
		"two spikes are no run": {1, []step{{0, 0, 100}, {1, 0, 150}, {2, 0, 50}, {3, 0, 150}, {4, 0, 100}},
			"100 jump(150) jump(50) jump(150) 100"},
		"a repeat confirms none": {1, []step{{0, 0, 100}, {1, 0, 70}, {1, 0, 70}, {1, 0, 70}},
			"100 jump(70) repeated(70) repeated(70)"},
		"a second source confirms by earlier reports": {2, []step{{0, 0, 100}, {0, 1, 100}, {1, 1, 70}, {2, 1, 70},
			{3, 1, 70}, {4, 0, 70}},
			"alone(100) 100 jump(70) jump(70) jump(70) 70"},
		"a second source confirms by a later report": {2, []step{{0, 0, 100}, {0, 1, 100}, {1, 0, 70}, {2, 1, 70}},
			"alone(100) 100 jump(70) 70"},
		"a report of long ago confirms nothing": {2, []step{{0, 0, 100}, {0, 1, 100}, {1, 0, 70}, {30, 1, 70}},
			"alone(100) 100 jump(70) jump(70)"},
		"two sources that disagree are both withheld": {2, []step{{0, 0, 100}, {0, 1, 105}, {1, 0, 101}, {2, 0, 102},
			{3, 0, 101}, {4, 0, 102}},
			"alone(100) deviation(105) deviation(101) deviation(102) deviation(101) deviation(102)"},
		"a dispute is not resolved by repeating": {2, []step{{0, 1, 105}, {1, 0, 100}, {2, 0, 100}, {3, 0, 101},
			{4, 0, 100}, {5, 1, 105}},
			"alone(105) deviation(100) deviation(100) deviation(101) deviation(100) deviation(105)"},
		"nor is a jump, while another gives reports": {2, []step{{0, 0, 100}, {0, 1, 100}, {1, 0, 1000}, {2, 0, 1000},
			{3, 0, 1000}, {4, 0, 1000}},
			"alone(100) 100 jump(1000) jump(1000) jump(1000) jump(1000)"},
		"it is resolved by agreeing, and the wrong ones of before are gone": {2, []step{
			{0, 0, 100}, {0, 1, 100}, {1, 0, 103}, {2, 1, 100}, {3, 0, 103}, {4, 1, 100}, {5, 1, 103}, {6, 0, 103}},
			"alone(100) 100 deviation(103) deviation(100) deviation(103) deviation(100) 103"},
		"it is resolved by one that falls silent": {2, []step{
			{0, 0, 100}, {0, 1, 100}, {1, 1, 105}, {2, 0, 100}, {12, 0, 100}, {22, 0, 101}, {23, 0, 102}},
			"alone(100) 100 deviation(105) deviation(100) deviation(100) 100 100 101 102"},
		"of three the one that lies first is outvoted": {3, []step{
			{0, 0, 1000}, {0, 1, 100}, {0, 2, 100}, {1, 0, 1000}, {2, 1, 100}, {3, 0, 1000}, {9, 2, 100}, {19, 1, 101},
			{20, nobody, 0}, {21, nobody, 0}, {22, 1, 100}},
			"alone(1000) deviation(100) deviation(1000) deviation(1000) >1 101 100"},
		"of three one is absurd once": {3, []step{{0, 0, 100}, {0, 1, 100}, {0, 2, 100}, {1, 0, 1000}, {2, 1, 100},
			{3, 0, 100}, {4, 0, 101}},
			"alone(100) 100 jump(1000) 100 101"},
		"the first is waited for no longer than a silent one": {2,
			[]step{{0, 0, 100}, {10, 0, 101}, {20, 0, 102}, {21, nobody, 0}, {22, 0, 101}},
			"alone(100) alone(101) alone(102) 101 102 101"},
		"the substitute does not serve while the first lives": {2,
			[]step{{0, 0, 100}, {1, 1, 100}, {2, 1, 101}, {20, nobody, 0}}, "alone(100) 100"},
		"it steps in with its newest report": {2, []step{{0, 1, 100}, {0, 0, 100}, {10, 1, 101}, {21, nobody, 0},
			{22, 1, 102}},
			"alone(100) 100 >1 101 102"},
		"it waits for the first at the start": {2, []step{{0, 1, 100}, {20, 1, 101}, {21, 1, 102}},
			"alone(100) alone(101) >1 101 102"},
		"it steps in for one that is gated": {2, []step{{0, 1, 100}, {0, 0, 100}, {10, 0, 150}, {15, 1, 100},
			{20, 0, 150}, {35, 1, 101}, {41, nobody, 0}},
			"alone(100) 100 jump(150) deviation(100) jump(150) deviation(101) >1 101"},
		"it steps in far away, and must confirm its jump": {2,
			[]step{{0, 0, 100}, {0, 1, 100}, {21, 1, 70}, {22, 1, 70},
				{23, 1, 70}, {24, 1, 70}, {25, 1, 70}, {26, 1, 70}},
			"alone(100) 100 jump(70) jump(70) >1 jump(70) jump(70) 70 70 70"},
		"the first comes back when it is steady": {2, []step{
			{0, 1, 100}, {0, 0, 100}, {15, 1, 100}, {25, 1, 101}, {30, 0, 102}, {40, 1, 101}, {45, 0, 102},
			{55, 1, 101}, {60, 0, 102}, {70, 1, 101},
			{75, 0, 102}, {79, nobody, 0}, {80, 0, 102}, {81, 0, 101},
		}, "alone(100) 100 >1 100 101 101 101 101 >0 102 102 101"},
	} {
		b := newArbiter(token(0), testRules(tt.sources), 0, time.UnixMilli(nowMs))
		if got := playSteps(b, tt.steps); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tt.want)
		}
	}
}

// Whatever sources report: what is emitted is newer than what was emitted before, comes from a source and passes the
// gates; and nothing is lost: each report is emitted, repeated, refused, or one of a source that does not serve.
func TestArbiterEmitsInOrderAndLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sources := rapid.IntRange(1, 3).Draw(t, "sources")
		rules := testRules(sources)
		b := newArbiter(token(0), rules, 0, time.UnixMilli(nowMs))
		observed := map[uint64]bool{}
		last, now := uint64(0), int64(nowMs)
		gates := rules.gates
		if sources > 1 {
			gates.MaxAhead = 20 * time.Second // where two are as far ahead, the clock is behind
		}
		received, accounted := 0, 0
		check := func(v decision) {
			for _, r := range v.emit {
				if reason, err := gates.check(r, uint64(now), 2*gates.MaxAge); reason != "" || r.TimeMs <= last ||
					!observed[r.TimeMs] {
					t.Fatalf("emitted %+v after %d: %v", r, last, err)
				}
				last = r.TimeMs
			}
			accounted += len(v.emit) - len(v.released) + v.repeated + len(v.refused)
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now += rapid.Int64Range(1, 3000).Draw(t, "pause")
			v, _ := b.elect(time.UnixMilli(now))
			check(v)
			price := rapid.SampledFrom([]uint64{0, 1000, 1005, 1100, 1300, 2000}).Draw(t, "price")
			r := at(now-nowMs-rapid.Int64Range(-11_000, 11_000).Draw(t, "age"), price,
				price+rapid.SampledFrom([]uint64{0, 1, 500}).Draw(t, "spread"))
			observed[r.TimeMs] = true
			v = b.observe(rapid.IntRange(0, sources-1).Draw(t, "source"), r, time.UnixMilli(now))
			received++
			check(v)
		}
		if sources == 1 && received != accounted {
			t.Fatalf("%d reports were received and %d accounted for", received, accounted)
		}
	})
}
