package evm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/setting/secret"
)

// What reading a busy block of history over HTTP costs: its header in a batch, its body and its receipts, proven. A
// block has 120 transactions, one of which leaves 20 logs of the venue. The server writes prepared bytes, so that the
// time and the CPU are the client's. Run it by: go test -run '^$' -bench ReadHistory ./pkg/evm.
func BenchmarkReadHistory(b *testing.B) {
	const blocks, txs, logs = 64, 120, 20
	answers := history(b, blocks, txs, logs)
	server := httptest.NewServer(answers)
	defer server.Close()
	cfg := DefaultConfig()
	cfg.URLs = []secret.URL{secret.MustURL(server.URL)}
	c, err := Dial(b.Context(), fakeChainID, cfg, zerolog.Nop(), NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	began, used := time.Now(), cpuTime(b)
	for b.Loop() {
		headers, err := c.Blocks(b.Context(), 0, blocks-1)
		if err != nil {
			b.Fatal(err)
		}
		for _, h := range headers {
			block, err := c.Block(b.Context(), h.Hash)
			if err != nil {
				b.Fatal(err)
			}
			receipts, err := c.Receipts(b.Context(), block)
			if err != nil || len(receipts[1].Logs) != logs {
				b.Fatalf("block %d: %d receipts, %v", h.Number, len(receipts), err)
			}
		}
	}
	read := float64(b.N * blocks * logs)
	b.ReportMetric(read/time.Since(began).Seconds(), "logs/s")
	b.ReportMetric(float64((cpuTime(b)-used).Microseconds())/read, "CPU-µs/log")
}

// cpuTime is what the process has used.
func cpuTime(b *testing.B) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// prepared answers each method by what its first parameter is, with bytes.
type prepared map[string][]byte

func (p prepared) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	type request struct {
		ID     json.RawMessage   `json:"id"`
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	var requests []request
	batch := body[0] == '['
	if !batch {
		body = []byte("[" + string(body) + "]")
	}
	if err := json.Unmarshal(body, &requests); err != nil {
		panic(err)
	}
	var out bytes.Buffer
	for i, q := range requests {
		if i > 0 {
			out.WriteByte(',')
		}
		key := q.Method
		if len(q.Params) > 0 {
			key += string(q.Params[0])
		}
		_, _ = fmt.Fprintf(&out, `{"jsonrpc":"2.0","id":%s,"result":`, q.ID)
		out.Write(p[key])
		out.WriteByte('}')
	}
	answer := out.Bytes()
	if batch {
		answer = []byte("[" + out.String() + "]")
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(answer)
}

// history prepares a chain.
func history(b *testing.B, blocks, txs, logs int) prepared {
	answers := prepared{methodChainID: []byte(`"0x38"`)}
	parent := common.Hash{}
	for n := range blocks {
		receipts, signed := busyReceipts(txs, logs), busyTxs(n, txs)
		header := &types.Header{ParentHash: parent, Number: big.NewInt(int64(n)), Time: 1_700_000_000 + uint64(n),
			Difficulty: big.NewInt(2), BaseFee: new(big.Int), Extra: make([]byte, 300),
			Bloom:       types.MergeBloom(receipts),
			TxHash:      types.DeriveSha(signed, trie.NewListHasher()),
			ReceiptHash: types.DeriveSha(receipts, trie.NewListHasher())}
		hash := header.Hash()
		shownTxs, shownReceipts := showTxs(n, hash, signed, receipts)
		block := asMap(header)
		block["transactions"] = shownTxs
		slim := asMap(header)
		slim["transactions"] = []string{}
		answers[methodBlock+`"`+hash.Hex()+`"`] = mustJSON(b, block)
		answers[methodBlockAt+`"`+hexutil.EncodeUint64(uint64(n))+`"`] = mustJSON(b, slim)
		answers[methodBlockAt+`"latest"`] = mustJSON(b, slim)
		answers[methodReceipts+`"`+hash.Hex()+`"`] = mustJSON(b, shownReceipts)
		parent = hash
	}
	return answers
}

// busyReceipts are receipts of which the second has logs of the venue, and the others two short ones each.
func busyReceipts(txs, logs int) (receipts types.Receipts) {
	for i := range txs {
		r := &types.Receipt{Type: 2, Status: 1, CumulativeGasUsed: uint64(i+1) * 100_000}
		if i == 1 {
			for k := range logs {
				l := gmxLog(uint(k))
				l.Data = l.Data[:1500]
				r.Logs = append(r.Logs, &l)
			}
		} else {
			for range 2 {
				r.Logs = append(r.Logs, &types.Log{Address: common.Address{0x55}, Topics: make([]common.Hash, 3),
					Data: make([]byte, 32)})
			}
		}
		r.Bloom = types.CreateBloom(r)
		receipts = append(receipts, r)
	}
	return receipts
}

// busyTxs are the transactions that the receipts are of: 600 bytes of input each, and a signature as long as one is.
func busyTxs(n, count int) (txs types.Transactions) {
	to := common.Address(venue)
	for i := range count {
		number := new(big.Int).SetBytes(bytes.Repeat([]byte{byte(n + 1), byte(i + 1)}, 16))
		txs = append(txs, types.NewTx(&types.DynamicFeeTx{ChainID: big.NewInt(fakeChainID), Nonce: uint64(i),
			GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(1), Gas: 100_000, To: &to,
			Data: bytes.Repeat([]byte{0, 0xff}, 300), V: big.NewInt(1), R: number, S: number}))
	}
	return txs
}

// showTxs is how a node shows the transactions of a block, and their receipts.
func showTxs(n int, block common.Hash, signed types.Transactions, receipts types.Receipts) (txs, shown []any) {
	index := uint(0)
	for i, r := range receipts {
		hash := signed[i].Hash()
		for _, l := range r.Logs {
			l.BlockNumber, l.BlockHash, l.TxHash, l.TxIndex, l.Index = uint64(n), block, hash, uint(i), index
			index++
		}
		txs = append(txs, showTx(signed[i], block, i))
		shown = append(shown, map[string]any{"blockHash": block, "blockNumber": hexutil.Uint64(n), "from": venueText,
			"to": venueText, "transactionIndex": hexutil.Uint64(i), "type": "0x2", "transactionHash": hash,
			"status": "0x1", "logsBloom": r.Bloom, "cumulativeGasUsed": hexutil.Uint64(r.CumulativeGasUsed),
			"gasUsed": "0x186a0", "effectiveGasPrice": "0x3b9aca00", "contractAddress": nil, "logs": r.Logs})
	}
	return txs, shown
}

func mustJSON(b *testing.B, v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		b.Fatal(err)
	}
	return raw
}
