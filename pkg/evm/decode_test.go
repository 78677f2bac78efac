package evm

import (
	"bytes"
	"encoding/json"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	gojson "github.com/goccy/go-json"

	"perpkeeper/pkg/chain"
)

// sampleBlock is a block of one transaction, as a node shows it.
func sampleBlock(tb testing.TB) []byte {
	tb.Helper()
	header := &types.Header{Number: big.NewInt(7), Difficulty: big.NewInt(2), Time: 1_700_000_000, Extra: []byte{1},
		BaseFee: new(big.Int)}
	raw, err := json.Marshal(header)
	if err != nil {
		tb.Fatal(err)
	}
	hash := chain.Hash(header.Hash()).Hex()
	tx := `{"hash":"` + hash +
		`","from":"0x00000000000000000000000000000000000000aa","to":null,"nonce":"0x5","blockHash":"` + hash +
		`","transactionIndex":"0x0"}`
	return append(bytes.TrimSuffix(raw, []byte("}")),
		[]byte(`,"milliTimestamp":"0x18bcfe56a8d","transactions":[`+tx+`]}`)...)
}

func TestDecodesTheSample(t *testing.T) {
	block, err := decodeBlock(sampleBlock(t))
	if err != nil || block.Number != 7 || block.TimeMs != 1_700_000_000_653 || len(block.Txs) != 1 ||
		block.Txs[0].Nonce != 5 {
		t.Errorf("%+v, %v", block, err)
	}
}

// Whatever a node sends, a block that is read has the hash it says and transactions that say they stand in it.
func FuzzDecodeBlock(f *testing.F) {
	f.Add(sampleBlock(f))
	f.Add([]byte("null"))
	f.Add([]byte(`{"hash":"0x","transactions":[{}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		block, err := decodeBlock(raw)
		if err != nil {
			return
		}
		for i, tx := range block.Txs {
			if tx.BlockHash != block.Hash || int(tx.Index) != i {
				t.Fatalf("transaction %d of %s: %+v", i, block.Hash, tx)
			}
		}
		if block.TimeMs/1000 != decodedSeconds(t, raw) {
			t.Fatalf("time %d ms", block.TimeMs)
		}
	})
}

func decodedSeconds(t *testing.T, raw []byte) uint64 {
	var header types.Header
	if err := gojson.Unmarshal(raw, &header); err != nil {
		t.Fatal(err)
	}
	return header.Time * 1000 / 1000
}
