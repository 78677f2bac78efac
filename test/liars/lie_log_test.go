package liars

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// onLogs changes a list of logs.
func onLogs(change func(*endpoint, []map[string]any) []map[string]any) func(*endpoint, call, answer) (answer, bool) {
	return func(e *endpoint, c call, a answer) (answer, bool) {
		var logs []map[string]any
		if c.Method != "eth_getLogs" || json.Unmarshal(a.Result, &logs) != nil || len(logs) == 0 {
			return a, false
		}
		return answer{Result: encode(change(e, logs))}, true
	}
}

// drop leaves out any one log.
func drop(e *endpoint, logs []map[string]any) []map[string]any {
	at := e.random.IntN(len(logs))
	return slices.Delete(logs, at, at+1)
}

// alter changes the last byte of any one log's data, or its last topic where it has none.
func alter(e *endpoint, logs []map[string]any) []map[string]any {
	at := e.random.IntN(len(logs))
	logs[at] = altered(logs[at])
	return logs
}

// add puts an altered copy of any one log behind the last.
func add(e *endpoint, logs []map[string]any) []map[string]any {
	made := altered(logs[e.random.IntN(len(logs))])
	last := logs[len(logs)-1]
	for _, name := range []string{"blockHash", "blockNumber", "blockTimestamp", "transactionHash", "transactionIndex"} {
		if value, is := last[name]; is {
			made[name] = value
		}
	}
	index, _ := last["logIndex"].(string)
	made["logIndex"] = hexutil.EncodeUint64(hexutil.MustDecodeUint64(index) + 1)
	return append(logs, made)
}

func altered(log map[string]any) map[string]any {
	changed := maps.Clone(log)
	if data, _ := changed["data"].(string); len(data) > len("0x") {
		changed["data"] = flipped(data)
		return changed
	}
	topics, _ := changed["topics"].([]any)
	topics = slices.Clone(topics)
	if n := len(topics); n > 0 {
		last, _ := topics[n-1].(string)
		topics[n-1] = flipped(last)
	}
	changed["topics"] = topics
	return changed
}

// flipped changes the last bit of a hexadecimal text.
func flipped(text string) string {
	raw := hexutil.MustDecode(text)
	raw[len(raw)-1] ^= 1
	return hexutil.Encode(raw)
}

// lateReceipts is how long the receipts of a block are not to be had where endpoints are tardy.
const lateReceipts = 1500 * time.Millisecond

// notYet refuses the receipts of a block for a while. The caller holds mu.
func (e *endpoint) notYet(c call) (answer, bool) {
	if !e.tardy || c.Method != "eth_getBlockReceipts" {
		return answer{}, false
	}
	first, known := e.asked[c.text(0)]
	if !known {
		e.asked[c.text(0)] = time.Now()
	}
	return answer{Error: json.RawMessage(`{"code":-32000,"message":"the receipts of this block are not there yet"}`)},
		!known || time.Since(first) < lateReceipts
}

// onReceipts leaves any one log out of the receipts of a block.
func onReceipts(e *endpoint, c call, a answer) (answer, bool) {
	var receipts []map[string]any
	if c.Method != "eth_getBlockReceipts" || json.Unmarshal(a.Result, &receipts) != nil {
		return a, false
	}
	var full []map[string]any
	for _, r := range receipts {
		if logs, _ := r["logs"].([]any); len(logs) > 0 {
			full = append(full, r)
		}
	}
	if len(full) == 0 {
		return a, false
	}
	chosen := full[e.random.IntN(len(full))]
	logs, _ := chosen["logs"].([]any)
	at := e.random.IntN(len(logs))
	chosen["logs"] = slices.Delete(logs, at, at+1)
	return answer{Result: encode(receipts)}, true
}
