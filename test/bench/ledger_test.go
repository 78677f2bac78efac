package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/filters"
	"github.com/ethereum/go-ethereum/trie"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/test/rig"
)

// ledger is a node that serves a venue's blocks over JSON-RPC, with headers that hash and receipts that prove. It makes
// blocks as they are asked for and forgets the old ones, so that a long chain costs it no more than a short one.
type ledger struct {
	*httptest.Server
	tb    testing.TB
	venue *venue

	mu     sync.Mutex
	blocks []mined           // the newest, ascending
	number map[string]uint64 // of every block there ever was, by hash
	asked  uint64            // the newest block whose content was asked for
	until  int               // logs to make
	delay  time.Duration     // before each answer
}

// mined is a block as the node says it.
type mined struct {
	ref                chain.BlockRef
	header, txs        []byte // JSON: an object without its last brace, an array
	receipts, onlyLogs []byte // JSON arrays
	logs               []said
}

// said is a log as the node says it.
type said struct {
	topic common.Hash // its first
	text  []byte
}

const (
	remembered = 4000 // blocks
	spurt      = 512  // blocks the head runs ahead by when the reader has caught up; every other time it is one
)

// newLedger starts a node whose chain ends when so many logs were made.
func newLedger(tb testing.TB, logs int) *ledger {
	tb.Helper()
	l := &ledger{tb: tb, venue: newVenue(tb, nil, 1), until: logs, number: map[string]uint64{}}
	l.venue.accounts = 200 // so that the state stops growing long before the chain does
	l.venue.tip = chain.BlockRef{Number: 1}
	l.blocks = []mined{l.mine(chain.BlockRef{TimeMs: l.venue.tip.TimeMs}, nil)}
	l.venue.tip = l.blocks[0].ref
	l.grow(spurt)
	l.Server = httptest.NewServer(http.HandlerFunc(l.serve))
	tb.Cleanup(l.Close)
	return l
}

// grow makes blocks, until there are enough logs.
func (l *ledger) grow(count int) {
	for range count {
		if l.venue.logs >= l.until {
			return
		}
		parent := l.venue.tip
		b := l.venue.next()
		m := l.mine(chain.BlockRef{Number: parent.Number + 1, Parent: parent.Hash, TimeMs: parent.TimeMs + 450},
			b.records)
		l.venue.tip = m.ref
		l.blocks = append(l.blocks, m)
	}
	if len(l.blocks) > 2*remembered {
		l.blocks = slices.Clone(l.blocks[len(l.blocks)-remembered:])
	}
}

// mine puts records into a block.
func (l *ledger) mine(ref chain.BlockRef, transactions [][]routed) mined {
	var receipts types.Receipts
	var txs []chain.Tx
	for _, records := range transactions {
		receipt := &types.Receipt{Status: 1, GasUsed: 3_000_000, CumulativeGasUsed: uint64(len(receipts)+1) * 3_000_000}
		for _, r := range records {
			switch m := r.message.(type) {
			case wire.Log:
				receipt.Logs = append(receipt.Logs, logOf(m.Log))
			case wire.Tx:
				txs = append(txs, m.Tx)
			}
		}
		receipt.Bloom = types.CreateBloom(receipt)
		receipts = append(receipts, receipt)
	}
	signed := make(types.Transactions, len(txs))
	for i := range txs {
		signed[i] = l.signed(txs[i])
		txs[i].Hash = chain.Hash(signed[i].Hash())
		txs[i].From = chain.Address(crypto.PubkeyToAddress(ledgerKey.PublicKey))
	}
	header := &types.Header{
		ParentHash: common.Hash(ref.Parent), Number: new(big.Int).SetUint64(ref.Number), Time: ref.TimeMs / 1000,
		Difficulty: big.NewInt(2),
		GasLimit:   140_000_000, UncleHash: types.EmptyUncleHash,
		TxHash:      types.DeriveSha(signed, trie.NewStackTrie(nil)),
		Bloom:       types.MergeBloom(receipts),
		ReceiptHash: types.DeriveSha(receipts, trie.NewListHasher()),
	}
	ref.Hash = chain.Hash(header.Hash())
	l.number[ref.Hash.Hex()] = ref.Number
	return l.written(ref, header, receipts, signed, txs)
}

// ledgerKey signs every transaction.
var ledgerKey = crypto.ToECDSAUnsafe(crypto.Keccak256([]byte("a keeper")))

// signed is a transaction as it stands in a block.
func (l *ledger) signed(tx chain.Tx) *types.Transaction {
	to := common.Address(tx.To)
	signed, err := types.SignNewTx(ledgerKey, types.HomesteadSigner{}, &types.LegacyTx{Nonce: tx.Nonce,
		GasPrice: new(big.Int).SetUint64(tx.GasPrice), Gas: 5_000_000, To: &to, Data: tx.Hash[:]})
	if err != nil {
		l.tb.Fatal(err)
	}
	return signed
}

func logOf(m chain.Log) *types.Log {
	out := &types.Log{Address: common.Address(m.Address), Data: m.Data}
	for _, topic := range m.Topics {
		out.Topics = append(out.Topics, common.Hash(topic))
	}
	return out
}

// written puts a block down as JSON.
func (l *ledger) written(ref chain.BlockRef, header *types.Header, receipts types.Receipts, signed types.Transactions,
	txs []chain.Tx) mined {
	var shortTxs, shortReceipts []map[string]any
	var all []*types.Log
	for i, tx := range txs {
		at := map[string]any{"blockHash": ref.Hash, "transactionIndex": hexutil.Uint64(i), "from": tx.From, "to": tx.To}
		v, r, s := signed[i].RawSignatureValues()
		short := map[string]any{"hash": tx.Hash, "nonce": hexutil.Uint64(tx.Nonce),
			"blockNumber": hexutil.Uint64(ref.Number), "type": "0x0", "input": hexutil.Bytes(signed[i].Data()),
			"value": "0x0", "gas": hexutil.Uint64(5_000_000), "gasPrice": hexutil.Uint64(tx.GasPrice),
			"v": (*hexutil.Big)(v), "r": (*hexutil.Big)(r), "s": (*hexutil.Big)(s)}
		receipt := map[string]any{
			"transactionHash": tx.Hash, "blockNumber": hexutil.Uint64(ref.Number), "type": "0x0", "status": "0x1",
			"logsBloom":         receipts[i].Bloom,
			"gasUsed":           hexutil.Uint64(receipts[i].GasUsed),
			"cumulativeGasUsed": hexutil.Uint64(receipts[i].CumulativeGasUsed),
			"effectiveGasPrice": hexutil.Uint64(tx.GasPrice), "logs": receipts[i].Logs,
		}
		for key, value := range at {
			short[key], receipt[key] = value, value
		}
		for _, log := range receipts[i].Logs {
			log.BlockNumber, log.BlockHash, log.TxHash, log.TxIndex, log.Index = ref.Number, common.Hash(ref.Hash),
				common.Hash(tx.Hash), uint(i), uint(len(all))
			all = append(all, log)
		}
		shortTxs, shortReceipts = append(shortTxs, short), append(shortReceipts, receipt)
	}
	head := bytes.TrimSuffix(l.json(header), []byte("}"))
	head = fmt.Appendf(head, `,"milliTimestamp":"0x%x","uncles":[]`, ref.TimeMs)
	m := mined{ref: ref, header: head, txs: l.array(shortTxs), receipts: l.array(shortReceipts), onlyLogs: l.array(all)}
	for _, log := range all {
		m.logs = append(m.logs, said{log.Topics[0], l.json(log)})
	}
	return m
}

func (l *ledger) array(v any) []byte {
	if text := l.json(v); !bytes.Equal(text, []byte("null")) {
		return text
	}
	return []byte("[]")
}

func (l *ledger) json(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		l.tb.Error(err)
	}
	return text
}

type rpcCall struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

func (l *ledger) serve(w http.ResponseWriter, r *http.Request) {
	var raw json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&raw); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if l.delay > 0 {
		timer := time.NewTimer(l.delay)
		<-timer.C
	}
	var calls []rpcCall
	if raw[0] != '[' {
		raw = slices.Concat([]byte("["), raw, []byte("]"))
	} else {
		defer func() { _, _ = w.Write([]byte("]")) }()
		_, _ = w.Write([]byte("["))
	}
	if err := json.Unmarshal(raw, &calls); err != nil {
		l.tb.Error(err)
	}
	for i, c := range calls {
		if i > 0 {
			_, _ = w.Write([]byte(","))
		}
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, c.ID, l.answer(c))
	}
}

// answer says what a node would.
func (l *ledger) answer(c rpcCall) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch c.Method {
	case "eth_chainId":
		return fmt.Appendf(nil, `"0x%x"`, chainID)
	case "eth_call":
		if bytes.Contains(c.Params[0], []byte("ca11bde0")) { // it has no Multicall3
			return []byte(`"0x"`)
		}
		return fmt.Appendf(nil, `"0x%064x"`, 0)
	case "eth_getCode":
		return []byte(`"0x00"`)
	case "web3_clientVersion":
		return []byte(`"ledger"`)
	case "eth_getBlockByNumber", "eth_getBlockByHash":
		if b := l.find(c.Params[0]); b != nil {
			txs := []byte("[]")
			if string(c.Params[1]) == "true" {
				txs = b.txs
				l.asked = max(l.asked, b.ref.Number)
			}
			return slices.Concat(b.header, []byte(`,"transactions":`), txs, []byte("}"))
		}
	case "eth_getBlockReceipts":
		if b := l.find(c.Params[0]); b != nil {
			return b.receipts
		}
	case "eth_getTransactionReceipt": // of a block that was forgotten
	case "eth_getLogs":
		var which filters.FilterCriteria
		if err := json.Unmarshal(c.Params[0], &which); err != nil {
			l.tb.Error(err)
		}
		if which.BlockHash == nil {
			return l.logsBetween(which)
		}
		if b := l.find(l.json(which.BlockHash)); b != nil {
			return b.onlyLogs
		}
	default:
		l.tb.Errorf("nobody answers %s", c.Method)
	}
	return []byte("null")
}

// logsBetween are the logs of the emitter in a range of blocks that are remembered, by their first topic.
func (l *ledger) logsBetween(which filters.FilterCriteria) []byte {
	first, text := l.blocks[0].ref.Number, []byte("[")
	for n := which.FromBlock.Uint64(); n <= which.ToBlock.Uint64() && n < first+uint64(len(l.blocks)); n++ {
		for _, log := range l.blocks[n-first].logs {
			if len(which.Topics) > 0 && len(which.Topics[0]) > 0 && !slices.Contains(which.Topics[0], log.topic) {
				continue
			}
			if len(text) > 1 {
				text = append(text, ',')
			}
			text = append(text, log.text...)
		}
	}
	return append(text, ']')
}

// find looks a block up by tag, number or hash. Whoever asks for the newest and has read all there was finds more.
func (l *ledger) find(what json.RawMessage) *mined {
	var which string
	if err := json.Unmarshal(what, &which); err != nil {
		l.tb.Error(err)
	}
	newest := len(l.blocks) - 1
	switch {
	case which == "finalized":
		return &l.blocks[max(0, newest-2)]
	case which == "latest":
		if head := l.blocks[newest].ref.Number; l.asked == head {
			l.grow([]int{1, 1, 1, spurt}[head%4])
		}
		return &l.blocks[len(l.blocks)-1]
	}
	number, known := l.number[which]
	if !known && len(which) < 2+64 {
		number = hexutil.MustDecodeUint64(which)
	}
	first := l.blocks[0].ref.Number
	if number < first || number >= first+uint64(len(l.blocks)) {
		return nil
	}
	return &l.blocks[number-first]
}

// What the ledger serves is a chain to those who check it: bodies and receipts hash to the headers' roots.
func TestLedgerIsAChain(t *testing.T) {
	l := newLedger(t, 2000)
	cfg := evm.DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(l.URL)}
	c := rig.Node(t, chainID, cfg)
	for number := range uint64(8) {
		block, err := c.BlockAt(t.Context(), number+2)
		if err != nil {
			t.Fatal(err)
		}
		receipts, err := c.Receipts(t.Context(), block)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range receipts {
			if tx, err := c.Verified(block, r); err != nil || tx.From != r.From {
				t.Fatalf("transaction %s of block %d: %+v, %v", r.Hash, number+2, tx, err)
			}
		}
	}
}
