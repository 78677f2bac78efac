package evm_test

import (
	"bytes"
	"testing"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
)

// What a transaction was called with is what was signed: a node that shows something else is not believed.
func TestCalldata(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	d.emitBlock(2)
	c := dial(t, d.config(d.HTTPURL()))
	block, err := c.Block(t.Context(), d.head().Hash)
	if err != nil {
		t.Fatal(err)
	}
	for i, tx := range block.Txs {
		if data, err := c.Calldata(t.Context(), tx); err != nil || !bytes.Equal(data, word(byte(i))) {
			t.Errorf("transaction %d: %x, %v", i, data, err)
		}
	}
	elsewhere := block.Txs[0]
	elsewhere.BlockHash = chain.Hash{1}
	if _, err := c.Calldata(t.Context(), elsewhere); !evm.NotFound(err) {
		t.Errorf("a transaction of another block: %v", err)
	}
	liar := dial(t, d.config(startProxy(t, d.HTTPURL(), func(request, answer []byte) []byte {
		if !bytes.Contains(request, []byte("eth_getTransactionByHash")) {
			return answer
		}
		return bytes.Replace(answer, []byte(`0000000000000001"`), []byte(`0000000000000007"`), 1)
	})))
	if data, err := liar.Calldata(t.Context(), block.Txs[1]); err == nil {
		t.Errorf("a changed input is believed: %x", data)
	}
}
