package liars

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// lie is one kind of wrong answer.
type lie struct {
	name string
	// change returns the wrong answer in place of an honest one; false where the lie says nothing about the request. It runs under the endpoint's lock.
	change func(*endpoint, call, answer) (answer, bool)
	// reports changes the reports of a price source, in which case change is nil.
	reports func(*priceSource, []report) []report
	// reorg: while it is told, the chain replaces blocks that are not final.
	reorg bool
	// tardy: no endpoint has the receipts of a block at first, so that blocks are published without proof.
	tardy bool
	// unasked: no process asks about it, so that the row shows just that.
	unasked bool
	// decisive: the answer contradicts itself, the chain or the other two, so that it has to be named within a minute.
	decisive bool
	// short: the row is in the short form; pair: so is the one with two endpoints.
	short, pair bool
}

// lies are every wrong answer there is a row for.
var lies = []lie{
	{name: "none"},
	{name: "head ahead", change: heads(ahead), decisive: true, short: true},
	{name: "head behind", change: heads(behind), decisive: true},
	{name: "head made up", change: headMadeUp, decisive: true, reorg: true},
	{name: "header altered", change: headerAltered, decisive: true},
	{name: "finalized ahead", change: finalizedAhead, reorg: true, short: true, pair: true},
	{name: "logs: one dropped", tardy: true, change: onLogs(drop), decisive: true, reorg: true, short: true},
	{name: "logs: one added", tardy: true, change: onLogs(add), decisive: true, reorg: true},
	{name: "logs: one altered", tardy: true, change: onLogs(alter), decisive: true},
	{name: "receipts: one log dropped", change: onReceipts, decisive: true},
	{name: "logs and receipts: one dropped", tardy: true, change: either(onLogs(drop), onReceipts), decisive: true},
	{name: "receipt missing", change: receipt(missing)},
	{name: "receipt of a failure", change: receipt(failed), short: true},
	{name: "receipt made up", change: either(receiptMadeUp, counted)},
	{name: "eth_call reverts", change: callReverts, short: true, pair: true},
	{name: "eth_call succeeds", change: callSucceeds},
	{name: "gas price x 100", change: gasPrice(times(100)), short: true},
	{name: "gas price 1 wei", change: gasPrice(func(*big.Int) *big.Int { return big.NewInt(1) })},
	{name: "nonce ahead", change: nonce(1000)},
	{name: "nonce behind", change: nonce(-3)},
	{name: "balance of nothing", change: balance(new(big.Int)), unasked: true},
	{name: "balance of plenty", change: balance(new(big.Int).Lsh(big.NewInt(1), 100)), unasked: true},
	{name: "broadcast: no funds", change: broadcast("insufficient funds for gas * price + value")},
	{name: "broadcast: nonce too low", change: broadcast("nonce too low")},
	{name: "price report ahead", reports: reportsAhead, decisive: true, short: true},
	{name: "price report behind", reports: reportsBehind},
	{name: "price report absurd", reports: reportsAbsurd, decisive: true, short: true},
}

// either applies the first lie that is about a request.
func either(changes ...func(*endpoint, call, answer) (answer, bool)) func(*endpoint, call, answer) (answer, bool) {
	return func(e *endpoint, c call, a answer) (answer, bool) {
		for _, change := range changes {
			if said, is := change(e, c, a); is {
				return said, true
			}
		}
		return a, false
	}
}

// text is a parameter that is a string, empty otherwise.
func (c call) text(i int) (s string) {
	if i < len(c.Params) {
		_ = json.Unmarshal(c.Params[i], &s) // no string is empty
	}
	return s
}

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
	h.TxHash, h.ReceiptHash, h.Bloom, h.GasUsed, h.Root = types.EmptyTxsHash, types.EmptyReceiptsHash, types.Bloom{}, 0, common.Hash{1}
	change(&h)
	made := map[string]any{}
	if json.Unmarshal(encode(&h), &made) != nil {
		return nil
	}
	for name, value := range made {
		fields[name] = value
	}
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
	asked := c.Method == "eth_getBlockByHash" || c.Method == "eth_getBlockByNumber" && strings.HasPrefix(c.text(0), "0x")
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
	changed := map[string]any{}
	for name, value := range log {
		changed[name] = value
	}
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
		"blockHash": head["hash"], "blockNumber": head["number"], "transactionHash": c.text(0), "transactionIndex": "0x0", "from": tx["from"], "to": tx["to"],
		"gasUsed": "0x5208", "cumulativeGasUsed": "0x5208", "contractAddress": nil, "logs": []any{}, "logsBloom": types.Bloom{}, "type": tx["type"],
		"effectiveGasPrice": tx["gasPrice"], "status": "0x0",
	})}, true
}

// counted says that whatever waits was mined.
func counted(e *endpoint, c call, a answer) (answer, bool) {
	if c.Method != "eth_getTransactionCount" || c.text(1) != "latest" {
		return a, false
	}
	said := e.ask(c.Method, c.text(0), "pending")
	return answer{Result: said}, said != nil && !bytes.Equal(said, a.Result)
}

// callReverts is a bare revert, as a gateway at its limit answers too.
func callReverts(_ *endpoint, c call, a answer) (answer, bool) {
	return answer{Error: json.RawMessage(`{"code":3,"message":"execution reverted"}`)}, c.Method == "eth_call" && a.Error == nil
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
		return answer{Error: encode(map[string]any{"code": -32000, "message": text})}, c.Method == "eth_sendRawTransaction" && a.Error == nil
	}
}
