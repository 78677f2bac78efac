package evm_test

import (
	"bytes"
	"testing"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
)

// A receipt is what its block's receipts root commits to, whatever the endpoint says that was asked for it.
func TestReceiptIsProven(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	d.emitBlock(2)
	block, err := dial(t, d.config(d.HTTPURL())).Block(t.Context(), d.head().Hash)
	if err != nil {
		t.Fatal(err)
	}
	for name, lie := range map[string]struct{ old, new string }{
		"another status":   {`"status":"0x1"`, `"status":"0x0"`},
		"another place":    {`"transactionIndex":"0x1","type"`, `"transactionIndex":"0x0","type"`},
		"a place too high": {`"transactionIndex":"0x1","type"`, `"transactionIndex":"0x9","type"`},
	} {
		t.Run(name, func(t *testing.T) {
			url, lies := startLiar(t, d.HTTPURL(), "eth_getTransactionReceipt", lie.old, lie.new)
			alone := dial(t, d.config(url))
			if r, err := alone.Receipt(t.Context(), block.Txs[1].Hash); err == nil {
				t.Errorf("nobody noticed: %+v", r)
			}
			if !lies() {
				t.Fatal("the lie was never told")
			}
			r, err := dial(t, d.config(url, d.HTTPURL())).Receipt(t.Context(), block.Txs[1].Hash)
			if err != nil || r == nil || !r.OK || len(r.Logs) != 1 || r.Index != 1 {
				t.Errorf("with an honest endpoint beside it: %+v, %v", r, err)
			}
		})
	}
}

// Who tells of a receipt is not blamed for who lies about its block.
func TestReceiptIsNotBlamedForItsBlock(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	d.emitBlock(1)
	block, err := dial(t, d.config(d.HTTPURL())).Block(t.Context(), d.head().Hash)
	if err != nil {
		t.Fatal(err)
	}
	sorry := []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"sorry"}}`)
	liar := startProxy(t, d.HTTPURL(), func(request, answer []byte) []byte {
		if bytes.Contains(request, []byte("eth_getTransactionReceipt")) {
			return sorry
		}
		return bytes.ReplaceAll(answer, []byte(`"gas":"0x`), []byte(`"gas":"0x1`))
	})
	honest := startProxy(t, d.HTTPURL(), func(request, answer []byte) []byte {
		if bytes.Contains(request, []byte("eth_getBlockByHash")) {
			return sorry
		}
		return answer
	})
	c := dial(t, d.config(liar, honest))
	if r, err := c.Receipt(t.Context(), block.Txs[0].Hash); err == nil {
		t.Errorf("%+v", r)
	}
	if all := c.Endpoints(); !lied(all[0], evm.ForBodies) || len(all[1].Excluded) > 0 {
		t.Errorf("excluded: %+v, %+v", all[0].Excluded, all[1].Excluded)
	}
}

// Where no endpoint serves the receipts of blocks, a receipt is as it was told.
func TestReceiptWithoutProof(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	d.emitBlock(1)
	if err := d.Inject(evmnode.Fault{Method: "eth_getBlockReceipts", Error: "the method eth_getBlockReceipts does " +
		"not exist/is not available", Code: -32601}); err != nil {
		t.Fatal(err)
	}
	c := dial(t, d.config(d.HTTPURL()))
	block, err := c.Block(t.Context(), d.head().Hash)
	if err != nil {
		t.Fatal(err)
	}
	if r, err := c.Receipt(t.Context(), block.Txs[0].Hash); err != nil || r == nil || !r.OK ||
		r.Nonce != block.Txs[0].Nonce {
		t.Errorf("%+v, %v", r, err)
	}
}

// A block is read once, however often its transactions are looked at.
func TestProofIsKept(t *testing.T) {
	d := startDevnet(t, evmnode.Config{})
	d.emitBlock(3)
	asked := 0
	url := startProxy(t, d.HTTPURL(), func(request, answer []byte) []byte {
		if bytes.Contains(request, []byte("eth_getBlockReceipts")) {
			asked++
		}
		return answer
	})
	c := dial(t, d.config(url))
	block, err := c.Block(t.Context(), d.head().Hash)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		for _, tx := range block.Txs {
			if r, err := c.Receipt(t.Context(), tx.Hash); err != nil || r == nil || r.BlockHash == (chain.Hash{}) {
				t.Fatalf("%+v, %v", r, err)
			}
		}
	}
	if asked != 1 {
		t.Errorf("the block's receipts were read %d times", asked)
	}
}
