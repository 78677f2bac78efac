package liquidation

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is put, moved and removed, what is due is what a plain scan of a map says.
func TestLadderIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, twin := newLadder[int](), map[int]float64{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			member, price := rapid.IntRange(0, 9).Draw(t, "member"), float64(rapid.IntRange(-5, 5).Draw(t, "price"))
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				l.remove(member)
				delete(twin, member)
			case 1:
				var rungs []rung[int]
				for m, p := range twin {
					rungs = append(rungs, rung[int]{p, m})
				}
				l.fill(rungs)
			default:
				l.put(member, price)
				twin[member] = price
			}
			var got, want []int
			for _, r := range l.due(price) {
				got = append(got, r.member)
			}
			for m, p := range maps.All(twin) {
				if p >= price {
					want = append(want, m)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) || len(l.at) != len(twin) {
				t.Fatalf("due at %v: %v, want %v", price, got, want)
			}
		}
	})
}
