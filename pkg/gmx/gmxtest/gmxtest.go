// Package gmxtest builds logs of the EventEmitter for tests: the inverse of the decoder in pkg/gmx, written apart from
// it.
package gmxtest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Topic0 are the signatures of EventLog, EventLog1 and EventLog2.
var Topic0 = [3]string{
	"0x7e3bde2ba7aca4a8499608ca57f3b0c1c1c93ace63ffd3741a9fab204146fc9a",
	"0x137a44067c8961cd7e1d876f4754a5a3a75989b4552f1843fc69c3b372def160",
	"0x468a25a7ba624ceea6e540ad6f49171b52495b648417ae91bca21676d8a24dc5",
}

// Log returns a log of the named event with the given items. Topics are those after the name's hash; their number picks
// EventLog, EventLog1 or EventLog2. Everything else about the log is left to the caller.
func Log(emitter chain.Address, name string, topics []chain.Hash, items perp.Fields) chain.Log {
	topic0, err := chain.ParseHash(Topic0[len(topics)])
	if err != nil {
		panic(err)
	}
	return chain.Log{
		Address: emitter,
		Topics:  append([]chain.Hash{topic0, chain.Keccak256([]byte(name))}, topics...),
		Data:    Data(emitter, name, items),
	}
}

// Data encodes (address msgSender, string eventName, EventLogData eventData). Items are sorted by name within their
// type.
func Data(sender chain.Address, name string, items perp.Fields) []byte {
	word := sender.Hash()
	return tuple(slot{head: word[:]}, slot{tail: text(name)}, slot{tail: eventData(items)})
}

// slot is one member of an ABI tuple: a word in place, or a tail behind an offset.
type slot struct{ head, tail []byte }

func tuple(slots ...slot) []byte {
	var heads, tails []byte
	for _, s := range slots {
		if s.head == nil {
			s.head = number(uint64(32*len(slots) + len(tails)))
			tails = append(tails, s.tail...)
		}
		heads = append(heads, s.head...)
	}
	return append(heads, tails...)
}

func number(v uint64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 24), v)
}

func text(s string) []byte {
	padded := make([]byte, (len(s)+31)/32*32)
	copy(padded, s)
	return append(number(uint64(len(s))), padded...)
}

func array(slots []slot) []byte {
	return append(number(uint64(len(slots))), tuple(slots...)...)
}

func eventData(items perp.Fields) []byte {
	var singles, arrays [7][]slot
	for _, name := range slices.Sorted(maps.Keys(items)) {
		kind, isArray, value := encode(items[name])
		pair := slot{tail: tuple(slot{tail: text(name)}, value)}
		if isArray {
			arrays[kind] = append(arrays[kind], pair)
		} else {
			singles[kind] = append(singles[kind], pair)
		}
	}
	var kinds []slot
	for i := range singles {
		kinds = append(kinds, slot{tail: tuple(slot{tail: array(singles[i])}, slot{tail: array(arrays[i])})})
	}
	return tuple(kinds...)
}

// encode returns which of the seven kinds a value is of, whether it is an array, and its encoding.
func encode(value any) (kind int, isArray bool, s slot) {
	switch v := value.(type) {
	case []chain.Address:
		return 0, true, many(v)
	case []chain.Uint:
		return 1, true, many(v)
	case []chain.Int:
		return 2, true, many(v)
	case []bool:
		return 3, true, many(v)
	case []chain.Hash:
		return 4, true, many(v)
	case []perp.Bytes:
		return 5, true, many(v)
	case []string:
		return 6, true, many(v)
	}
	kind, s = one(value)
	return kind, false, s
}

func many[T any](values []T) slot {
	var slots []slot
	for _, v := range values {
		_, s := one(v)
		slots = append(slots, s)
	}
	return slot{tail: array(slots)}
}

func one(value any) (kind int, s slot) {
	switch v := value.(type) {
	case chain.Address:
		word := v.Hash()
		return 0, slot{head: word[:]}
	case chain.Uint:
		word := v.Bytes32()
		return 1, slot{head: word[:]}
	case chain.Int:
		word := v.Word()
		return 2, slot{head: word[:]}
	case bool:
		word := perp.BoolWord(v)
		return 3, slot{head: word[:]}
	case chain.Hash:
		return 4, slot{head: v[:]}
	case perp.Bytes:
		return 5, slot{tail: text(string(v))}
	case string:
		return 6, slot{tail: text(v)}
	}
	panic(fmt.Sprintf("no item of an event is a %T", value))
}
