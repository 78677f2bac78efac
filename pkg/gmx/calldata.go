package gmx

import (
	"fmt"

	"perpkeeper/pkg/chain"
)

// PartialLiquidations says whether the contracts can close a part of a position that is liquidated (LIQ-13):
// executeLiquidation takes no size (LIQ-9).
const PartialLiquidations = false

// SetPrices are the price reports of one execution (OracleUtils.SetPricesParams): for each token its provider and the
// report's bytes, which are opaque to us. The three slices have one length.
type SetPrices struct {
	Tokens    []chain.Address
	Providers []chain.Address
	Data      [][]byte
}

func (p SetPrices) check() error {
	if len(p.Providers) != len(p.Tokens) || len(p.Data) != len(p.Tokens) {
		return fmt.Errorf("%d tokens with %d providers and %d reports: want one of each per token", len(p.Tokens),
			len(p.Providers), len(p.Data))
	}
	return nil
}

const pricesType = "(address[],address[],bytes[])"

func selector(signature string) [4]byte {
	hash := chain.Keccak256([]byte(signature))
	return [4]byte(hash[:4])
}

// call encodes a function whose arguments are words followed by the price reports: the words, the offset of the
// reports, the reports.
func call(selector [4]byte, p SetPrices, words ...chain.Hash) []byte {
	out := selector[:]
	for _, w := range words {
		out = append(out, w[:]...)
	}
	out = appendNumber(out, 32*(len(words)+1))
	return append(out, p.encode()...)
}

// encode returns the tuple (address[] tokens, address[] providers, bytes[] data).
func (p SetPrices) encode() []byte {
	tokens, providers, data := encodeAddresses(p.Tokens), encodeAddresses(p.Providers), encodeReports(p.Data)
	out := appendNumber(nil, 3*32)
	out = appendNumber(out, 3*32+len(tokens))
	out = appendNumber(out, 3*32+len(tokens)+len(providers))
	out = append(out, tokens...)
	out = append(out, providers...)
	return append(out, data...)
}

func encodeAddresses(addresses []chain.Address) []byte {
	out := appendNumber(nil, len(addresses))
	for _, a := range addresses {
		word := a.Hash()
		out = append(out, word[:]...)
	}
	return out
}

func encodeReports(reports [][]byte) []byte {
	out := appendNumber(nil, len(reports))
	var tails []byte
	for _, report := range reports {
		out = appendNumber(out, 32*len(reports)+len(tails))
		tails = appendNumber(tails, len(report))
		tails = append(tails, report...)
		tails = append(tails, make([]byte, (32-len(report)%32)%32)...)
	}
	return append(out, tails...)
}

func appendNumber(out []byte, n int) []byte {
	word := wordOf(uint64(n))
	return append(out, word[:]...)
}
