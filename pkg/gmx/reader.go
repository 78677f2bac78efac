package gmx

import (
	"fmt"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// reader gives out the items of one event by name and type. The first item that is missing or of another type sticks as its error.
type reader struct {
	log   chain.Log
	stamp perp.Stamp
	items perp.Fields
	err   error
}

func (r *reader) failf(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func item[T any](r *reader, name string) (value T) {
	found, ok := r.items[name]
	if !ok {
		r.failf("item %q is missing", name)
		return value
	}
	value, ok = found.(T)
	if !ok {
		r.failf("item %q is a %s, want a %s", name, typeName(found), typeName(value))
	}
	return value
}

func (r *reader) address(name string) chain.Address     { return item[chain.Address](r, name) }
func (r *reader) addresses(name string) []chain.Address { return item[[]chain.Address](r, name) }
func (r *reader) uint(name string) perp.Uint            { return item[perp.Uint](r, name) }
func (r *reader) int(name string) perp.Int              { return item[perp.Int](r, name) }
func (r *reader) bool(name string) bool                 { return item[bool](r, name) }
func (r *reader) hash(name string) chain.Hash           { return item[chain.Hash](r, name) }
func (r *reader) hashes(name string) []chain.Hash       { return item[[]chain.Hash](r, name) }
func (r *reader) bytes(name string) perp.Bytes          { return item[perp.Bytes](r, name) }
func (r *reader) text(name string) string               { return item[string](r, name) }

// amount reads an unsigned item as a signed measure. None of the exchange's own numbers comes near 2^255.
func (r *reader) amount(name string) (v perp.Int) {
	u := r.uint(name)
	if err := perp.Checked(func() { v = u.Int() }); err != nil {
		r.failf("item %q: %s is out of range", name, u)
	}
	return v
}

// orderType refuses types that a newer version of the contracts may bring.
func (r *reader) orderType() perp.OrderType {
	v := r.uint("orderType")
	if perp.U64(uint64(perp.StopIncrease)).Less(v) {
		r.failf("item %q: %s is not among the known 0 to %d", "orderType", v, perp.StopIncrease)
		return 0
	}
	n, _ := v.Uint64()
	return perp.OrderType(n)
}

// checkOwner demands that topics and items name the same owner: routing goes by topics, state by items.
func (r *reader) checkOwner(s scope) {
	switch s {
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

func (r *reader) checkTopic(topic int, name string) {
	want := r.log.Topics[topic]
	switch got := r.items[name].(type) {
	case chain.Hash:
		if got != want {
			r.failf("item %q is %s, but topic %d is %s", name, got, topic, want)
		}
	case chain.Address:
		if got.Hash() != want {
			r.failf("item %q is %s, but topic %d is %s", name, got, topic, want)
		}
	}
}

// shape lists the items an event must have, by type, as space-separated names.
type shape struct {
	addresses, addressLists, uints, bools, hashes, hashLists string
}

func (r *reader) require(s shape) {
	each(s.addresses, r, item[chain.Address])
	each(s.addressLists, r, item[[]chain.Address])
	each(s.uints, r, item[perp.Uint])
	each(s.bools, r, item[bool])
	each(s.hashes, r, item[chain.Hash])
	each(s.hashLists, r, item[[]chain.Hash])
}

func each[T any](names string, r *reader, read func(*reader, string) T) {
	for name := range strings.FieldsSeq(names) {
		read(r, name)
	}
}

// typeName names an item's type as the contracts do.
func typeName(v any) string {
	switch v.(type) {
	case chain.Address:
		return "address"
	case []chain.Address:
		return "address[]"
	case perp.Uint:
		return "uint256"
	case []perp.Uint:
		return "uint256[]"
	case perp.Int:
		return "int256"
	case []perp.Int:
		return "int256[]"
	case chain.Hash:
		return "bytes32"
	case []chain.Hash:
		return "bytes32[]"
	case perp.Bytes:
		return "bytes"
	case []perp.Bytes:
		return "bytes[]"
	case []bool:
		return "bool[]"
	case []string:
		return "string[]"
	}
	return fmt.Sprintf("%T", v) // bool and string are named alike
}
