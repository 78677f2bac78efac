package gmx

import (
	"bytes"
	"encoding/hex"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// The selector is that of the contracts' documentation; the encoding is go-ethereum's.
func TestSimulateExecuteOrder(t *testing.T) {
	word, err := abi.NewType("bytes32", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	params, err := abi.NewType("tuple", "", []abi.ArgumentMarshaling{
		{Name: "primaryTokens", Type: "address[]"},
		{Name: "primaryPrices", Type: "tuple[]", Components: []abi.ArgumentMarshaling{{Name: "min", Type: "uint256"},
			{Name: "max", Type: "uint256"}}},
		{Name: "minTimestamp", Type: "uint256"}, {Name: "maxTimestamp", Type: "uint256"},
	})
	if err != nil {
		t.Fatal(err)
	}
	arguments := abi.Arguments{{Type: word}, {Type: params}}
	type price struct{ Min, Max *big.Int }
	rapid.Check(t, func(t *rapid.T) {
		key := chain.Hash(drawBytes(t, 32))
		p := SimulatedPrices{From: rapid.Uint64().Draw(t, "from"), To: rapid.Uint64().Draw(t, "to")}
		want := struct {
			PrimaryTokens              []common.Address
			PrimaryPrices              []price
			MinTimestamp, MaxTimestamp *big.Int
		}{MinTimestamp: new(big.Int).SetUint64(p.From), MaxTimestamp: new(big.Int).SetUint64(p.To)}
		for range rapid.IntRange(0, 4).Draw(t, "tokens") {
			token := chain.Address(drawBytes(t, 20))
			low, high := chain.UintFromBytes(drawBytes(t, 32)), chain.UintFromBytes(drawBytes(t, 32))
			p.Tokens, p.Prices = append(p.Tokens, token), append(p.Prices, perp.Price{Min: low, Max: high})
			want.PrimaryTokens = append(want.PrimaryTokens, common.Address(token))
			want.PrimaryPrices = append(want.PrimaryPrices, price{low.Big(), high.Big()})
		}
		packed, err := arguments.Pack([32]byte(key), want)
		if err != nil {
			t.Fatal(err)
		}
		got := SimulateExecuteOrder(key, p)
		if hex.EncodeToString(got[:4]) != "a7115fa8" || !bytes.Equal(got[4:], packed) {
			t.Fatalf("got  %x\nwant a7115fa8%x", got, packed)
		}
	})
	if r := DecodeRevert(common.FromHex("0x4e48dcda")); r.Name != "EndOfOracleSimulation" {
		t.Errorf("the end of a rehearsal is %q", r.Name)
	}
}
