package evmnode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"slices"
	"strings"
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

func TestClientRoundTrips(t *testing.T) {
	c := start(t, Config{Manual: true, ChainID: 97}, 2)
	tx := c.emit(0, 7)
	waiting := c.sign(1, 0, 10, &emitter, common.BigToHash(big.NewInt(8)).Bytes())
	c.mine(1)
	if err := c.http.SendTransaction(t.Context(), waiting); err != nil {
		t.Fatal(err)
	}
	c.overBoth(t, func(t *testing.T, client *ethclient.Client) {
		ctx := t.Context()
		check := func(what string, err error, ok bool) {
			t.Helper()
			if err != nil || !ok {
				t.Errorf("%s: err %v, as expected %v", what, err, ok)
			}
		}
		id, err := client.ChainID(ctx)
		check("chain id", err, id.Uint64() == 97)
		id, err = client.NetworkID(ctx)
		check("network id", err, id.Uint64() == 97)
		number, err := client.BlockNumber(ctx)
		check("block number", err, number == 1)
		progress, err := client.SyncProgress(ctx)
		check("syncing", err, progress == nil)

		block, err := client.BlockByNumber(ctx, nil)
		check("block", err, len(block.Transactions()) == 1 && block.Transactions()[0].Hash() == tx.Hash())
		byHash, err := client.BlockByHash(ctx, block.Hash())
		check("block by hash", err, byHash.Hash() == block.Hash() && byHash.Hash() == c.Head().Hash())
		count, err := client.TransactionCount(ctx, block.Hash())
		check("transaction count", err, count == 1)
		inBlock, err := client.TransactionInBlock(ctx, block.Hash(), 0)
		check("transaction in block", err, inBlock.Hash() == tx.Hash())
		sender, err := client.TransactionSender(ctx, tx, block.Hash(), 0)
		check("sender", err, sender == c.account(0))

		mined, isPending, err := client.TransactionByHash(ctx, tx.Hash())
		check("mined transaction", err, !isPending && mined.Hash() == tx.Hash())
		pooled, isPending, err := client.TransactionByHash(ctx, waiting.Hash())
		check("waiting transaction", err, isPending && pooled.Hash() == waiting.Hash())
		receipt, err := client.TransactionReceipt(ctx, tx.Hash())
		check("receipt", err, receipt.Status == 1 && len(receipt.Logs) == 1 && receipt.BlockHash == block.Hash() &&
			receipt.GasUsed > 21000)
		receipts, err := client.BlockReceipts(ctx, rpc.BlockNumberOrHashWithHash(block.Hash(), false))
		check("block receipts", err, len(receipts) == 1 && receipts[0].TxHash == tx.Hash())

		balance, err := client.BalanceAt(ctx, c.account(1), nil)
		check("balance", err, balance.Cmp(new(big.Int).Exp(big.NewInt(10), big.NewInt(20), nil)) == 0)
		spent, err := client.BalanceAtHash(ctx, c.account(0), block.Hash())
		check("balance at hash", err, spent.Cmp(balance) < 0)
		code, err := client.CodeAt(ctx, emitter, nil)
		check("code", err, bytes.Equal(code, emitterCode))
		slot, err := client.StorageAt(ctx, emitter, common.Hash{}, nil)
		check("storage", err, new(big.Int).SetBytes(slot).Int64() == 7)
		slot, err = client.StorageAt(ctx, emitter, common.Hash{}, big.NewInt(0))
		check("storage in the past", err, new(big.Int).SetBytes(slot).Sign() == 0)

		price, err := client.SuggestGasPrice(ctx)
		check("gas price", err, price.Cmp(tx.GasFeeCap()) == 0)
		tip, err := client.SuggestGasTipCap(ctx)
		check("tip", err, tip.Cmp(price) == 0)
		history, err := client.FeeHistory(ctx, 2, nil, []float64{0, 50, 100})
		check("fee history", err, history.OldestBlock.Sign() == 0 && len(history.BaseFee) == 3 &&
			len(history.Reward) == 2 &&
			history.Reward[1][1].Cmp(tx.GasTipCap()) == 0 && history.GasUsedRatio[1] > 0)

		nobody := common.HexToHash("0x01")
		_, err = client.HeaderByHash(ctx, nobody)
		check("unknown block", nil, errors.Is(err, ethereum.NotFound))
		_, err = client.HeaderByNumber(ctx, big.NewInt(99))
		check("block of the future", nil, errors.Is(err, ethereum.NotFound))
		_, err = client.TransactionReceipt(ctx, waiting.Hash())
		check("receipt of a waiting transaction", nil, errors.Is(err, ethereum.NotFound))
		_, err = client.BalanceAt(ctx, emitter, big.NewInt(99))
		check("state of the future", nil, err != nil && err.Error() == "header not found")
	})
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

func TestCallAndEstimate(t *testing.T) {
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
		gas, err := client.EstimateGas(ctx, msg)
		if used := c.receipt(c.mustTx(t, old)).GasUsed; err != nil || gas < 21000 || gas > 2*used {
			t.Errorf("estimate %d (%v), the same call used %d", gas, err, used)
		}
		if _, err := client.EstimateGas(ctx, ethereum.CallMsg{From: c.account(0), To: &emitter}); err == nil ||
			!strings.Contains(err.Error(), "reverted") {
			t.Errorf("estimate of a revert: %v", err)
		}
	})
	c.mustRejectForeignHash(t)
}

func (c *chainTest) mustTx(t *testing.T, block common.Hash) common.Hash {
	t.Helper()
	tx, err := c.http.TransactionInBlock(t.Context(), block, 0)
	if err != nil {
		t.Fatal(err)
	}
	return tx.Hash()
}

// mustRejectForeignHash checks EIP-1898 objects: a block of a lost branch is readable, unless the caller demands a
// canonical one.
func (c *chainTest) mustRejectForeignHash(t *testing.T) {
	t.Helper()
	old := c.Head().Hash()
	if _, err := c.Reorg(1, Replay); err != nil {
		t.Fatal(err)
	}
	var value hexutil.Bytes
	call := func(ref rpc.BlockNumberOrHash) error {
		return c.http.Client().CallContext(t.Context(), &value, "eth_getStorageAt", emitter, "0x0", ref)
	}
	if err := call(rpc.BlockNumberOrHashWithHash(old, false)); err != nil || value[31] != 1 {
		t.Errorf("state of the lost branch: %x, %v", value, err)
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

func TestStateOverrides(t *testing.T) {
	c := start(t, Config{Manual: true}, 0)
	// Returns slot 0: PUSH1 0 SLOAD PUSH1 0 MSTORE PUSH1 32 PUSH1 0 RETURN.
	reader := hexutil.Bytes(common.FromHex("60005460005260206000f3"))
	target := common.HexToAddress("0x1234")
	for name, override := range map[string]map[string]any{
		"stateDiff": {"code": reader, "stateDiff": map[common.Hash]common.Hash{{}: common.BigToHash(big.NewInt(9))}},
		"state":     {"code": reader, "state": map[common.Hash]common.Hash{{}: common.BigToHash(big.NewInt(9))}},
	} {
		var got hexutil.Bytes
		err := c.http.Client().CallContext(t.Context(), &got, "eth_call", map[string]any{"to": target}, "latest",
			map[common.Address]any{target: override})
		if err != nil || new(big.Int).SetBytes(got).Int64() != 9 {
			t.Errorf("%s: %x, %v", name, got, err)
		}
	}
}

func TestGetLogs(t *testing.T) {
	c := start(t, Config{Manual: true, LogRange: 10}, 1)
	for i := range int64(15) {
		c.emit(0, i)
		c.mine(1)
	}
	third := common.BigToHash(big.NewInt(3))
	block4, err := c.http.HeaderByNumber(t.Context(), big.NewInt(4))
	if err != nil {
		t.Fatal(err)
	}
	hash4 := block4.Hash()
	for _, test := range []struct {
		name  string
		query ethereum.FilterQuery
		want  int
		err   string
	}{
		{"all in range", ethereum.FilterQuery{FromBlock: big.NewInt(1), ToBlock: big.NewInt(11)}, 11, ""},
		{"range beyond the head", ethereum.FilterQuery{FromBlock: big.NewInt(14), ToBlock: big.NewInt(20)}, 2, ""},
		{"latest to latest", ethereum.FilterQuery{FromBlock: big.NewInt(int64(rpc.LatestBlockNumber))}, 1, ""},
		{"safe and finalized", ethereum.FilterQuery{FromBlock: big.NewInt(int64(rpc.FinalizedBlockNumber)),
			ToBlock: big.NewInt(int64(rpc.SafeBlockNumber))}, 2, ""},
		{"second topic", ethereum.FilterQuery{FromBlock: big.NewInt(1), ToBlock: big.NewInt(11),
			Topics: [][]common.Hash{{emitted}, {third}}}, 1, ""},
		{"any first topic", ethereum.FilterQuery{FromBlock: big.NewInt(1), ToBlock: big.NewInt(11),
			Topics: [][]common.Hash{nil, {third}}}, 1, ""},
		{"two values of a topic", ethereum.FilterQuery{FromBlock: big.NewInt(1), ToBlock: big.NewInt(11),
			Topics: [][]common.Hash{nil, {third, {}}}}, 2, ""},
		{"too many topics", ethereum.FilterQuery{FromBlock: big.NewInt(1), ToBlock: big.NewInt(11),
			Topics: [][]common.Hash{nil, nil, {third}}}, 0, ""},
		{"other address", ethereum.FilterQuery{FromBlock: big.NewInt(1), ToBlock: big.NewInt(11),
			Addresses: []common.Address{{1}}}, 0, ""},
		{"by hash", ethereum.FilterQuery{BlockHash: &hash4, Addresses: []common.Address{emitter}}, 1, ""},
		{"unknown hash", ethereum.FilterQuery{BlockHash: &common.Hash{1}}, 0, "unknown block"},
		{"too wide", ethereum.FilterQuery{FromBlock: big.NewInt(1), ToBlock: big.NewInt(12)}, 0,
			"exceed maximum block range: 10"},
		{"a number with latest", ethereum.FilterQuery{FromBlock: big.NewInt(15)}, 0, "exceed maximum block range: 10"},
		{"backwards", ethereum.FilterQuery{FromBlock: big.NewInt(2), ToBlock: big.NewInt(1)}, 0,
			"invalid block range params"},
	} {
		t.Run(test.name, func(t *testing.T) {
			logs, err := c.http.FilterLogs(t.Context(), test.query)
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Fatalf("got %v, want %q", err, test.err)
				}
				return
			}
			if err != nil || len(logs) != test.want {
				t.Fatalf("got %d logs and %v, want %d", len(logs), err, test.want)
			}
		})
	}
}

// The filter accepts what a node accepts: single values, lists, and null in any place.
func TestLogFilterForms(t *testing.T) {
	a, b := common.HexToAddress("0xaa"), common.HexToHash("0xbb")
	quoted := func(h interface{ Hex() string }) string { return `"` + h.Hex() + `"` }
	for _, test := range []struct {
		raw       string
		addresses int
		topics    []int
	}{
		{`{}`, 0, nil},
		{`{"address":null,"topics":null}`, 0, nil},
		{`{"address":` + quoted(a) + `,"topics":[` + quoted(b) + `]}`, 1, []int{1}},
		{`{"address":[` + quoted(a) + `,` + quoted(a) + `],"topics":[null,[` + quoted(b) + `,` + quoted(b) + `]]}`, 2,
			[]int{0, 2}},
		{`{"topics":[[` + quoted(b) + `,null],[]]}`, 0, []int{0, 0}},
	} {
		var f logFilter
		if err := json.Unmarshal([]byte(test.raw), &f); err != nil {
			t.Errorf("%s: %v", test.raw, err)
			continue
		}
		var topics []int
		for _, position := range f.Topics {
			topics = append(topics, len(position))
		}
		if len(f.Addresses) != test.addresses || !slices.Equal(topics, test.topics) {
			t.Errorf("%s: %d addresses, topics %v", test.raw, len(f.Addresses), topics)
		}
	}
	for _, raw := range []string{`{"address":"0x12"}`, `{"address":{}}`, `{"topics":["0x12"]}`, `{"topics":[{}]}`} {
		if err := json.Unmarshal([]byte(raw), new(logFilter)); err == nil {
			t.Errorf("accepted %s", raw)
		}
	}
}

func TestBatches(t *testing.T) {
	c := start(t, Config{Manual: true}, 0)
	c.mine(3)
	c.overBoth(t, func(t *testing.T, client *ethclient.Client) {
		var number hexutil.Uint64
		var head *types.Header
		batch := []rpc.BatchElem{
			{Method: "eth_blockNumber", Result: &number},
			{Method: "eth_getBlockByNumber", Args: []any{"0x2", false}, Result: &head},
			{Method: "eth_noSuchMethod", Result: new(any)},
		}
		if err := client.Client().BatchCallContext(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
		if number != 3 || head.Number.Uint64() != 2 || batch[2].Error == nil {
			t.Errorf("number %d, head %v, unknown method %v", number, head.Number, batch[2].Error)
		}
	})
}

func TestDevnetMethods(t *testing.T) {
	c := start(t, Config{Manual: true}, 1)
	call := func(result any, method string, args ...any) error {
		return c.http.Client().CallContext(t.Context(), result, method, args...)
	}
	var head BlockRef
	if err := call(&head, "devnet_mine", map[string]any{"n": 5}); err != nil || head.Number != 5 ||
		head.Hash != c.Head().Hash() {
		t.Fatalf("mine: %+v, %v", head, err)
	}
	var fork Fork
	if err := call(&fork, "devnet_reorg", map[string]any{"depth": 2}); err != nil || fork.Ancestor.Number != 3 ||
		fork.OldTip != head || fork.NewTip.Number != 6 {
		t.Errorf("reorg: %+v, %v", fork, err)
	}
	for _, method := range []string{"devnet_resume", "devnet_stallFinality", "devnet_clearFaults"} {
		var ok bool
		if err := call(&ok, method); err != nil || !ok {
			t.Errorf("%s: %v, %v", method, ok, err)
		}
	}
	for method, args := range map[string]any{
		"devnet_reorg": map[string]any{"depth": 100},
		"devnet_stall": map[string]any{"seconds": -1},
		"devnet_fault": map[string]any{"method": "eth_call"},
	} {
		if err := call(new(any), method, args); err == nil {
			t.Errorf("%s accepted %v", method, args)
		}
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
	logs := subscribed(t, func(ctx context.Context, ch chan<- types.Log) (ethereum.Subscription, error) {
		return c.ws.SubscribeFilterLogs(ctx, ethereum.FilterQuery{Addresses: []common.Address{emitter},
			Topics: [][]common.Hash{{emitted}}}, ch)
	})
	none := subscribed(t, func(ctx context.Context, ch chan<- types.Log) (ethereum.Subscription, error) {
		return c.ws.SubscribeFilterLogs(ctx, ethereum.FilterQuery{Addresses: []common.Address{{1}}}, ch)
	})
	for number := range int64(5) {
		tx := c.emit(0, number)
		c.mine(1)
		head := receive(t, "head", heads)
		if head.Hash() != c.Head().Hash() {
			t.Errorf("announced %s, is %s", head.Hash(), c.Head().Hash())
		}
		log := receive(t, "log", logs)
		if log.TxHash != tx.Hash() || log.BlockHash != head.Hash() || log.Removed {
			t.Errorf("log %+v of head %s", log, head.Hash())
		}
	}
	if len(none) > 0 {
		t.Error("a log came that was not asked for")
	}
	if _, err := c.http.SubscribeNewHead(t.Context(), make(chan *types.Header)); err == nil {
		t.Error("subscribed over HTTP")
	}
}
