package gmx

import (
	"encoding/binary"
	"fmt"
)

// itemKind is one of the seven kinds of items of an EventLogData, in its order, or an array of them.
type itemKind uint8

const (
	addressItem itemKind = iota
	uintItem
	intItem
	boolItem
	wordItem
	bytesItem
	textItem
	arrayOf // arrayOf+k is an array of kind k
)

const kinds = int(arrayOf)

var kindNames = [...]string{"address", "uint256", "int256", "bool", "bytes32", "bytes", "string"}

// String names the kind as the contracts do.
func (k itemKind) String() string {
	if k >= arrayOf {
		return kindNames[k-arrayOf] + "[]"
	}
	return kindNames[k]
}

// dynamic reports whether a single value of the kind lies behind an offset.
func (k itemKind) dynamic() bool { return k == bytesItem || k == textItem || k >= arrayOf }

// item is a named value that has been found and checked but not read: at is the place of its word or, where it is
// dynamic, of its length.
type item struct {
	name []byte
	at   int
	kind itemKind
}

// indexer finds the items of an event in one pass over its data, and accepts nothing but what the Solidity compiler
// writes: every part where the one before it ends, padding of zeros, nothing left over, no item twice. So every byte is
// looked at once, no two values share any, and reading an item afterwards cannot fail. The contracts' own encoder never
// writes anything else; data that deviates is damaged or not theirs.
//
// The first fault sticks.
type indexer struct {
	data  []byte
	at    int
	items []item
	seen  [4]uint64 // a filter over names: only two of one bit need comparing
	err   error
}

// indexItems returns the items of the data of an EventLog, (address msgSender, string eventName, EventLogData
// eventData), appended to into. Items without a name are slots the contract reserved and left empty: they are checked
// and left out.
func indexItems(data []byte, into []item) ([]item, error) {
	x := indexer{data: data, items: into[:0]}
	x.skip(3 * 32)
	x.checkWord(addressItem, 0)
	x.expect(0, 32)
	x.name()
	tuple := x.at
	x.expect(0, 64)
	x.skip(kinds * 32)
	for kind := range arrayOf {
		x.expect(tuple, tuple+32*int(kind))
		x.section(kind)
	}
	if x.err == nil && x.at != len(data) {
		x.failf("%d bytes follow the data's end at byte %d", len(data)-x.at, x.at)
	}
	return x.items, x.err
}

func (x *indexer) failf(format string, args ...any) {
	if x.err == nil {
		x.err = fmt.Errorf(format, args...)
	}
}

// skip moves past n bytes and returns where they begin.
func (x *indexer) skip(n int) int {
	at := x.at
	if n > len(x.data)-at {
		x.failf("the data ends at byte %d, before the %d bytes at %d", len(x.data), n, at)
		return at
	}
	x.at += n
	return at
}

// small reads a word below 2^32 at a place that was skipped.
func (x *indexer) small(at int) (v int, ok bool) {
	if x.err != nil {
		return 0, false
	}
	w := x.data[at : at+32]
	rest := binary.BigEndian.Uint64(w) | binary.BigEndian.Uint64(w[8:]) | binary.BigEndian.Uint64(w[16:]) | uint64(
		binary.BigEndian.Uint32(w[24:]))
	return int(binary.BigEndian.Uint32(w[28:])), rest == 0
}

// expect demands that the offset at head, counted from base, leads to the next part.
func (x *indexer) expect(base, head int) {
	if v, ok := x.small(head); !ok || v != x.at-base {
		x.failf("the offset at byte %d does not lead to the next part, at byte %d", head, x.at)
	}
}

// length reads the length word of an array whose elements take at least size bytes each.
func (x *indexer) length(size int) int {
	at := x.skip(32)
	n, ok := x.small(at)
	if !ok || n*size > len(x.data)-x.at {
		x.failf("the length at byte %d is more than what is left of the data", at)
		return 0
	}
	return n
}

// section indexes one struct XItems { XKeyValue[] items; XArrayKeyValue[] arrayItems; }.
func (x *indexer) section(kind itemKind) {
	section := x.skip(64)
	x.expect(section, section)
	x.pairs(kind)
	x.expect(section, section+32)
	x.pairs(arrayOf + kind)
}

// pairs indexes an array of struct { string key; value }.
func (x *indexer) pairs(kind itemKind) {
	n := x.length(32)
	offsets := x.skip(32 * n)
	for i := range n {
		if x.expect(offsets, offsets+32*i); x.err != nil {
			return
		}
		x.pair(kind)
	}
}

func (x *indexer) pair(kind itemKind) {
	pair := x.skip(64)
	x.expect(pair, pair)
	found := item{name: x.name(), kind: kind, at: pair + 32}
	if kind.dynamic() {
		x.expect(pair, pair+32)
		found.at = x.at
	}
	x.value(kind, found.at)
	if x.err == nil && len(found.name) > 0 {
		x.put(found)
	}
}

// value checks a value and moves past its tail.
func (x *indexer) value(kind itemKind, at int) {
	switch {
	case kind >= arrayOf:
		x.elements(kind - arrayOf)
	case kind.dynamic():
		x.name()
	default:
		x.checkWord(kind, at)
	}
}

func (x *indexer) elements(kind itemKind) {
	n := x.length(32)
	first := x.skip(32 * n)
	for i := range n {
		if x.err != nil {
			return
		}
		if kind.dynamic() {
			x.expect(first, first+32*i)
		}
		x.value(kind, first+32*i)
	}
}

// name moves past a string or byte string and returns what it holds.
func (x *indexer) name() []byte {
	n := x.length(1)
	at := x.skip((n + 31) / 32 * 32)
	if x.err != nil {
		return nil
	}
	for _, pad := range x.data[at+n : x.at] {
		if pad != 0 {
			x.failf("the %d bytes at byte %d are not padded with zeros", n, at)
			return nil
		}
	}
	return x.data[at : at+n]
}

// checkWord demands a word in the range of its kind.
func (x *indexer) checkWord(kind itemKind, at int) {
	if x.err != nil || kind != addressItem && kind != boolItem {
		return
	}
	w := x.data[at : at+32]
	high := binary.BigEndian.Uint64(w) | uint64(binary.BigEndian.Uint32(w[8:]))
	if kind == boolItem {
		high |= binary.BigEndian.Uint64(w[8:]) | binary.BigEndian.Uint64(w[16:]) | binary.BigEndian.Uint64(w[24:])&^1
	}
	if high != 0 {
		x.failf("the word at byte %d is no %s", at, kind)
	}
}

func (x *indexer) put(found item) {
	bit := nameBit(found.name)
	if x.seen[bit/64]&(1<<(bit%64)) != 0 && x.has(found.name) {
		x.failf("item %q appears twice", found.name)
		return
	}
	x.seen[bit/64] |= 1 << (bit % 64)
	x.items = append(x.items, found)
}

func (x *indexer) has(name []byte) bool {
	for i := range x.items {
		if string(x.items[i].name) == string(name) {
			return true
		}
	}
	return false
}

// nameBit is one of 256, by a name's length, its first and its last eight bytes.
func nameBit(name []byte) uint64 {
	var first, last [8]byte
	copy(first[:], name)
	copy(last[:], name[max(0, len(name)-8):])
	mixed := binary.BigEndian.Uint64(first[:])*0x9e3779b97f4a7c15 ^ binary.BigEndian.Uint64(
		last[:])*0xc2b2ae3d27d4eb4f ^ uint64(len(name))*0xff51afd7ed558ccd
	return (mixed ^ mixed>>29) * 0x9e3779b97f4a7c15 >> 56
}
