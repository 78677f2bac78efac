package ladder

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type climbing struct {
	place Foothold
	id    int
}

func (c *climbing) Foothold() *Foothold { return &c.place }

// Whatever is put, moved and removed, what is due is what a plain scan of a map says.
func TestLadderIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Ladder[*climbing]
		members, twin := make([]climbing, 10), map[int]float64{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			id, price := rapid.IntRange(0, 9).Draw(t, "member"), float64(rapid.IntRange(-5, 5).Draw(t, "price"))
			members[id].id = id
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				l.Remove(&members[id])
				delete(twin, id)
			case 1:
				var all []*climbing
				for m := range twin {
					members[m].place.Price = price + float64(m)
					twin[m] = price + float64(m)
					all = append(all, &members[m])
				}
				l.Fill(all)
			default:
				l.Put(&members[id], price)
				twin[id] = price
			}
			var got, want []int
			for _, r := range l.Due(price) {
				got = append(got, r.Member.id)
			}
			for m, p := range twin {
				if p >= price {
					want = append(want, m)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) || len(l.rungs) != len(twin) {
				t.Fatalf("due at %v: %v, want %v", price, got, want)
			}
		}
	})
}
