package fakechain

import (
	"cmp"
	"slices"
)

// versions keeps what every block of the canonical branch has made of values, so that the past can be looked at without
// a copy.
type versions[K comparable, V any] struct {
	kept  map[K][]version[V] // ascending
	order []K                // in the order in which they were first written
}

type version[V any] struct {
	block uint64
	value V
}

func newVersions[K comparable, V any]() *versions[K, V] {
	return &versions[K, V]{kept: map[K][]version[V]{}}
}

// at returns a value as of a block of the canonical branch.
func (v *versions[K, V]) at(block uint64, key K) (value V, known bool) {
	all := v.kept[key]
	if n := len(all); n > 0 && all[n-1].block <= block {
		return all[n-1].value, true
	}
	n, found := slices.BinarySearchFunc(all, block,
		func(one version[V], block uint64) int { return cmp.Compare(one.block, block) })
	switch {
	case found:
		return all[n].value, true
	case n > 0:
		return all[n-1].value, true
	}
	return value, false
}

// put sets a value in the newest block, and reports whether it is the block's first word about it.
func (v *versions[K, V]) put(block uint64, key K, value V) (first bool) {
	all, known := v.kept[key]
	if n := len(all); n > 0 && all[n-1].block == block {
		all[n-1].value = value
		return false
	}
	if !known {
		v.order = append(v.order, key)
	}
	v.kept[key] = append(all, version[V]{block, value})
	return true
}

// pop takes the newest block's word about a value back, and returns it.
func (v *versions[K, V]) pop(key K) V {
	all := v.kept[key]
	last := all[len(all)-1].value
	v.kept[key] = all[:len(all)-1]
	return last
}

// writes is what one block has written: the keys, in order, and the values once the block has left the canonical
// branch.
type writes[K comparable, V any] struct {
	keys   []K
	orphan map[K]V
}

// leave moves the block's values out of the canonical ones.
func (w *writes[K, V]) leave(v *versions[K, V]) {
	w.orphan = make(map[K]V, len(w.keys))
	for _, key := range w.keys {
		w.orphan[key] = v.pop(key)
	}
}
