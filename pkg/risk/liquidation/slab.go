package liquidation

import (
	"encoding/binary"

	"perpkeeper/pkg/chain"
)

// slab keeps packed positions in slots of fixed sizes, without a pointer in them: a planner has millions, and what
// holds no pointers costs the garbage collector nothing. Slots that become free are given again; memory is not.
type slab struct {
	classes [classes]class
}

// class is the slots of one size.
type class struct {
	chunks [][]byte
	used   uint32 // slots that were ever given
	free   []uint32
}

const (
	// sizeStep is the difference in size of two classes: half of it is lost on average.
	sizeStep  = 16
	classes   = 1 << classBits
	classBits = 6
	chunkBits = 8 // slots of a chunk, as a power of two
	slotBits  = 32 - classBits
)

// handle names a slot: its class in the upper bits, and with 26 bits one of 67 million. It is good until the slot is
// freed.
type handle uint32

func (h handle) class() int   { return int(h >> slotBits) }
func (h handle) slot() uint32 { return uint32(h) & (1<<slotBits - 1) }

func (c class) at(number int, slot uint32) []byte {
	size := (number + 1) * sizeStep
	begin := int(slot&(1<<chunkBits-1)) * size
	return c.chunks[slot>>chunkBits][begin : begin+size]
}

// record returns what is in a slot, with what the class is larger. It is the slab's own.
func (s *slab) record(h handle) record { return s.classes[h.class()].at(h.class(), h.slot()) }

// add keeps a copy of a record.
func (s *slab) add(r record) handle {
	number := (len(r) - 1) / sizeStep
	c := &s.classes[number]
	var slot uint32
	if last := len(c.free) - 1; last >= 0 {
		slot, c.free = c.free[last], c.free[:last]
	} else {
		slot = c.used
		c.used++
		if int(slot>>chunkBits) == len(c.chunks) {
			c.chunks = append(c.chunks, make([]byte, (number+1)*sizeStep<<chunkBits))
		}
	}
	copy(c.at(number, slot), r)
	return handle(uint32(number)<<slotBits | slot)
}

// remove frees a slot.
func (s *slab) remove(h handle) {
	s.record(h).setGroup(noGroup)
	c := &s.classes[h.class()]
	c.free = append(c.free, h.slot())
}

// walk yields the slots in use from one on, until yield returns false, and returns the first that was not yielded; none
// is left where the class is beyond the last.
func (s *slab) walk(from handle, yield func(handle, record) bool) (next handle, left bool) {
	number, slot := from.class(), from.slot()
	for ; number < classes; number, slot = number+1, 0 {
		for c := &s.classes[number]; slot < c.used; slot++ {
			h := handle(uint32(number)<<slotBits | slot)
			r := s.record(h)
			if r.group() != noGroup && !yield(h, r) {
				return h, true
			}
		}
	}
	return 0, false
}

// record is a packed position: key, account and group as they are, the numbers as pack writes them.
type record []byte

const (
	keyAt     = 0
	accountAt = keyAt + len(chain.Hash{})
	groupAt   = accountAt + len(chain.Address{})
	numbersAt = groupAt + 4
	noGroup   = ^uint32(0) // the slot is free
)

func (r record) key() []byte       { return r[keyAt:accountAt] }
func (r record) group() uint32     { return binary.LittleEndian.Uint32(r[groupAt:]) }
func (r record) setGroup(g uint32) { binary.LittleEndian.PutUint32(r[groupAt:], g) }
