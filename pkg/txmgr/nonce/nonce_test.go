package nonce

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// S4, S13: nothing but a held number without a signature is ever released, and nothing returns from a signature.
func TestTransitions(t *testing.T) {
	states := []State{Held, Signed, Consumed, Released}
	want := map[State]map[State]bool{
		Held:     {Signed: true, Released: true},
		Signed:   {Consumed: true},
		Released: {Held: true, Signed: true},
		Consumed: {},
	}
	for _, from := range states {
		for _, to := range states {
			if got := from.To(to); got != want[from][to] {
				t.Errorf("%s to %s: %v", from, to, got)
			}
		}
	}
}

func drawCursor(t *rapid.T) Cursor {
	next := rapid.Uint64Range(0, 30).Draw(t, "next")
	var released []uint64
	for n := range next {
		if rapid.Bool().Draw(t, "released") {
			released = append(released, n)
		}
	}
	return Cursor{Next: next, Released: released}
}

// NON-6: gaps are reused lowest first, no number is promised twice, and a lease term starts at or above the chain.
func TestCursorPromisesEachNumberOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := drawCursor(t)
		latest := rapid.Uint64Range(0, 40).Draw(t, "latest")
		before := slices.Clone(stored.Released)
		c := Begin(stored, latest)
		if !slices.Equal(before, stored.Released) {
			t.Fatal("Begin changed its argument")
		}
		var given []uint64
		for range 40 {
			n := c.Promise()
			c = c.Taken(n)
			given = append(given, n)
		}
		if !slices.IsSorted(given) || len(slices.Compact(slices.Clone(given))) != len(given) {
			t.Fatalf("given %v", given)
		}
		for _, n := range given {
			if n < latest {
				t.Fatalf("%d is behind the chain's %d", n, latest)
			}
			if n < stored.Next && !slices.Contains(stored.Released, n) {
				t.Fatalf("%d was given before and never released", n)
			}
		}
		for _, gap := range stored.Released {
			if gap >= latest && !slices.Contains(given, gap) {
				t.Fatalf("gap %d was left behind", gap)
			}
		}
	})
}

func TestTakenRefusesWhatWasNotPromised(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a number out of turn was accepted")
		}
	}()
	Cursor{Next: 5}.Taken(6)
}
