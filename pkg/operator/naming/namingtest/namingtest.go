// Package namingtest is a venue of one market whose tokens say what they are called.
package namingtest

import (
	"context"
	"errors"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// The tokens, and a market of them.
var (
	WETH   = chain.Address{0x7a, 19: 1}
	USDC   = chain.Address{0xc5, 19: 2}
	Market = perp.Market{MarketToken: chain.Address{0xe1, 19: 3}, IndexToken: WETH, LongToken: WETH, ShortToken: USDC}
)

// State implements naming.State.
type State struct{}

// Markets implements naming.State.
func (State) Markets(context.Context) ([]perp.Market, error) { return []perp.Market{Market}, nil }

// Node answers as the tokens do: of WETH as an ERC-20 of today, of USDC as one of old, whose symbol is a word.
type Node struct {
	Away bool
}

// Head implements naming.Node.
func (n Node) Head(context.Context) (chain.BlockRef, error) {
	if n.Away {
		return chain.BlockRef{}, errors.New("nobody there")
	}
	return chain.BlockRef{Number: 1, Hash: chain.Hash{1}}, nil
}

// Call implements naming.Node.
func (Node) Call(_ context.Context, token chain.Address, data []byte, _ chain.Hash) ([]byte, error) {
	symbol, decimals := map[chain.Address]string{WETH: "WETH", USDC: "USDC"}[token], uint64(18)
	asked := chain.Keccak256([]byte("symbol()"))
	if symbol == "" {
		return nil, nil
	}
	if token == USDC {
		decimals = 6
	}
	word := chain.U64(decimals).Bytes32()
	if string(data[:4]) != string(asked[:4]) {
		return word[:], nil
	}
	word = chain.Hash{}
	copy(word[:], symbol)
	if token == USDC {
		return word[:], nil
	}
	at, length := chain.U64(32).Bytes32(), chain.U64(uint64(len(symbol))).Bytes32()
	return append(append(at[:], length[:]...), word[:]...), nil
}
