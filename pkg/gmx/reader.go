package gmx

import (
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// reader gives out the items of one event by name and type, and collects the events of a transaction. The first
// item that is missing or of another type sticks as its error. It is reused from log to log.
type reader struct {
	log   *chain.Log
	kind  *eventKind
	stamp perp.Stamp
	walker
	items []item
	next  int // where the next item asked for is likely to be: decoders ask in about the order of the contracts
	joins
	copies bool // see [Decoder.For]
}

// usualItems is more than all but the widest event have.
const usualItems = 48

// load turns to a log. It returns what is wrong with the shape of its data.
func (r *reader) load(l *chain.Log, kind *eventKind) (err error) {
	if r.items == nil {
		r.items = make([]item, 0, usualItems)
	}
	r.log, r.kind, r.next, r.walker = l, kind, 0, walker{data: l.Data}
	r.items, err = indexItems(l.Data, r.items)
	return err
}

// find returns the item of a name, or nil.
func (r *reader) find(name string) *item {
	for i := r.next; i < len(r.items); i++ {
		if string(r.items[i].name) == name {
			r.next = i + 1
			return &r.items[i]
		}
	}
	for i := range min(r.next, len(r.items)) {
		if string(r.items[i].name) == name {
			r.next = i + 1
			return &r.items[i]
		}
	}
	return nil
}

func (r *reader) has(name string) bool { return r.find(name) != nil }

// place returns where the item of a name and kind lies.
func (r *reader) place(name string, kind itemKind) (at int, ok bool) {
	found := r.find(name)
	switch {
	case found == nil:
		r.failf("item %q is missing", name)
	case found.kind != kind:
		r.failf("item %q is a %s, want a %s", name, found.kind, kind)
	default:
		return found.at, r.err == nil
	}
	return 0, false
}

// one reads a single value, many an array of values that lie in their slots.
func one[T any](r *reader, name string, kind itemKind, read func(*walker, int) T) (value T) {
	if at, ok := r.place(name, kind); ok {
		value = read(&r.walker, at)
	}
	return value
}

func many[T any](r *reader, name string, kind itemKind, read func(*walker, int) T) []T {
	at, ok := r.place(name, arrayOf+kind)
	if !ok {
		return nil
	}
	return elements(&r.walker, at, kind, read)
}

// elements reads an array whose length is at the given place.
func elements[T any](w *walker, at int, kind itemKind, read func(*walker, int) T) []T {
	values := make([]T, w.size(at))
	for i := range values {
		slot := at + 32 + 32*i
		if kind.dynamic() {
			slot = at + 32 + w.size(slot)
		}
		values[i] = read(w, slot)
	}
	return values
}

func (r *reader) address(name string) chain.Address {
	return one(r, name, addressItem, (*walker).address)
}
func (r *reader) addresses(name string) []chain.Address {
	return many(r, name, addressItem, (*walker).address)
}
func (r *reader) uint(name string) chain.Uint  { return one(r, name, uintItem, (*walker).uint) }
func (r *reader) int(name string) chain.Int    { return one(r, name, intItem, (*walker).int) }
func (r *reader) bool(name string) bool        { return one(r, name, boolItem, (*walker).bool) }
func (r *reader) hash(name string) chain.Hash  { return one(r, name, wordItem, (*walker).word) }
func (r *reader) bytes(name string) perp.Bytes { return one(r, name, bytesItem, (*walker).bytes) }
func (r *reader) text(name string) string      { return one(r, name, textItem, (*walker).text) }
func (r *reader) hashes(name string) []chain.Hash {
	return many(r, name, wordItem, (*walker).word)
}

// amount reads an unsigned item as a signed measure. None of the exchange's own numbers comes near 2^255.
func (r *reader) amount(name string) chain.Int {
	u := r.uint(name)
	if word := u.Bytes32(); word[0] >= 0x80 {
		r.failf("item %q: %s is out of range", name, u)
		return chain.Int{}
	}
	return u.Int()
}

// orderType refuses types that a newer version of the contracts may bring.
func (r *reader) orderType() perp.OrderType {
	v := r.uint("orderType")
	n, fits := v.Uint64()
	if !fits || n > uint64(perp.StopIncrease) {
		r.failf("item %q: %s is not among the known 0 to %d", "orderType", v, perp.StopIncrease)
		return 0
	}
	return perp.OrderType(n)
}

// fields reads every item there is.
func (r *reader) fields() perp.Fields {
	all := make(perp.Fields, len(r.items))
	for _, found := range r.items {
		if found.kind >= arrayOf {
			all[string(found.name)] = r.array(found.kind-arrayOf, found.at)
		} else {
			all[string(found.name)] = r.single(found.kind, found.at)
		}
	}
	return all
}

func (r *reader) single(kind itemKind, at int) any {
	switch kind {
	case addressItem:
		return r.walker.address(at)
	case uintItem:
		return r.walker.uint(at)
	case intItem:
		return r.walker.int(at)
	case boolItem:
		return r.walker.bool(at)
	case wordItem:
		return r.word(at)
	case bytesItem:
		return r.walker.bytes(at)
	default:
		return r.walker.text(at)
	}
}

func (r *reader) array(kind itemKind, at int) any {
	switch kind {
	case addressItem:
		return elements(&r.walker, at, kind, (*walker).address)
	case uintItem:
		return elements(&r.walker, at, kind, (*walker).uint)
	case intItem:
		return elements(&r.walker, at, kind, (*walker).int)
	case boolItem:
		return elements(&r.walker, at, kind, (*walker).bool)
	case wordItem:
		return elements(&r.walker, at, kind, (*walker).word)
	case bytesItem:
		return elements(&r.walker, at, kind, (*walker).bytes)
	default:
		return elements(&r.walker, at, kind, (*walker).text)
	}
}

// checkOwner demands that topics and items name the same owner: routing goes by topics, state by items.
func (r *reader) checkOwner() {
	switch r.kind.scope {
	case ofMarket:
		r.checkTopic(2, "market")
	case ofAccount:
		r.checkTopic(2, "account")
	case ofOwner:
		r.checkTopic(2, "key")
		r.checkTopic(3, "account")
	case global, ofKey, ofOrderKey: // no topic and item name the same owner
	}
}

// checkTopic leaves an item that is absent, or of another type, to those who read it.
func (r *reader) checkTopic(topic int, name string) {
	found := r.find(name)
	if found == nil || found.kind != wordItem && found.kind != addressItem {
		return
	}
	if got, want := r.word(found.at), r.log.Topics[topic]; got != want {
		r.failf("item %q is %s, but topic %d is %s", name, got, topic, want)
	}
}

// shape lists items by type, as space-separated names.
type shape struct {
	addresses, addressLists, uints, bools, hashes, hashLists string
}

// require demands that every item of a shape is there.
func (r *reader) require(s shape) {
	r.each(s.addresses, addressItem)
	r.each(s.addressLists, arrayOf+addressItem)
	r.each(s.uints, uintItem)
	r.each(s.bools, boolItem)
	r.each(s.hashes, wordItem)
	r.each(s.hashLists, arrayOf+wordItem)
}

func (r *reader) each(names string, kind itemKind) {
	for name := range strings.FieldsSeq(names) {
		r.place(name, kind)
	}
}

func (r *reader) emit(e perp.Event) { r.events = append(r.events, e) }

// fault names the present event and its place.
func (r *reader) fault(err error) error {
	return &DecodeError{Event: r.kind.name, Place: placeOf(r.log), Cause: err}
}
