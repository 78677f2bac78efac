package evmnode

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/ethereum/go-ethereum/trie"
)

// overBoth runs a test over HTTP and over WebSocket.
func (c *chainTest) overBoth(t *testing.T, test func(t *testing.T, client *ethclient.Client)) {
	t.Run("http", func(t *testing.T) { test(t, c.http) })
	t.Run("ws", func(t *testing.T) { test(t, c.ws) })
}

func TestBlockFieldsAreThoseOfANode(t *testing.T) {
	c := start(t, Config{Manual: true}, 1)
	c.emit(0, 1)
	c.mine(1)
	var block map[string]json.RawMessage
	if err := c.http.Client().CallContext(t.Context(), &block, "eth_getBlockByNumber", "latest", true); err != nil {
		t.Fatal(err)
	}
	var milli hexutil.Uint64
	if err := json.Unmarshal(block["milliTimestamp"], &milli); err != nil || uint64(milli) != MilliTime(c.Head()) {
		t.Errorf("milliTimestamp %s, want %d (%v)", block["milliTimestamp"], MilliTime(c.Head()), err)
	}
	want := []string{"baseFeePerGas", "difficulty", "extraData", "gasLimit", "gasUsed", "hash", "logsBloom",
		"milliTimestamp", "miner", "mixHash",
		"nonce", "number", "parentHash", "receiptsRoot", "sha3Uncles", "size", "stateRoot", "timestamp", "transactions",
		"transactionsRoot", "uncles"}
	for _, field := range want {
		if _, ok := block[field]; !ok {
			t.Errorf("field %s is missing", field)
		}
	}
	if string(block["baseFeePerGas"]) != `"0x0"` || string(block["gasLimit"]) != `"0x3473bc0"` {
		t.Errorf("base fee %s, gas limit %s", block["baseFeePerGas"], block["gasLimit"])
	}
}

// A scanner trusts a header only if its fields hash to the hash the node states, and receipts only if they hash to the
// header's root.
func TestHeadersAndReceiptsProveThemselves(t *testing.T) {
	c := start(t, Config{Manual: true}, 3)
	for i := range int64(100) {
		for sender := range i % 4 {
			c.emit(int(sender), i)
		}
		c.mine(1)
	}
	for number := range int64(101) {
		var stated struct{ Hash, ReceiptsRoot common.Hash }
		if err := c.http.Client().CallContext(t.Context(), &stated, "eth_getBlockByNumber",
			hexutil.EncodeUint64(uint64(number)), false); err != nil {
			t.Fatal(err)
		}
		h, err := c.ws.HeaderByNumber(t.Context(), big.NewInt(number))
		if err != nil {
			t.Fatal(err)
		}
		if h.Hash() != stated.Hash {
			t.Fatalf("block %d: fields hash to %s, node states %s", number, h.Hash(), stated.Hash)
		}
		receipts, err := c.http.BlockReceipts(t.Context(), rpc.BlockNumberOrHashWithHash(stated.Hash, false))
		if err != nil {
			t.Fatal(err)
		}
		if root := types.DeriveSha(types.Receipts(receipts), trie.NewStackTrie(nil)); root != stated.ReceiptsRoot {
			t.Errorf("block %d: receipts hash to %s, header has %s", number, root, stated.ReceiptsRoot)
		}
		if len(receipts) > 0 != types.BloomLookup(h.Bloom, emitter) {
			t.Errorf("block %d: %d receipts, but bloom says %v", number, len(receipts),
				types.BloomLookup(h.Bloom, emitter))
		}
	}
}

func TestCall(t *testing.T) {
	c := start(t, Config{Manual: true}, 1)
	c.emit(0, 1)
	c.mine(1)
	old := c.Head().Hash()
	c.overBoth(t, func(t *testing.T, client *ethclient.Client) {
		ctx := t.Context()
		_, err := client.CallContract(ctx, ethereum.CallMsg{From: c.account(0), To: &emitter}, nil)
		var withData rpc.DataError
		var withCode rpc.Error
		if !errors.As(err, &withData) || withData.ErrorData() != "0xdeadbeef" || !errors.As(err, &withCode) ||
			withCode.ErrorCode() != 3 {
			t.Errorf("revert arrives as %v", err)
		}
		msg := ethereum.CallMsg{From: c.account(0), To: &emitter, Data: common.BigToHash(big.NewInt(5)).Bytes()}
		if _, err := client.CallContractAtHash(ctx, msg, old); err != nil {
			t.Errorf("call at a hash: %v", err)
		}
	})
	c.mustRejectForeignHash(t)
}

// mustRejectForeignHash checks EIP-1898 objects: a block of a lost branch is readable, unless the caller demands a
// canonical one.
func (c *chainTest) mustRejectForeignHash(t *testing.T) {
	t.Helper()
	old := c.Head().Hash()
	if _, err := c.Reorg(1, Replay); err != nil {
		t.Fatal(err)
	}
	var count hexutil.Uint64
	call := func(ref rpc.BlockNumberOrHash) error {
		return c.http.Client().CallContext(t.Context(), &count, "eth_getTransactionCount", c.account(0), ref)
	}
	if err := call(rpc.BlockNumberOrHashWithHash(old, false)); err != nil || count != 1 {
		t.Errorf("state of the lost branch: %d transactions, %v", count, err)
	}
	if err := call(rpc.BlockNumberOrHashWithHash(old, true)); err == nil ||
		err.Error() != "hash is not currently canonical" {
		t.Errorf("canonical state of the lost branch: %v", err)
	}
	if err := call(rpc.BlockNumberOrHashWithHash(common.Hash{1}, false)); err == nil ||
		err.Error() != "header for hash not found" {
		t.Errorf("state of an unknown hash: %v", err)
	}
}

// subscribed opens a subscription and fails the test if it ends early.
func subscribed[T any](t *testing.T, open func(context.Context, chan<- T) (ethereum.Subscription, error)) <-chan T {
	t.Helper()
	ch := make(chan T, 1000)
	sub, err := open(t.Context(), ch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sub.Unsubscribe)
	return ch
}

func TestSubscriptions(t *testing.T) {
	c := start(t, Config{Manual: true}, 1)
	heads := subscribed(t, c.ws.SubscribeNewHead)
	for number := range int64(5) {
		c.emit(0, number)
		c.mine(1)
		head := receive(t, "head", heads)
		if head.Hash() != c.Head().Hash() {
			t.Errorf("announced %s, is %s", head.Hash(), c.Head().Hash())
		}
	}
	if _, err := c.http.SubscribeNewHead(t.Context(), make(chan *types.Header)); err == nil {
		t.Error("subscribed over HTTP")
	}
}
