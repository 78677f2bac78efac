package liars

import (
	"encoding/json"
	"math/big"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// receipt changes the receipt of one transaction.
func receipt(change func(answer) (answer, bool)) func(*endpoint, call, answer) (answer, bool) {
	return func(_ *endpoint, c call, a answer) (answer, bool) {
		if c.Method != "eth_getTransactionReceipt" || isNull(a.Result) {
			return a, false
		}
		return change(a)
	}
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func missing(answer) (answer, bool) { return answer{Result: json.RawMessage("null")}, true }

func failed(a answer) (answer, bool) {
	if a, is := field(a, "status", hexutil.Uint64(0)); is {
		return field(a, "logs", []any{})
	}
	return a, false
}

// receiptMadeUp says of a transaction that waits that it failed in the newest block.
func receiptMadeUp(e *endpoint, c call, a answer) (answer, bool) {
	if c.Method != "eth_getTransactionReceipt" || !isNull(a.Result) {
		return a, false
	}
	tx, head := map[string]any{}, map[string]any{}
	if json.Unmarshal(e.ask("eth_getTransactionByHash", c.text(0)), &tx) != nil || tx["from"] == nil ||
		json.Unmarshal(e.ask("eth_getBlockByNumber", "latest", false), &head) != nil {
		return a, false
	}
	return answer{Result: encode(map[string]any{
		"blockHash": head["hash"], "blockNumber": head["number"], "transactionHash": c.text(0),
		"transactionIndex": "0x0", "from": tx["from"], "to": tx["to"],
		"gasUsed": "0x5208", "cumulativeGasUsed": "0x5208", "contractAddress": nil, "logs": []any{},
		"logsBloom": types.Bloom{}, "type": tx["type"],
		"effectiveGasPrice": tx["gasPrice"], "status": "0x0",
	})}, true
}

// counted says that whatever waits was mined, and one more: so there is always a number whose receipt is asked for too
// early, though most of the time nothing waits.
func counted(e *endpoint, c call, _ answer) (answer, bool) {
	var pending hexutil.Uint64
	if c.Method != "eth_getTransactionCount" || c.text(1) != "latest" ||
		json.Unmarshal(e.ask(c.Method, c.text(0), "pending"), &pending) != nil {
		return answer{}, false
	}
	return answer{Result: encode(pending + 1)}, true
}

// callReverts is a bare revert, as a gateway at its limit answers too.
func callReverts(_ *endpoint, c call, a answer) (answer, bool) {
	return answer{Error: json.RawMessage(`{"code":3,"message":"execution reverted"}`)}, c.Method == "eth_call" &&
		a.Error == nil
}

// callSucceeds turns what the contracts refuse into a success.
func callSucceeds(_ *endpoint, c call, a answer) (answer, bool) {
	return answer{Result: encode(hexutil.Bytes(make([]byte, 32)))}, c.Method == "eth_call" && a.Error != nil
}

func times(n int64) func(*big.Int) *big.Int {
	return func(x *big.Int) *big.Int { return new(big.Int).Mul(x, big.NewInt(n)) }
}

// gasPrice changes the price that is suggested, and what the newest blocks were paid.
func gasPrice(change func(*big.Int) *big.Int) func(*endpoint, call, answer) (answer, bool) {
	return func(_ *endpoint, c call, a answer) (answer, bool) {
		if a.Error != nil {
			return a, false
		}
		switch c.Method {
		case "eth_gasPrice":
			var price hexutil.Big
			if json.Unmarshal(a.Result, &price) != nil {
				return a, false
			}
			return answer{Result: encode((*hexutil.Big)(change(price.ToInt())))}, true
		case "eth_feeHistory":
			var history struct {
				Reward [][]*hexutil.Big `json:"reward"`
			}
			if json.Unmarshal(a.Result, &history) != nil {
				return a, false
			}
			for _, block := range history.Reward {
				for i := range block {
					block[i] = (*hexutil.Big)(change(block[i].ToInt()))
				}
			}
			return field(a, "reward", history.Reward)
		}
		return a, false
	}
}

// nonce counts transactions that there are not, or leaves some out.
func nonce(by int64) func(*endpoint, call, answer) (answer, bool) {
	return func(_ *endpoint, c call, a answer) (answer, bool) {
		var next hexutil.Big
		if c.Method != "eth_getTransactionCount" || json.Unmarshal(a.Result, &next) != nil {
			return a, false
		}
		said := new(big.Int).Add(next.ToInt(), big.NewInt(by))
		if said.Sign() < 0 {
			said.SetInt64(0)
		}
		return answer{Result: encode((*hexutil.Big)(said))}, true
	}
}

func balance(wei *big.Int) func(*endpoint, call, answer) (answer, bool) {
	return func(_ *endpoint, c call, a answer) (answer, bool) {
		return answer{Result: encode((*hexutil.Big)(wei))}, c.Method == "eth_getBalance" && a.Error == nil
	}
}

// broadcast refuses transactions that were taken.
func broadcast(text string) func(*endpoint, call, answer) (answer, bool) {
	return func(_ *endpoint, c call, a answer) (answer, bool) {
		return answer{Error: encode(map[string]any{"code": -32000, "message": text})},
			c.Method == "eth_sendRawTransaction" && a.Error == nil
	}
}
