package liars

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// namesHead tells whether a request is about the newest block, or a push announces it.
func (c call) namesHead() bool {
	return c.Method == pushed || c.Method == "eth_getBlockByNumber" && c.text(0) == "latest"
}

// heads changes the newest block that is named. A push that is no block, such as a log, is left alone.
func heads(instead func(*endpoint, json.RawMessage) json.RawMessage) func(*endpoint, call, answer) (answer, bool) {
	return func(e *endpoint, c call, a answer) (answer, bool) {
		if !c.namesHead() || !isBlock(a.Result) {
			return a, false
		}
		said := instead(e, a.Result)
		return answer{Result: said}, said != nil
	}
}

func isBlock(raw json.RawMessage) bool { return bytes.Contains(raw, []byte(`"receiptsRoot"`)) }

// ahead makes up a block 1000 above the newest, with a hash of its own that is right.
func ahead(e *endpoint, raw json.RawMessage) json.RawMessage {
	const far = 1000
	return e.forge(raw, func(h *types.Header) {
		h.Number = new(big.Int).Add(h.Number, big.NewInt(far))
		h.Time += far / 2
		h.ParentHash = common.BigToHash(new(big.Int).SetUint64(e.random.Uint64()))
	})
}

// behind names a true block of the past.
func behind(e *endpoint, raw json.RawMessage) json.RawMessage {
	const blocks = 40
	var head types.Header
	if json.Unmarshal(raw, &head) != nil || head.Number.Uint64() < blocks {
		return nil
	}
	return e.ask("eth_getBlockByNumber", hexutil.Uint64(head.Number.Uint64()-blocks), false)
}

// headMadeUp names an empty block beside each true one, as head and by its number.
func headMadeUp(e *endpoint, c call, a answer) (answer, bool) {
	byNumber := c.Method == "eth_getBlockByNumber" && strings.HasPrefix(c.text(0), "0x")
	if !c.namesHead() && !byNumber || !isBlock(a.Result) {
		return a, false
	}
	said := e.forge(a.Result, func(*types.Header) {})
	return answer{Result: said}, said != nil
}

// forge makes up an empty block from a true one. Its hash is right, and the endpoint goes on knowing it.
func (e *endpoint) forge(raw json.RawMessage, change func(*types.Header)) json.RawMessage {
	var h types.Header
	fields := map[string]any{}
	if json.Unmarshal(raw, &h) != nil || json.Unmarshal(raw, &fields) != nil {
		return nil
	}
	h.TxHash, h.ReceiptHash, h.Bloom, h.GasUsed, h.Root = types.EmptyTxsHash, types.EmptyReceiptsHash, types.Bloom{}, 0,
		common.Hash{1}
	change(&h)
	made := map[string]any{}
	if json.Unmarshal(encode(&h), &made) != nil {
		return nil
	}
	maps.Copy(fields, made)
	hash := strings.ToLower(h.Hash().Hex())
	fields["hash"], fields["transactions"] = hash, []any{}
	fields["milliTimestamp"] = hexutil.Uint64(h.Time*1000 + new(big.Int).SetBytes(h.MixDigest[:]).Uint64())
	block := encode(fields)
	e.forged[hash], e.forged[hexutil.EncodeBig(h.Number)] = block, block
	return block
}

// ask asks the node itself; nil where it does not answer.
func (e *endpoint) ask(method string, params ...any) json.RawMessage {
	if params == nil {
		params = []any{}
	}
	var m message
	body := encode(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if raw, err := post(e.node, body); err != nil || json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m.Result
}

// headerAltered empties the bloom of a block that is asked for by hash or number, and leaves its hash.
func headerAltered(_ *endpoint, c call, a answer) (answer, bool) {
	asked := c.Method == "eth_getBlockByHash" || c.Method == "eth_getBlockByNumber" &&
		strings.HasPrefix(c.text(0), "0x")
	if !asked || !isBlock(a.Result) {
		return a, false
	}
	return field(a, "logsBloom", types.Bloom{1})
}

// field sets one field of an object that is the answer.
func field(a answer, name string, value any) (answer, bool) {
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(a.Result, &fields) != nil || fields == nil {
		return a, false
	}
	fields[name] = encode(value)
	return answer{Result: encode(fields)}, true
}

// finalizedAhead calls the newest block final.
func finalizedAhead(e *endpoint, c call, a answer) (answer, bool) {
	var said json.RawMessage
	switch tag := func(i int) bool { return c.text(i) == "finalized" || c.text(i) == "safe" }; {
	case c.Method == "eth_getBlockByNumber" && tag(0):
		said = e.ask(c.Method, "latest", false)
	case c.Method == "eth_getTransactionCount" && tag(1):
		said = e.ask(c.Method, c.text(0), "latest")
	}
	return answer{Result: said}, said != nil && !bytes.Equal(said, a.Result)
}

// bodies changes the transactions of a block, and its receipts so that they fit.
func bodies(change func([]map[string]any) []map[string]any) func(*endpoint, call, answer) (answer, bool) {
	return func(_ *endpoint, c call, a answer) (answer, bool) {
		var list []map[string]any
		switch c.Method {
		case "eth_getBlockByHash", "eth_getBlockByNumber":
			var block struct{ Transactions []map[string]any }
			if len(c.Params) < 2 || string(c.Params[1]) != "true" || json.Unmarshal(a.Result, &block) != nil ||
				len(block.Transactions) == 0 {
				return a, false
			}
			return field(a, "transactions", change(block.Transactions))
		case "eth_getBlockReceipts":
			if json.Unmarshal(a.Result, &list) != nil || len(list) == 0 {
				return a, false
			}
			return answer{Result: encode(change(list))}, true
		default:
			return a, false
		}
	}
}

// otherHashes gives each transaction another hash, also where its logs name it.
func otherHashes(list []map[string]any) []map[string]any {
	for _, one := range list {
		all := []map[string]any{one}
		logs, _ := one["logs"].([]any)
		for _, l := range logs {
			log, _ := l.(map[string]any)
			all = append(all, log)
		}
		for _, at := range all {
			for _, name := range []string{"hash", "transactionHash"} {
				if hash, is := at[name].(string); is {
					at[name] = flipped(hash)
				}
			}
		}
	}
	return list
}

// otherSenders gives each transaction another sender.
func otherSenders(list []map[string]any) []map[string]any {
	for _, one := range list {
		from, _ := one["from"].(string)
		one["from"] = flipped(from)
	}
	return list
}

// oneLeftOut leaves out the last transaction.
func oneLeftOut(list []map[string]any) []map[string]any { return list[:len(list)-1] }
