package pg

import (
	"encoding"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
)

// HashOf is a hash as a column of bytes holds it; of nothing it makes zero.
func HashOf(b []byte) (h chain.Hash) {
	copy(h[:], b)
	return h
}

// SumOf reads a sum that a statement returns as text, in wei or whatever it adds up.
func SumOf(row pgx.Row) (sum chain.Uint, err error) {
	err = row.Scan(Amount(&sum))
	return sum, err
}

// ScanHash reads a row of one hash.
var ScanHash = Columns(func(h *chain.Hash) []any { return []any{Fixed(h[:])} })

// stored reads a column of type T into a value that keeps it otherwise.
type stored[T any] func(T) error

// Scan implements sql.Scanner. NULL is read as the zero T. Of an [Amount] that is an error: no digits are no number.
func (s stored[T]) Scan(value any) error {
	column, is := value.(T)
	if !is && value != nil {
		return fmt.Errorf("a %T in place of a %T", value, column)
	}
	return s(column)
}

// Amount reads a number that is selected as text; NULL is an error.
func Amount(into encoding.TextUnmarshaler) any {
	return stored[string](func(text string) error { return into.UnmarshalText([]byte(text)) })
}

// Fixed reads a column of bytes into all of a hash or an address; NULL makes it zero.
func Fixed(into []byte) any {
	return stored[[]byte](func(value []byte) error {
		clear(into)
		copy(into, value)
		return nil
	})
}

// Text reads a text that [Escape] has made storable; NULL makes it empty.
func Text[S ~string](into *S) any {
	return stored[string](func(text string) error {
		plain, err := Unescape(text)
		*into = S(plain)
		return err
	})
}

// Microseconds reads a span of time.
func Microseconds(into *time.Duration) any {
	return stored[int64](func(n int64) error { *into = time.Duration(n) * time.Microsecond; return nil })
}

// Moment reads a time; NULL makes it zero.
func Moment(into *time.Time) any {
	return stored[time.Time](func(t time.Time) error { *into = t; return nil })
}

// fixed are hashes or addresses as a parameter, whose bytes are.
func fixed[K any](keys []K, bytes func(*K) []byte) [][]byte {
	all := make([][]byte, len(keys))
	for i := range keys {
		all[i] = bytes(&keys[i])
	}
	return all
}

// Hashes are hashes as a parameter.
func Hashes(keys []chain.Hash) [][]byte {
	return fixed(keys, func(h *chain.Hash) []byte { return h[:] })
}

func addresses(accounts []chain.Address) [][]byte {
	return fixed(accounts, func(a *chain.Address) []byte { return a[:] })
}
