package gmx

import (
	"encoding/binary"
	"fmt"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// walker reads single values of ABI-encoded data at given places. It never panics; the first fault sticks, and
// everything read after it is zero. It is as lenient as a reader of reverts must be, which are anybody's; events go
// through the [indexer] first.
type walker struct {
	data []byte
	err  error
}

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
	}
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
		w.failf("offset or length %s at byte %d is larger than the data", chain.UintFromBytes(word[:]), at)
		return 0
	}
	return int(binary.BigEndian.Uint64(word[24:]))
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

func (w *walker) uint(at int) chain.Uint { return chain.UintFromBytes(w.span(at, 32)) }

func (w *walker) int(at int) chain.Int { return chain.IntFromWord(w.word(at)) }

// raw returns the bytes of a byte string or string, still part of the data.
func (w *walker) raw(at int) []byte { return w.span(at+32, w.size(at)) }

func (w *walker) bytes(at int) perp.Bytes { return append(perp.Bytes{}, w.raw(at)...) }

// text reads a string that came from anywhere, a callback's revert message included. Databases refuse NUL and broken
// UTF-8, so neither gets through; where exact bytes matter the contracts give them separately.
func (w *walker) text(at int) string {
	valid := strings.ToValidUTF8(string(w.raw(at)), "\uFFFD")
	return strings.ReplaceAll(valid, "\x00", "\uFFFD")
}

func wordOf(v uint64) (word chain.Hash) {
	binary.BigEndian.PutUint64(word[24:], v)
	return word
}

// eventName reads the name out of the data of an EventLog. It is part of the data still.
func eventName(data []byte) ([]byte, error) {
	w := walker{data: data}
	name := w.raw(w.size(32))
	return name, w.err
}
