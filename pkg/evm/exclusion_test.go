package evm

import (
	"testing"
	"time"
)

func TestExclusions(t *testing.T) {
	var x exclusions
	const cooldown = time.Minute
	if !x.add(ForReceipts, ReasonLied, "a", someTime, cooldown) ||
		x.add(ForReceipts, ReasonLied, "b", someTime, cooldown) {
		t.Error("the first is news, the second is not")
	}
	if x.usability(ForReceipts) != distrusted || x.usability(ForCalls) != good || x.usability(Everything) != good {
		t.Errorf("usability %d for receipts, %d for calls", x.usability(ForReceipts), x.usability(ForCalls))
	}
	x.add(Everything, ReasonStale, "", someTime, cooldown)
	if x.usability(ForCalls) != last || x.usability(ForReceipts) != distrusted {
		t.Error("everything is not for everything")
	}
	x.add(Everything, ReasonWrongChain, "", someTime, cooldown)
	if x.usability(ForReceipts) != foreign {
		t.Error("a foreign endpoint is good for something")
	}
	served := func(at time.Time) int {
		n := 0
		for _, e := range x.list {
			if e.served(at) {
				n++
			}
		}
		return n
	}
	if served(someTime.Add(cooldown-1)) != 0 || served(someTime.Add(cooldown)) != 1 {
		t.Error("the lie does not cool down in a minute, or what passes by itself does")
	}
	if got := x.lift(func(e Exclusion) bool { return e.Reason.passes() }); len(got) != 1 ||
		got[0].Reason != ReasonStale || len(x.list) != 2 {
		t.Errorf("lifted %+v, left %+v", got, x.list)
	}
}

// Who is caught again and again stays out longer each time, but not for ever.
func TestExclusionsDouble(t *testing.T) {
	var x exclusions
	now := someTime
	for i := range 10 {
		x.add(ForReceipts, ReasonLied, "", now, time.Minute)
		if want := time.Minute << min(i, longestDoubling); x.list[0].Until.Sub(now) != want {
			t.Errorf("time %d: out for %s, want %s", i+1, x.list[0].Until.Sub(now), want)
		}
		now = x.list[0].Until
		x.lift(func(Exclusion) bool { return true })
	}
}
