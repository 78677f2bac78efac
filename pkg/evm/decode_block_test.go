package evm

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
)

// fill gives every field of a header a value that is not zero, so that one that a new version of go-ethereum adds, and
// that is not read here, is missed in the hash.
func fill(t *rapid.T, h *types.Header) {
	v := reflect.ValueOf(h).Elem()
	for i := range v.NumField() {
		name, field := v.Type().Field(i).Name, v.Field(i)
		some := rapid.SliceOfN(rapid.Byte(), 256, 256).Draw(t, name)
		some[31] |= 1
		switch target := field.Addr().Interface().(type) {
		case *common.Hash:
			*target = common.BytesToHash(some[:32])
		case **common.Hash:
			*target = new(common.BytesToHash(some[:32]))
		case *common.Address:
			*target = common.BytesToAddress(some[:20])
		case *types.Bloom:
			*target = types.BytesToBloom(some)
		case **big.Int:
			*target = new(big.Int).SetBytes(some[24:32])
		case *uint64:
			*target = new(big.Int).SetBytes(some[24:32]).Uint64()
		case **uint64:
			*target = new(new(big.Int).SetBytes(some[24:32]).Uint64())
		case *[]byte:
			*target = some[:rapid.IntRange(0, 256).Draw(t, "length")]
		case *types.BlockNonce:
			copy(target[:], some)
		default:
			t.Fatalf("field %s has a type that this test does not know", name)
		}
	}
}

// Every field that go-ethereum knows is read, and what is not there is not made up.
func TestHeadersAreReadAsGoEthereumReadsThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h types.Header
		fill(t, &h)
		if rapid.Bool().Draw(t, "old") {
			h.BaseFee, h.WithdrawalsHash, h.BlobGasUsed, h.ExcessBlobGas = nil, nil, nil, nil
			h.ParentBeaconRoot, h.RequestsHash, h.BlockAccessListHash, h.SlotNumber = nil, nil, nil, nil
		}
		raw, err := json.Marshal(&h)
		if err != nil {
			t.Fatal(err)
		}
		block, err := decodeBlock(raw)
		if err != nil || block.Hash != chain.Hash(h.Hash()) || block.Number != h.Number.Uint64() ||
			block.Parent != chain.Hash(h.ParentHash) || block.TimeMs != timeMs(&h, nil) ||
			block.Bloom != Bloom(h.Bloom) || block.ReceiptsRoot != chain.Hash(h.ReceiptHash) {
			t.Fatalf("%+v, %v; want %+v", block, err, h)
		}
	})
}

// What nobody may take for a block.
func TestRefusesBrokenBlocks(t *testing.T) {
	raw := string(sampleBlock(t))
	if _, err := decodeBlock([]byte(raw)); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"number":"0x7"`, `"number":"0x07"`}, {`"number":"0x7"`, `"number":7`}, {`"number":"0x7"`, `"number":null`},
		{`"number":"0x7"`, `"number":"0x7","number":"0x8"`}, {`"number":"0x7"`, `"nUmber":"0x7"`},
		{`"number":"0x7"`, `"number":"0x1` + strings.Repeat("0", 16) + `"`},
		{`"difficulty":"0x2"`, `"difficulty":"0xg"`},
		{`"nonce":"0x5"`, `"nonce":"0x5","nonce":"0x5"`}, {`"nonce":"0x5"`, `"other":1`},
		{`"transactionIndex":"0x0"`, `"transactionIndex":"0x1"`}, {`"milliTimestamp":"0x`, `"milliTimestamp":"`},
		{`"stateRoot":"0x0`, `"stateRoot":"0x1`}, {`]}`, `]}x`}, {`]}`, `]`},
	} {
		broken := strings.Replace(raw, change[0], change[1], 1)
		if broken == raw {
			t.Fatalf("the sample has no %s", change[0])
		}
		if block, err := decodeBlock([]byte(broken)); err == nil {
			t.Errorf("%s for %s is read: %+v", change[1], change[0], block)
		}
	}
}
