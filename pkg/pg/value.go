package pg

import (
	"database/sql"
	"encoding"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// HashOf is a hash as a column of bytes holds it; of nothing it makes zero.
func HashOf(b []byte) (h chain.Hash) {
	copy(h[:], b)
	return h
}

// AddressOf is an address as a column of bytes holds it; of nothing it makes zero.
func AddressOf(b []byte) (a chain.Address) {
	copy(a[:], b)
	return a
}

// SumOf reads a sum that a statement returns as text, in wei or whatever it adds up.
func SumOf(row pgx.Row) (sum perp.Uint, err error) {
	var text string
	if err := row.Scan(&text); err != nil {
		return sum, err
	}
	return perp.ParseUint(text)
}

// Amount reads a number that is selected as text.
func Amount(into encoding.TextUnmarshaler) sql.Scanner { return amountScanner{into} }

type amountScanner struct{ into encoding.TextUnmarshaler }

// Scan implements sql.Scanner.
func (a amountScanner) Scan(value any) error {
	text, is := value.(string)
	if !is {
		return fmt.Errorf("a %T is no amount", value)
	}
	return a.into.UnmarshalText([]byte(text))
}
