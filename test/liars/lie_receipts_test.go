package liars

import (
	"encoding/json"
	"slices"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// flipped changes the last bit of a hexadecimal text.
func flipped(text string) string {
	raw := hexutil.MustDecode(text)
	raw[len(raw)-1] ^= 1
	return hexutil.Encode(raw)
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
