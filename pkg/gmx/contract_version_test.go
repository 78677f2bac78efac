package gmx

import (
	"context"
	"errors"
	"slices"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// codes are contracts; reads counts how often each was read, and an address of away fails.
type codes struct {
	code  map[chain.Address][]byte
	reads map[chain.Address]int
	away  chain.Address
}

func (c codes) Code(_ context.Context, a chain.Address) ([]byte, error) {
	c.reads[a]++
	if a == c.away {
		return nil, errors.New("nobody serves it")
	}
	return c.code[a], nil
}

// link is code that pushes an address.
func link(a chain.Address) []byte { return append([]byte{0x73}, a[:]...) }

// PIPE-10: a handler is of v2.2c if its own code or that of a library below it has what is new there, whatever else
// is linked.
func TestVersionOfAHandler(t *testing.T) {
	handler, library, below, other := chain.Address{1}, chain.Address{2}, chain.Address{3}, chain.Address{4}
	floor := perp.BaseKey("MIN_FUNDING_INCREASE_RATE_PER_SECOND")
	pushed := append([]byte{0x7f}, floor[:]...)
	plain := []byte{0x60, 0x01, 0x50}
	for name, test := range map[string]struct {
		code map[chain.Address][]byte
		want perp.Version
	}{
		"nothing new":        {map[chain.Address][]byte{handler: link(library), library: plain}, perp.V22b},
		"no contract at all": {nil, perp.V22b},
		"its own function": {map[chain.Address][]byte{handler: {0x80, 0x63, 0xee, 0x3a, 0xbe, 0x87, 0x14}},
			perp.V22c},
		"a library's key": {map[chain.Address][]byte{handler: slices.Concat(plain, link(other), link(library)),
			library: pushed}, perp.V22c},
		"the name before it is hashed": {map[chain.Address][]byte{handler: link(library),
			library: []byte("\x7fMIN_FUNDING_INCREASE_RATE_PER_SE")}, perp.V22c},
		"below a library": {map[chain.Address][]byte{handler: link(library), library: link(below),
			below: pushed}, perp.V22c},
		"libraries in a circle": {map[chain.Address][]byte{handler: link(library),
			library: slices.Concat(link(handler), link(library))}, perp.V22b},
		"an address within a longer constant is none": {map[chain.Address][]byte{
			handler: append([]byte{0x7f}, append(link(library), make([]byte, 11)...)...), library: pushed}, perp.V22b},
		"code that ends within a constant": {map[chain.Address][]byte{handler: {0x73, 1, 2}}, perp.V22b},
	} {
		t.Run(name, func(t *testing.T) {
			node := codes{code: test.code, reads: map[chain.Address]int{}}
			var v Versions
			for range 2 {
				if got, err := v.Version(t.Context(), node, handler); err != nil || got != test.want {
					t.Errorf("it is of %s (%v), want %s", got, err, test.want)
				}
			}
			for a, n := range node.reads {
				if n != 1 {
					t.Errorf("the code of %s was read %d times", a, n)
				}
			}
		})
	}
}

// What cannot be read is no answer, and is asked again.
func TestVersionThatCannotBeRead(t *testing.T) {
	handler, library := chain.Address{1}, chain.Address{2}
	node := codes{code: map[chain.Address][]byte{handler: link(library)}, reads: map[chain.Address]int{}, away: library}
	var v Versions
	if got, err := v.Version(t.Context(), node, handler); err == nil {
		t.Errorf("it is of %s", got)
	}
	node.away = chain.Address{}
	node.code[library] = append([]byte{0x63}, 0xee, 0x3a, 0xbe, 0x87)
	if got, err := v.Version(t.Context(), node, handler); err != nil || got != perp.V22c {
		t.Errorf("it is of %s, %v", got, err)
	}
}
