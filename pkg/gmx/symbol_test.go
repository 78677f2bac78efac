package gmx

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
)

// saying is a contract that answers everything alike.
type saying struct {
	output   []byte
	answered bool
	err      error
}

func (s saying) Ask(context.Context, chain.Address, []byte) ([]byte, bool, error) {
	return s.output, s.answered, s.err
}

// abiString is a string as contracts return it.
func abiString(text string) []byte {
	at, length := chain.U64(32).Bytes32(), chain.U64(uint64(len(text))).Bytes32()
	out := append(append(at[:], length[:]...), text...)
	return append(out, make([]byte, -len(out)&31)...)
}

// A symbol is what a token says in a string or in a word; what cannot stand in a line is none.
func TestSymbol(t *testing.T) {
	word := make([]byte, 32)
	copy(word, "MKR")
	for _, c := range []struct {
		output []byte
		want   string
	}{
		{abiString("USD₮0"), "USD₮0"}, {word, "MKR"}, {abiString(""), ""}, {make([]byte, 32), ""},
		{abiString("U\x1b[2JSD"), ""}, {abiString("a b"), ""}, {abiString("\xff"), ""},
		{abiString(strings.Repeat("X", longestSymbol+1)), ""}, {abiString("\u202eCDSU"), ""},
		{abiString("USDC")[:66], ""}, {slices.Concat(word, word), ""}, // it says it is longer than it is
	} {
		got, err := Symbol(t.Context(), saying{c.output, true, nil}, chain.Address{1})
		if got != c.want || err != nil {
			t.Errorf("%q: %q, %v; want %q", c.output, got, err, c.want)
		}
	}
	if got, err := Symbol(t.Context(), saying{}, chain.Address{1}); got != "" || err != nil {
		t.Errorf("no contract: %q, %v", got, err)
	}
	away := errors.New("away")
	if _, err := Symbol(t.Context(), saying{err: away}, chain.Address{1}); !errors.Is(err, away) {
		t.Error(err)
	}
}
