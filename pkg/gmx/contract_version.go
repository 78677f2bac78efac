package gmx

import (
	"bytes"
	"context"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Coder shows the code of contracts, which is empty where there is none.
type Coder interface {
	Code(ctx context.Context, contract chain.Address) ([]byte, error)
}

// Versions finds out which version of the contracts handlers are of, by their code and that of the libraries linked in
// it: what is new in v2.2c is in one of them (PIPE-10). It tells all handlers of the original contracts rightly, as
// compiled from both versions; one of v2.2b takes 36 codes at most. It remembers what it has found, because code does
// not change.
// The zero value is ready to use, by one goroutine at a time.
type Versions struct {
	known map[chain.Address]perp.Version
	seen  map[chain.Address]codeSeen // handlers and libraries
}

// codeSeen is what the code of a contract shows.
type codeSeen struct {
	isV22c bool
	links  []chain.Address
}

// mostCodes bounds how many contracts are looked at for one handler. An order handler of v2.2c has about 50 libraries.
const mostCodes = 300

// Version is the version of a handler. It is an error if code cannot be read, never a guess.
func (v *Versions) Version(ctx context.Context, node Coder, handler chain.Address) (perp.Version, error) {
	if known, is := v.known[handler]; is {
		return known, nil
	}
	if v.known == nil {
		v.known, v.seen = map[chain.Address]perp.Version{}, map[chain.Address]codeSeen{}
	}
	found := perp.V22b
	queue, queued := []chain.Address{handler}, map[chain.Address]bool{handler: true}
	for ; len(queue) > 0; queue = queue[1:] {
		seen, err := v.look(ctx, node, queue[0])
		if err != nil {
			return 0, fmt.Errorf("looking at the code of handler %s: %w", handler, err)
		}
		if seen.isV22c {
			found = perp.V22c
			break
		}
		for _, linked := range seen.links {
			if !queued[linked] {
				queued[linked] = true
				queue = append(queue, linked)
			}
		}
		if len(queued) > mostCodes {
			return 0, fmt.Errorf("looking at the code of handler %s: it leads to more than %d contracts", handler,
				mostCodes)
		}
	}
	v.known[handler] = found
	return found, nil
}

func (v *Versions) look(ctx context.Context, node Coder, contract chain.Address) (codeSeen, error) {
	if seen, is := v.seen[contract]; is {
		return seen, nil
	}
	code, err := node.Code(ctx, contract)
	if err != nil {
		return codeSeen{}, err
	}
	seen := codeSeen{isV22c: newInV22c(code), links: linkedIn(code)}
	v.seen[contract] = seen
	return seen, nil
}

// What code of v2.2c has and no other: the floor of the growth of funding, as the compiler has hashed its name or as
// the beginning of the name itself, and a new function of order handlers, as it is compared with a call's.
var (
	leastIncrease     = perp.BaseKey("MIN_FUNDING_INCREASE_RATE_PER_SECOND")
	leastIncreaseName = []byte("MIN_FUNDING_INCREASE_RATE_PER_SE") // as many as fit a word
	twapFunction      = []byte{push1 + 3, 0xee, 0x3a, 0xbe, 0x87}
)

func newInV22c(code []byte) bool {
	return bytes.Contains(code, leastIncrease[:]) || bytes.Contains(code, leastIncreaseName) ||
		bytes.Contains(code, twapFunction)
}

const (
	push1  = 0x60
	push20 = push1 + 19
	push32 = push1 + 31
)

// linkedIn lists the addresses that code has as constants: those of its libraries are among them.
func linkedIn(code []byte) (links []chain.Address) {
	for at := 0; at < len(code); at++ {
		op := code[at]
		if op < push1 || op > push32 {
			continue
		}
		width := int(op-push1) + 1
		if op == push20 && at+width < len(code) {
			if a := chain.Address(code[at+1 : at+1+width]); !a.IsZero() {
				links = append(links, a)
			}
		}
		at += width
	}
	return links
}
