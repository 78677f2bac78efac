package gmx

import (
	"encoding/binary"
	"fmt"
	"iter"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// walker reads ABI-encoded data. It never panics and never reads a byte twice: what overlaps is refused, so that no input costs more
// than its own length. The first fault sticks; everything read after it is zero.
type walker struct {
	data   []byte
	budget int
	err    error
}

func newWalker(data []byte) *walker { return &walker{data: data, budget: len(data)} }

func (w *walker) failf(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// span returns n bytes at an offset, or nil after a fault.
func (w *walker) span(at, n int) []byte {
	switch {
	case w.err != nil:
		return nil
	case at < 0 || n < 0 || at > len(w.data) || n > len(w.data)-at:
		w.failf("the data ends at byte %d, before the %d bytes at %d", len(w.data), n, at)
		return nil
	case n > w.budget:
		w.failf("the data's parts overlap")
		return nil
	}
	w.budget -= n
	return w.data[at : at+n]
}

func (w *walker) word(at int) (word chain.Hash) {
	copy(word[:], w.span(at, 32))
	return word
}

// size reads a word that is an offset or a length: no larger than the data.
func (w *walker) size(at int) int {
	word := w.word(at)
	if v := binary.BigEndian.Uint64(word[24:]); word != wordOf(v) || v > uint64(len(w.data)) {
		w.failf("offset or length %s at byte %d is larger than the data", perp.UintFromBytes(word[:]), at)
		return 0
	}
	return int(binary.BigEndian.Uint64(word[24:]))
}

// follow reads the offset at head, which counts from base.
func (w *walker) follow(base, head int) int { return base + w.size(head) }

// count reads the length of an array of elements that take at least a word each.
func (w *walker) count(at int) int {
	n := w.size(at)
	if n*32 > w.budget {
		w.failf("an array of %d elements at byte %d is longer than what is left of the data", n, at)
		return 0
	}
	return n
}

func (w *walker) address(at int) chain.Address {
	word := w.word(at)
	if word.Address().Hash() != word {
		w.failf("%s at byte %d is no address", word, at)
	}
	return word.Address()
}

func (w *walker) bool(at int) bool {
	word := w.word(at)
	if word != wordOf(0) && word != wordOf(1) {
		w.failf("%s at byte %d is no boolean", word, at)
	}
	return word == wordOf(1)
}

func (w *walker) uint(at int) perp.Uint {
	word := w.word(at)
	return perp.UintFromBytes(word[:])
}

func (w *walker) int(at int) perp.Int { return perp.IntFromWord(w.word(at)) }

func (w *walker) bytes(at int) perp.Bytes {
	return append(perp.Bytes{}, w.span(at+32, w.size(at))...)
}

func (w *walker) name(at int) string { return string(w.span(at+32, w.size(at))) }

// text reads a string that came from anywhere, a callback's revert message included. Databases refuse NUL and broken UTF-8, so neither
// gets through; where exact bytes matter the contracts give them separately.
func (w *walker) text(at int) string {
	valid := strings.ToValidUTF8(w.name(at), "\uFFFD")
	return strings.ReplaceAll(valid, "\x00", "\uFFFD")
}

func wordOf(v uint64) (word chain.Hash) {
	binary.BigEndian.PutUint64(word[24:], v)
	return word
}

// eventName reads the name out of the data of an EventLog: (address msgSender, string eventName, EventLogData eventData).
func eventName(data []byte) (string, error) {
	w := newWalker(data)
	name := w.name(w.follow(0, 32))
	return name, w.err
}

// eventItems reads the seven kinds of items of an EventLogData, each as single values and as arrays. Items without a name are slots the
// contract reserved and left empty.
func eventItems(data []byte) (perp.Fields, error) {
	w := newWalker(data)
	tuple := w.follow(0, 64)
	items := perp.Fields{}
	readItems(w, items, tuple, 0, static, w.address)
	readItems(w, items, tuple, 1, static, w.uint)
	readItems(w, items, tuple, 2, static, w.int)
	readItems(w, items, tuple, 3, static, w.bool)
	readItems(w, items, tuple, 4, static, w.word)
	readItems(w, items, tuple, 5, dynamic, w.bytes)
	readItems(w, items, tuple, 6, dynamic, w.text)
	return items, w.err
}

// location says where an ABI value lies: in its slot, or at the offset its slot holds.
type location func(w *walker, base, slot int) int

func static(_ *walker, _, slot int) int     { return slot }
func dynamic(w *walker, base, slot int) int { return w.follow(base, slot) }

// readItems reads one struct XItems { XKeyValue[] items; XArrayKeyValue[] arrayItems; }, the kind-th of the tuple.
func readItems[T any](w *walker, into perp.Fields, tuple, kind int, where location, read func(at int) T) {
	section := w.follow(tuple, tuple+32*kind)
	for pair := range w.pairs(w.follow(section, section)) {
		w.put(into, pair, read(where(w, pair, pair+32)))
	}
	for pair := range w.pairs(w.follow(section, section+32)) {
		array := w.follow(pair, pair+32)
		values := make([]T, w.count(array))
		for i := range values {
			values[i] = read(where(w, array+32, array+32+32*i))
		}
		w.put(into, pair, values)
	}
}

// pairs yields the place of each (string key, value) of an array.
func (w *walker) pairs(array int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range w.count(array) {
			if pair := w.follow(array+32, array+32+32*i); w.err != nil || !yield(pair) {
				return
			}
		}
	}
}

func (w *walker) put(into perp.Fields, pair int, value any) {
	name := w.name(w.follow(pair, pair))
	if _, twice := into[name]; twice {
		w.failf("item %q appears twice", name)
	}
	if w.err == nil && name != "" {
		into[name] = value
	}
}
