package evm

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/holiman/uint256"
	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
)

func testKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := crypto.ToECDSA(crypto.Keccak256([]byte("a sender")))
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

// drawTx makes up a signed transaction of any type.
func drawTx(t *rapid.T, key *ecdsa.PrivateKey) *types.Transaction {
	some := func(most int) []byte { return rapid.SliceOfN(rapid.Byte(), 0, most).Draw(t, "bytes") }
	number := func() *uint256.Int { return new(uint256.Int).SetBytes(some(32)) }
	large := func() *big.Int { return number().ToBig() }
	id := uint256.NewInt(fakeChainID)
	account := common.BytesToAddress(some(20))
	nonce, gas := rapid.Uint64().Draw(t, "nonce"), rapid.Uint64().Draw(t, "gas")
	to := &account
	if rapid.IntRange(0, 3).Draw(t, "creates") == 0 {
		to = nil
	}
	var hashes []common.Hash
	for range rapid.IntRange(0, 2).Draw(t, "hashes") {
		hashes = append(hashes, common.BytesToHash(some(32)))
	}
	access := types.AccessList{{Address: account, StorageKeys: hashes}, {Address: account,
		StorageKeys: []common.Hash{}}}[:rapid.IntRange(0, 2).Draw(t, "access")]
	var data types.TxData
	signer := types.LatestSignerForChainID(id.ToBig())
	switch kind := rapid.IntRange(-1, types.SetCodeTxType).Draw(t, "type"); kind {
	case -1, types.LegacyTxType:
		if kind < 0 {
			signer = types.HomesteadSigner{}
		}
		data = &types.LegacyTx{Nonce: nonce, GasPrice: large(), Gas: gas, To: to, Value: large(), Data: some(200)}
	case types.AccessListTxType:
		data = &types.AccessListTx{ChainID: id.ToBig(), Nonce: nonce, GasPrice: large(), Gas: gas, To: to,
			Value: large(), Data: some(200), AccessList: access}
	case types.DynamicFeeTxType:
		data = &types.DynamicFeeTx{ChainID: id.ToBig(), Nonce: nonce, GasTipCap: large(), GasFeeCap: large(), Gas: gas,
			To: to, Value: large(), Data: some(200), AccessList: access}
	case types.BlobTxType:
		data = &types.BlobTx{ChainID: id, Nonce: nonce, GasTipCap: number(), GasFeeCap: number(), Gas: gas, To: account,
			Value: number(), Data: some(200), AccessList: access, BlobFeeCap: number(), BlobHashes: hashes}
	default:
		auth := types.SetCodeAuthorization{ChainID: *number(), Address: account, Nonce: nonce, V: uint8(gas % 2),
			R: *number(), S: *number()}
		data = &types.SetCodeTx{ChainID: id, Nonce: nonce, GasTipCap: number(), GasFeeCap: number(), Gas: gas,
			To: account, Value: number(), Data: some(200), AccessList: access,
			AuthList: []types.SetCodeAuthorization{auth, auth}[:rapid.IntRange(1, 2).Draw(t, "authorizations")]}
	}
	tx, err := types.SignNewTx(key, signer, data)
	if err != nil {
		t.Fatal(err)
	}
	return tx
}

// inOtherWords shows a transaction as some nodes do.
func inOtherWords(t *rapid.T, shown map[string]any) {
	for name, value := range shown {
		if value == nil && rapid.Bool().Draw(t, "absent") && name != "to" {
			delete(shown, name)
		}
	}
	if r, _ := shown["r"].(string); rapid.Bool().Draw(t, "padded") {
		shown["r"] = "0x" + strings.Repeat("0", 64-len(r)+2) + r[2:]
	}
	if shown["value"] == "0x0" && rapid.Bool().Draw(t, "zero without digits") {
		shown["value"] = "0x"
	}
	switch {
	case shown["type"] == "0x0" && rapid.Bool().Draw(t, "untyped"):
		delete(shown, "type")
	case shown["type"] == "0x0" && rapid.Bool().Draw(t, "type null"):
		shown["type"] = nil
	case shown["type"] != "0x0" && rapid.Bool().Draw(t, "as Bitcoin's v"):
		delete(shown, "yParity")
		shown["v"] = map[any]string{"0x0": "0x1b", "0x1": "0x1c"}[shown["v"]]
	case shown["type"] != "0x0" && rapid.Bool().Draw(t, "as v"):
		delete(shown, "yParity")
	case shown["type"] != "0x0" && rapid.Bool().Draw(t, "v is something else"):
		shown["v"] = "0x1b"
	}
	shown["blockTimestamp"] = 7
}

// bodyOf is a block with these transactions.
func bodyOf(tb rapid.TB, txs types.Transactions, change func(map[string]any)) []byte {
	header := &types.Header{Number: big.NewInt(7), Difficulty: big.NewInt(2), BaseFee: new(big.Int),
		TxHash: types.DeriveSha(txs, trie.NewListHasher())}
	shown := []any{}
	for i, tx := range txs {
		one := showTx(tx, header.Hash(), i)
		change(one)
		shown = append(shown, one)
	}
	block := asMap(header)
	block["transactions"] = shown
	raw, err := json.Marshal(block)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// Every type of transaction is encoded as go-ethereum does, its root is the header's, and who signed it is recovered.
func TestBodiesAreReadAsGoEthereumReadsThem(t *testing.T) {
	key := testKey(t)
	rapid.Check(t, func(t *rapid.T) {
		var txs types.Transactions
		for range rapid.IntRange(0, 6).Draw(t, "count") {
			txs = append(txs, drawTx(t, key))
		}
		block, err := decodeBlock(bodyOf(t, txs, func(shown map[string]any) { inOtherWords(t, shown) }))
		if err == nil {
			err = block.checkBody()
		}
		if err != nil || !block.BodyProven() || len(block.Txs) != len(txs) {
			t.Fatalf("%d transactions, proven %t (%s), %v", len(block.Txs), block.BodyProven(), block.body.doubt(), err)
		}
		for i, tx := range txs {
			want, err := tx.MarshalBinary()
			if err != nil || !slices.Equal(block.body.at(i), want) {
				t.Fatalf("transaction %d is %x, %v; want %x", i, block.body.at(i), err, want)
			}
			from, err := block.signer(i, fakeChainID)
			if err != nil || from != chain.Address(crypto.PubkeyToAddress(key.PublicKey)) {
				t.Fatalf("transaction %d is from %s, %v", i, from, err)
			}
			if kind, known := block.kind(i); !known || kind != uint64(tx.Type()) {
				t.Fatalf("transaction %d is of type %d, known %t", i, kind, known)
			}
		}
	})
}

// The root is right whatever the number of transactions: above 127 keys have another order.
func TestRootsOfManyTransactions(t *testing.T) {
	for _, count := range []int{0, 1, 2, 127, 128, 129, 300} {
		var txs types.Transactions
		for i := range count {
			txs = append(txs, fakeTx(uint64(i), []byte{byte(i)}))
		}
		block, err := decodeBlock(bodyOf(t, txs, func(map[string]any) {}))
		if err == nil {
			err = block.checkBody()
		}
		if err != nil || !block.BodyProven() {
			t.Errorf("%d transactions: %v", count, err)
		}
	}
}

// showing makes a node show the only transaction of each block otherwise.
func showing(truth fakeChain, change func(tx map[string]any)) script {
	return func(_ context.Context, method string, params []json.RawMessage) (any, *fault, bool) {
		if method != methodBlock && (method != methodBlockAt || string(params[1]) != "true") {
			return nil, nil, false
		}
		honest := &fakeNode{chain: truth, head: len(truth) - 1}
		said, _ := honest.honest(method, params, honest.head)
		block, is := said.(map[string]any)
		if !is {
			return nil, nil, false
		}
		block = maps.Clone(block)
		tx := maps.Clone(block["transactions"].([]any)[0].(map[string]any))
		change(tx)
		block["transactions"] = []any{tx}
		return block, nil, true
	}
}

// ofNoKnownType makes a transaction one of a type that nobody knows.
func ofNoKnownType(tx map[string]any) { tx["type"] = hexutil.Uint64(0x7e) }

// A chain with transactions that this build cannot encode is read on, by the word of one endpoint, which proves
// nothing; nobody is excluded.
func TestUnknownTransactionsStopNobody(t *testing.T) {
	for _, count := range []int{1, 3} {
		synctest.Test(t, func(t *testing.T) {
			nodes, truth := fakes(count, 50)
			c, _ := dialFakes(t, nil, nodes...)
			for _, n := range nodes {
				n.obey(showing(truth, ofNoKnownType))
			}
			block, err := c.Block(t.Context(), truth.ref(40).Hash)
			if err != nil || len(block.Txs) != 1 || block.BodyProven() || c.Sender(block, 0) != venue {
				t.Fatalf("%+v, %v", block.Txs, err)
			}
			receipts, proven, err := c.Receipts(t.Context(), block)
			if err != nil || proven || len(receipts) != 1 {
				t.Errorf("%d receipts, proven %t, %v", len(receipts), proven, err)
			}
			for i := range nodes {
				if all := c.Endpoints()[i].Excluded; len(all) > 0 {
					t.Errorf("%d endpoints, number %d is excluded: %+v", count, i, all)
				}
			}
		})
	}
}

// Where the receipts are right and do not fit a body that nobody can check, who serves them is not blamed.
func TestReceiptsAreNotBlamedForTheBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nodes, truth := fakes(2, 50)
		c, _ := dialFakes(t, nil, nodes...)
		nodes[0].obey(showing(truth, func(tx map[string]any) {
			ofNoKnownType(tx)
			tx["hash"] = common.Hash{1}
		}))
		nodes[1].obey(refuse(refusal(-32000, "sorry"), methodBlock))
		block, err := c.Block(t.Context(), truth.ref(40).Hash)
		if err != nil || block.BodyProven() {
			t.Fatalf("proven %t, %v", block.BodyProven(), err)
		}
		if receipts, proven, err := c.Receipts(t.Context(), block); !NotFound(err) || proven {
			t.Errorf("%d receipts, proven %t, %v", len(receipts), proven, err)
		}
		if r := excluded(c, 1, ForReceipts); r != "" {
			t.Errorf("the honest one is excluded for %q", r)
		}
	})
}
