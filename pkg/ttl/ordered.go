package ttl

// ordered is an ordered set of entries: a binary heap in which every entry knows its slot, so that any of them is put
// in and taken out in O(log n).
type ordered[K comparable] struct {
	list   int // which slot of the entries belongs to this set
	before func(a, b *entry[K]) bool
	items  []*entry[K]
}

// min returns the first entry, or nil.
func (o *ordered[K]) min() *entry[K] {
	if len(o.items) == 0 {
		return nil
	}
	return o.items[0]
}

func (o *ordered[K]) add(e *entry[K]) {
	o.items = append(o.items, e)
	o.rise(len(o.items)-1, e)
}

func (o *ordered[K]) remove(e *entry[K]) {
	at, end := int(e.slots[o.list]), len(o.items)-1
	e.slots[o.list] = nowhere
	last := o.items[end]
	o.items[end] = nil
	o.items = o.items[:end]
	switch {
	case last == e:
	case at > 0 && o.before(last, o.items[(at-1)/2]):
		o.rise(at, last)
	default:
		o.sink(at, last)
	}
}

// rise puts an entry at a slot or above it.
func (o *ordered[K]) rise(at int, e *entry[K]) {
	for at > 0 {
		parent := (at - 1) / 2
		if !o.before(e, o.items[parent]) {
			break
		}
		o.put(at, o.items[parent])
		at = parent
	}
	o.put(at, e)
}

// sink puts an entry at a slot or below it.
func (o *ordered[K]) sink(at int, e *entry[K]) {
	for {
		child := 2*at + 1
		if child >= len(o.items) {
			break
		}
		if right := child + 1; right < len(o.items) && o.before(o.items[right], o.items[child]) {
			child = right
		}
		if !o.before(o.items[child], e) {
			break
		}
		o.put(at, o.items[child])
		at = child
	}
	o.put(at, e)
}

func (o *ordered[K]) put(at int, e *entry[K]) {
	o.items[at] = e
	e.slots[o.list] = int32(at)
}
