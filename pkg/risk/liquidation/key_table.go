package liquidation

import (
	"bytes"
	"hash/maphash"

	"perpkeeper/pkg/chain"
)

// keyTable finds the slot of a key. It holds handles only, four bytes each, and compares keys in the slab: a map of Go
// would hold every key again. Collisions go to the next free place; the seed is this process's own, so that nobody can
// make keys that collide.
type keyTable struct {
	places []handle // one more than the handle; 0 is none
	count  int
	seed   maphash.Seed
}

// leastPlaces is how many places the smallest table has; the number is always a power of two.
const leastPlaces = 16

func newKeyTable() keyTable {
	return keyTable{places: make([]handle, leastPlaces), seed: maphash.MakeSeed()}
}

// home is the place where a key is looked for first.
func (t *keyTable) home(key []byte) int {
	return int(maphash.Bytes(t.seed, key) & uint64(len(t.places)-1))
}

func (t *keyTable) after(place int) int { return (place + 1) & (len(t.places) - 1) }

// find returns the handle of a key, and its place, or the place where it would stand.
func (t *keyTable) find(s *slab, key []byte) (h handle, place int, known bool) {
	for place = t.home(key); t.places[place] != 0; place = t.after(place) {
		if h = t.places[place] - 1; bytes.Equal(s.record(h).key(), key) {
			return h, place, true
		}
	}
	return 0, place, false
}

// add enters the handle of a key that is not there.
func (t *keyTable) add(s *slab, h handle) {
	if 4*(t.count+1) > 3*len(t.places) {
		t.grow(s)
	}
	_, place, _ := t.find(s, s.record(h).key())
	t.places[place] = h + 1
	t.count++
}

func (t *keyTable) grow(s *slab) {
	old := t.places
	t.places = make([]handle, 2*len(old))
	for _, entered := range old {
		if entered == 0 {
			continue
		}
		place := t.home(s.record(entered - 1).key())
		for t.places[place] != 0 {
			place = t.after(place)
		}
		t.places[place] = entered
	}
}

// remove takes the handle at a place out, and moves up those behind it that stand further from home for its sake.
func (t *keyTable) remove(s *slab, place int) {
	t.count--
	hole, mask := place, len(t.places)-1
	for next := t.after(hole); t.places[next] != 0; next = t.after(next) {
		home := t.home(s.record(t.places[next] - 1).key())
		if (next-home)&mask >= (next-hole)&mask {
			t.places[hole], hole = t.places[next], next
		}
	}
	t.places[hole] = 0
}

func (t *keyTable) lookUp(s *slab, key chain.Hash) (handle, bool) {
	h, _, known := t.find(s, key[:])
	return h, known
}
