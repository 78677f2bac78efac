package evm

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/pkg/chain"
)

// gmxLog is a log of the size of a GMX PositionIncrease: three topics and 4.5 kB of data, which is mostly zeros.
func gmxLog(index uint) types.Log {
	data := make([]byte, 4544)
	for i := 31; i < len(data); i += 32 {
		data[i], data[i-1], data[i-20] = byte(i), byte(i>>5), byte(i*7)
	}
	return types.Log{
		Address: common.Address{0xc8, 19: 0x26}, Topics: []common.Hash{{0x13, 31: 1}, {0xf9, 31: 2}, {12: 0xe1, 31: 3}},
		Data:        data,
		BlockNumber: 48_123_456, TxHash: common.Hash{1, 31: 9}, TxIndex: 41, BlockHash: common.Hash{2, 31: 9},
		Index: index,
	}
}

// gmxAnswer is a list of so many of them, as it stands in a receipt.
func gmxAnswer(tb testing.TB, count int) []byte {
	tb.Helper()
	logs := make([]types.Log, count)
	for i := range logs {
		logs[i] = gmxLog(uint(i))
	}
	raw, err := json.Marshal(logs)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// decodeLogs reads the logs of a receipt alone.
func decodeLogs(raw []byte) (logs []logReply, err error) {
	c := cursor{raw: raw}
	if logs, err = c.logs(); err != nil {
		return nil, err
	}
	return logs, c.end()
}

// ours is what our decoder makes of a log that go-ethereum decoded.
func ours(l types.Log) logReply {
	out := logReply{removed: l.Removed, Log: chain.Log{
		Address: chain.Address(l.Address), Topics: []chain.Hash{}, Data: l.Data, Block: l.BlockNumber,
		BlockHash: chain.Hash(l.BlockHash),
		TxHash:    chain.Hash(l.TxHash), TxIndex: uint32(l.TxIndex), Index: uint32(l.Index),
	}}
	for _, t := range l.Topics {
		out.Topics = append(out.Topics, chain.Hash(t))
	}
	return out
}

func TestDecodesGMXLogs(t *testing.T) {
	logs, err := decodeLogs(gmxAnswer(t, 3))
	if err != nil || len(logs) != 3 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	for i, l := range logs {
		if want := ours(gmxLog(uint(i))); !reflect.DeepEqual(l, want) {
			t.Errorf("log %d: %+v, want %+v", i, l, want)
		}
	}
	for _, empty := range []string{"[]", " [ ] "} {
		if logs, err := decodeLogs([]byte(empty)); err != nil || len(logs) != 0 {
			t.Errorf("%q: %d logs, %v", empty, len(logs), err)
		}
	}
}

// Where go-ethereum's reader is laxer than ours, and why we are not: each of these is a document that two honest
// readers may take for different things, or a log that says less than was asked for.
var laxities = []struct{ why, old, new string }{
	{"a pending log stands in no block", `"blockHash":"0x02`, `"other":"0x02`},
	{"a log without its number has no place", `"blockNumber":"0x2de4e40"`, `"blockNumber":null`},
	{"a log without its index has no place", `"logIndex":"0x0"`, `"logindex_":"0x0"`},
	{"of two values readers take either", `"logIndex":"0x0"`, `"logIndex":"0x0","logIndex":"0x1"`},
	{"names are case-sensitive in JSON-RPC", `"logIndex"`, `"LOGINDEX"`},
	{"nobody escapes a name but to hide it", `"logIndex"`, `"log\u0049ndex"`},
	{"the prefix is 0x", `"logIndex":"0x0"`, `"logIndex":"0X0"`},
	{"an index has 32 bits", `"logIndex":"0x0"`, `"logIndex":"0x100000000"`},
	{"the EVM knows four topics", `"topics":[`, `"topics":[` + strings.Repeat(`"0x`+strings.Repeat("0", 64)+`",`, 2)},
	{"false is not null", `"removed":false`, `"removed":null`},
}

func TestStricterThanGoEthereum(t *testing.T) {
	raw := string(gmxAnswer(t, 1))
	for _, tt := range laxities {
		if !strings.Contains(raw, tt.old) {
			t.Fatalf("%s: the sample has no %s", tt.why, tt.old)
		}
		changed := []byte(strings.Replace(raw, tt.old, tt.new, 1))
		var theirs []types.Log
		if err := json.Unmarshal(changed, &theirs); err != nil {
			t.Errorf("%s: go-ethereum refuses it too (%v): no laxity", tt.why, err)
		}
		if logs, err := decodeLogs(changed); err == nil {
			t.Errorf("%s: read as %+v", tt.why, logs)
		}
	}
}

// What no reader may take.
func TestRefusesBrokenDocuments(t *testing.T) {
	raw := string(gmxAnswer(t, 1))
	for _, broken := range []string{
		"", "null", "{}", "[", "[{]", `[{"address"}]`, raw + "x", raw + "[]", raw[:len(raw)-1], raw[:len(raw)/2],
		"[" + raw + "]",
		strings.Replace(raw, `"0x`, `"`, 1), strings.Replace(raw, `0"`, `g"`, 1),
		strings.Replace(raw, `"data":"0x0`, `"data":"0x`, 1),
		strings.Replace(raw, `"blockNumber":"0x2`, `"blockNumber":"0x02`, 1),
		strings.Replace(raw, `"blockNumber":"0x2`, `"blockNumber":"0x11111111112`, 1),
		strings.Replace(raw, `"logIndex":"0x0"`, `"logIndex":"0x\u0030"`, 1),
		strings.Replace(raw, `"removed":false`, `"removed":false,"x":01`, 1),
		strings.Replace(raw, `"removed":false`, `"removed":false,"x":"\x"`, 1),
		strings.Replace(raw, `"removed":false`, `"removed":false,"x":`+strings.Repeat("[", 100)+
			strings.Repeat("]", 100), 1),
	} {
		if logs, err := decodeLogs([]byte(broken)); err == nil {
			t.Errorf("%.80q…: read as %d logs", broken, len(logs))
		}
	}
}

// The difference to go-ethereum's reader: what we read it reads, with the same values; what it reads, once written out
// plainly with its place, we read as the same.
func FuzzDecodeLogs(f *testing.F) {
	small, _ := json.Marshal([]types.Log{{Topics: []common.Hash{}, Data: []byte{1}, BlockTimestamp: 5}})
	f.Add(small)
	for _, l := range laxities {
		f.Add([]byte(strings.Replace(string(small), l.old, l.new, 1)))
	}
	f.Add([]byte(strings.Replace(string(small), `"removed":false`,
		`"removed":true,"x":[{"a":"\"\u00e9"},-1.5e+3,null,true]`, 1)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := decodeLogs(raw)
		var theirs []types.Log
		theirErr := json.Unmarshal(raw, &theirs)
		if err == nil {
			compareLogs(t, got, theirs, theirErr)
		}
		if theirErr != nil || theirs == nil || !kept(theirs) {
			return
		}
		plain, err := json.Marshal(theirs)
		if err != nil {
			t.Fatal(err)
		}
		got, err = decodeLogs(plain)
		if err != nil {
			t.Fatalf("%s: %v", plain, err)
		}
		compareLogs(t, got, theirs, nil)
	})
}

// kept reports whether logs are such as a block can hold.
func kept(logs []types.Log) bool {
	for _, l := range logs {
		if len(l.Topics) > 4 || l.Index > 1<<32-1 || l.TxIndex > 1<<32-1 {
			return false
		}
	}
	return true
}

func compareLogs(t *testing.T, got []logReply, theirs []types.Log, theirErr error) {
	t.Helper()
	if theirErr != nil || len(got) != len(theirs) {
		t.Fatalf("%d logs here, %d there, %v", len(got), len(theirs), theirErr)
	}
	for i := range got {
		if want := ours(theirs[i]); !reflect.DeepEqual(got[i], want) {
			t.Fatalf("log %d: %+v here, %+v there", i, got[i], want)
		}
	}
}

// gmxReceipts is an answer to eth_getBlockReceipts with one transaction of two GMX logs.
func gmxReceipts(tb testing.TB) []byte {
	tb.Helper()
	logs := []*types.Log{new(gmxLog(0)), new(gmxLog(1))}
	receipt := types.Receipt{
		Type: 2, Status: 1, CumulativeGasUsed: 21_000, GasUsed: 21_000, TxHash: common.Hash{1, 31: 9},
		BlockHash: common.Hash{2, 31: 9}, TransactionIndex: 41,
		Logs: logs, BlockNumber: common.Big1, EffectiveGasPrice: common.Big1,
	}
	receipt.Bloom = types.CreateBloom(&receipt)
	raw, err := json.Marshal(receipt)
	if err != nil {
		tb.Fatal(err)
	}
	parties := `,"from":"0x00000000000000000000000000000000000000aa","to":"0x00000000000000000000000000000000000000bb"}`
	return []byte("[" + strings.TrimSuffix(string(raw), "}") + parties + "]")
}

func TestDecodesGMXReceipts(t *testing.T) {
	receipts, err := decodeReceipts(gmxReceipts(t))
	if err != nil || len(receipts) != 1 || len(receipts[0].logs) != 2 ||
		receipts[0].from != (chain.Address{19: 0xaa}) || receipts[0].to != (chain.Address{19: 0xbb}) {
		t.Fatalf("%+v, %v", receipts, err)
	}
	compareReceipts(t, gmxReceipts(t), receipts)
	if receipts, err := decodeReceipts([]byte("null")); receipts != nil || err != nil {
		t.Errorf("null: %v, %v", receipts, err)
	}
	if receipts, err := decodeReceipts([]byte("[]")); receipts == nil || err != nil {
		t.Errorf("no receipts: %v, %v", receipts, err)
	}
}

// What is read as receipts go-ethereum reads with the same values, unless the bloom, which we compute ourselves, is
// missing or wrong there.
func FuzzDecodeReceipts(f *testing.F) {
	raw := string(gmxReceipts(f))
	// the fuzzer is slow with long documents
	raw = regexp.MustCompile(`"data":"0x[0-9a-f]*"`).ReplaceAllString(raw, `"data":"0x01"`)
	f.Add([]byte(raw))
	f.Add([]byte(strings.Replace(raw, `"status":"0x1"`, `"status":"0x0"`, 1)))
	f.Add([]byte(strings.Replace(raw, `"type":"0x2"`, `"type":"0x7f"`, 1)))
	f.Add([]byte("null"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		receipts, err := decodeReceipts(raw)
		if err != nil {
			return
		}
		compareReceipts(t, raw, receipts)
		receiptsRoot(receipts)
	})
}

func compareReceipts(t *testing.T, raw []byte, got []receiptReply) {
	t.Helper()
	var theirs []*types.Receipt
	err := json.Unmarshal(raw, &theirs)
	if err != nil { // ours does not look at the bloom, the contract's address and the root
		return
	}
	if len(got) != len(theirs) {
		t.Fatalf("%d receipts here, %d there", len(got), len(theirs))
	}
	for i, r := range got {
		want := theirs[i]
		if r.kind != uint64(want.Type) || r.status != want.Status || r.cumulativeGas != want.CumulativeGasUsed ||
			r.gasUsed != want.GasUsed ||
			r.gasPrice != want.EffectiveGasPrice.Uint64() || r.block != want.BlockNumber.Uint64() ||
			r.blockHash != chain.Hash(want.BlockHash) ||
			r.txHash != chain.Hash(want.TxHash) || uint(r.index) != want.TransactionIndex {
			t.Fatalf("receipt %d: %+v here, %+v there", i, r, want)
		}
		var logs []types.Log
		for _, l := range want.Logs {
			logs = append(logs, *l)
		}
		compareLogs(t, r.logs, logs, nil)
	}
}

// Our decoder beside go-ethereum's on the same answer. ns/log is the figure.
func BenchmarkDecodeLogs(b *testing.B) {
	const count = 200
	raw := gmxAnswer(b, count)
	for _, way := range []struct {
		name   string
		decode func() (int, error)
	}{
		{"cursor", func() (int, error) { logs, err := decodeLogs(raw); return len(logs), err }},
		{"go-ethereum", func() (int, error) {
			var logs []types.Log
			err := json.Unmarshal(raw, &logs)
			return len(logs), err
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				if n, err := way.decode(); err != nil || n != count {
					b.Fatal(n, err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*count), "ns/log")
		})
	}
}
