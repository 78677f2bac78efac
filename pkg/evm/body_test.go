package evm

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
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
	hashes := []common.Hash{}
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
			Value: number(), Data: some(200), AccessList: access, BlobFeeCap: number(),
			BlobHashes: append(hashes, common.Hash{1})}
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

// A transaction of any type is what was signed, whoever its receipt names, and who shows another one is found out.
func TestTransactionsAreVerified(t *testing.T) {
	key, r := testKey(t), Reader{pool: &pool{chainID: fakeChainID}}
	signer := chain.Address(crypto.PubkeyToAddress(key.PublicKey))
	rapid.Check(t, func(t *rapid.T) {
		var txs types.Transactions
		for range rapid.IntRange(1, 6).Draw(t, "count") {
			txs = append(txs, drawTx(t, key))
		}
		at := rapid.IntRange(0, len(txs)-1).Draw(t, "at")
		lie := rapid.SampledFrom([]string{"", "from", "hash", "gas", "type"}).Draw(t, "lie")
		n := -1
		block, err := decodeBlock(bodyOf(t, txs, func(shown map[string]any) {
			if shown["from"] = signer; n+1 == at && lie != "" {
				shown[lie] = map[string]any{"from": venue, "hash": chain.Hash{1}, "type": hexutil.Uint64(0x7e),
					"gas": hexutil.Uint64(txs[at].Gas() ^ 1)}[lie]
			}
			n++
		}))
		if err == nil {
			err = block.checkBody()
		}
		if err != nil || len(block.Txs) != len(txs) || block.wholeBody() != (lie == "" || lie == "from") {
			t.Fatalf("%d transactions, whole %t, %v", len(block.Txs), block.wholeBody(), err)
		}
		want := chain.Tx{Hash: block.Txs[at].Hash, From: signer, Nonce: txs[at].Nonce(), Index: uint32(at), OK: true}
		if to := txs[at].To(); to != nil {
			want.To = chain.Address(*to)
		}
		receipt := Receipt{Tx: chain.Tx{Hash: want.Hash, From: venue, To: venue, Index: want.Index, OK: true},
			kind: uint64(txs[at].Type())}
		if got, err := r.Verified(block, receipt); (err == nil) != (lie == "" || lie == "from") ||
			err == nil && got != want {
			t.Fatalf("%+v, %v, want %+v without a lie about %q", got, err, want, lie)
		}
	})
}

// showing makes a node show the only transaction of each block otherwise, so many times.
func showing(truth fakeChain, times int, change func(tx map[string]any)) script {
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
		var txs []any
		for i := range times {
			tx := maps.Clone(block["transactions"].([]any)[0].(map[string]any))
			tx["transactionIndex"] = hexutil.Uint64(i)
			change(tx)
			txs = append(txs, tx)
		}
		block["transactions"] = txs
		return block, nil, true
	}
}

// A chain with transactions of a type that this build does not know is read on: receipts prove logs and types, and say
// who sent what. Nobody is excluded.
func TestUnknownTransactionsStopNobody(t *testing.T) {
	replies := []receiptReply{{kind: 2, status: 1, cumulativeGas: 21000},
		{kind: 0x7e, status: 1, cumulativeGas: 50000}}
	var encoded bytes.Buffer
	list := types.Receipts{{Type: 2, Status: 1, CumulativeGasUsed: 50000}}
	list.EncodeIndex(0, &encoded)
	own := slices.Clone(encoded.Bytes())
	own[0] = 0x7e
	encoded.Reset()
	if receiptListOf(replies).EncodeIndex(1, &encoded); !slices.Equal(encoded.Bytes(), own) {
		t.Errorf("a receipt of an unknown type is %x, want %x", encoded.Bytes(), own)
	}
	block := Block{Txs: make([]chain.Tx, 2), shown: make([][]byte, 2)}
	receipt := Receipt{Tx: chain.Tx{From: venue, Index: 1, OK: true}, kind: 0x7e}
	if tx, err := (Reader{pool: &pool{}}).Verified(block, receipt); err != nil || tx != receipt.Tx {
		t.Errorf("%+v, %v", tx, err)
	}
}

// Receipts that are not those of the transactions that are shown are no lie where the body does not come to its header.
// The next time another endpoint is asked for it.
func TestBodiesThatFitNoReceipts(t *testing.T) {
	asItIs, other := func(map[string]any) {}, func(tx map[string]any) { tx["hash"] = common.Hash{1} }
	for name, told := range map[string]func(truth fakeChain) script{
		"another hash": func(truth fakeChain) script { return showing(truth, 1, other) },
		"one too many": func(truth fakeChain) script { return showing(truth, 2, asItIs) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes, truth := fakes(2, 50)
				c, _ := dialFakes(t, nil, nodes...)
				nodes[0].inject(told(truth))
				prefer(c.pool.public[0])
				for try := range 2 {
					block, err := c.Block(t.Context(), truth.ref(40).Hash)
					if err != nil {
						t.Fatal(err)
					}
					receipts, err := c.Receipts(t.Context(), block)
					if fine := try > 0; (err == nil && len(receipts) == 1) != fine {
						t.Errorf("time %d: %d receipts, %v", try, len(receipts), err)
					}
				}
				if b, r := excluded(c, 0, ForBodies), excluded(c, 0, ForReceipts); b != ReasonUnreadable || r != "" {
					t.Errorf("excluded for bodies %q, for receipts %q", b, r)
				}
				if all := c.Endpoints()[1].Excluded; len(all) > 0 {
					t.Errorf("the honest one is excluded: %+v", all)
				}
			})
		})
	}
}
