package priceindex

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

type member struct {
	slot Slot
	id   int
}

func (c *member) Slot() *Slot { return &c.slot }

// Whatever is put, moved and removed, what is due is what a plain scan of a map says.
func TestIndexIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Index[*member]
		members, twin := make([]member, 10), map[int]float64{}
		for range rapid.IntRange(0, 60).Draw(t, "steps") {
			id, price := rapid.IntRange(0, 9).Draw(t, "member"), float64(rapid.IntRange(-5, 5).Draw(t, "price"))
			members[id].id = id
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				l.Remove(&members[id])
				delete(twin, id)
			case 1:
				var all []*member
				for m := range twin {
					members[m].slot.Price = price + float64(m)
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
			if !slices.Equal(got, want) || len(l.entries) != len(twin) {
				t.Fatalf("due at %v: %v, want %v", price, got, want)
			}
		}
	})
}
