package txm

import (
	"testing"

	"perpkeeper/pkg/job"

	"pgregory.net/rapid"
)

// LIQ-14: from the quiet limit to the most there is in eight blocks that take what was sent, and back by halves.
func TestWindow(t *testing.T) {
	var w Window
	block := uint64(100)
	expect := func(what string, want int) {
		t.Helper()
		if got := w.Of(10, 74); got != want {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	expect("before anything was sent", 10)
	for i := range 8 {
		block++
		w = w.Observe(Taken{Block: block, Landed: 3, Waiting: 1})
		expect("a block that takes what was sent", 18+8*i)
		w = w.Observe(Taken{Block: block, Landed: 3, Waiting: 1})
		expect("another signer in the same block", 18+8*i)
	}
	w = w.Observe(Taken{Block: block + 1, Landed: 9, Waiting: 1})
	expect("all the way open", 74)
	w = w.Observe(Taken{Block: block + 2, Landed: 9, Waiting: windowFlow + 1})
	expect("it lands late", 74)
	w = w.Observe(Taken{Block: block + 3, Landed: 9, Waiting: windowStall})
	expect("it waits too long", 42)
	w = w.Observe(Taken{Block: block + 4, Waiting: windowStall + 1})
	expect("the same jam in the next block", 42)
	block += 3 + windowStall
	w = w.Observe(Taken{Block: block, Refused: true, Landed: 1})
	expect("refused when it had time to recover", 26)
	if got := w.Of(10, 10); got != 10 {
		t.Errorf("a limit that may not rise is %d", got)
	}
	if got := w.Of(10, 0); got != 10 {
		t.Errorf("a limit without a higher one is %d", got)
	}
}

// Whatever a chain shows, a limit stays between its quiet value and the most; no block raises it by more than a step;
// refusals alone bring it down to the quiet value; and blocks that take everything alone open it.
func TestWindowBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quiet := rapid.IntRange(1, 50).Draw(t, "quiet")
		most := rapid.IntRange(0, 1000).Draw(t, "most")
		var w Window
		block := rapid.Uint64Range(1, 1000).Draw(t, "block")
		for range rapid.IntRange(0, 60).Draw(t, "blocks") {
			block += rapid.Uint64Range(0, 3).Draw(t, "passed")
			before := w.Of(quiet, most)
			w = w.Observe(Taken{Block: block, Landed: rapid.Uint64Range(0, 3).Draw(t, "landed"),
				Waiting: rapid.Uint64Range(0, 9).Draw(t, "waiting"), Refused: rapid.Bool().Draw(t, "refused")})
			now := w.Of(quiet, most)
			if now < quiet || now > max(quiet, most) {
				t.Fatalf("%d is not between %d and %d", now, quiet, most)
			}
			if now-before > (max(0, most-quiet)+7)/8 {
				t.Fatalf("from %d to %d in one block", before, now)
			}
			if now < before && now-quiet > (before-quiet+1)/2 {
				t.Fatalf("cut from %d to %d, which is less than half of what is above %d", before, now, quiet)
			}
		}
		jammed, open := w, w
		for n := range uint64(200) {
			jammed = jammed.Observe(Taken{Block: block + n, Refused: true})
			open = open.Observe(Taken{Block: block + n, Landed: 1})
		}
		if jammed.Of(quiet, most) != quiet || open.Of(quiet, most) != max(quiet, most) {
			t.Fatalf("in the end %d and %d", jammed.Of(quiet, most), open.Of(quiet, most))
		}
	})
}

// The dumb twin gives out slots one after the other. What is less urgent never gets a kept one.
func TestPlacesAreKeptForTheUrgent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := Limits{Signer: rapid.IntRange(1, 20).Draw(t, "signer"), Reserved: rapid.IntRange(-2, 25).Draw(t, "kept")}
		open := 0
		for place := 1; place <= l.Signer; place++ {
			if place == 1 || place <= l.Signer-l.Reserved {
				open = place
			}
		}
		if got := l.Slots(job.LiquidationLane); got != l.Signer {
			t.Fatalf("liquidations have %d slots of %d", got, l.Signer)
		}
		if o, m := l.Slots(job.OrderLane), l.Slots(job.MaintenanceLane); o != min(open, l.Signer) || m != o {
			t.Fatalf("orders have %d slots and requests %d, want %d (%+v)", o, m, open, l)
		}
	})
}
