package chaos

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"perpkeeper/pkg/chain"
)

// getReceipts is what nodes lie about.
const getReceipts = "eth_getBlockReceipts"

// lie changes a node's honest answer; nil leaves it as it is. The parameters are not needed: nodes lie about everything
// alike.
type lie func(honest json.RawMessage) json.RawMessage

// liar is a node of its own in front of the devnet's: a server that passes requests on and changes the answers.
type liar struct {
	url  string
	node string

	mu   sync.Mutex
	lies map[string]lie // by method
	lied map[string]int // how often an answer was changed
}

func startLiar(t *testing.T, node string) *liar {
	t.Helper()
	l := &liar{node: node, lies: map[string]lie{}, lied: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(l.serve))
	t.Cleanup(server.Close)
	l.url = server.URL
	return l
}

// setLies makes the node answer wrongly from now on, to these methods and no others.
func (l *liar) setLies(lies map[string]lie) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lies, l.lied = lies, map[string]int{}
}

// clearLies makes it honest.
func (l *liar) clearLies() { l.setLies(nil) }

// countLies is how often an answer to a method was changed since the lies began.
func (l *liar) countLies(method string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lied[method]
}

type rpcCall struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

type rpcReply struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

func (l *liar) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, l.node, bytes.NewReader(body))
	if err != nil {
		return
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		http.Error(w, "the node is away", http.StatusBadGateway)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	honest, err := io.ReadAll(answer.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(l.alter(body, honest)) // the client may have gone
}

// alter changes the answers of a request or a batch.
func (l *liar) alter(body, honest []byte) []byte {
	var calls []rpcCall
	var replies []rpcReply
	if json.Unmarshal(body, &calls) == nil && json.Unmarshal(honest, &replies) == nil {
		for i := range replies {
			for _, c := range calls {
				if bytes.Equal(c.ID, replies[i].ID) {
					l.answer(c.Method, &replies[i])
				}
			}
		}
		return encoded(replies, honest)
	}
	var call rpcCall
	var reply rpcReply
	if json.Unmarshal(body, &call) != nil || json.Unmarshal(honest, &reply) != nil {
		return honest
	}
	l.answer(call.Method, &reply)
	return encoded(reply, honest)
}

func encoded(value any, otherwise []byte) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		return otherwise
	}
	return raw
}

func (l *liar) answer(method string, r *rpcReply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.lies[method]
	if f == nil || r.Error != nil {
		return
	}
	said := f(r.Result)
	if said == nil {
		return
	}
	l.lied[method]++
	var no struct{ Code int }
	if json.Unmarshal(said, &no) == nil && no.Code != 0 {
		r.Result, r.Error = nil, said
		return
	}
	r.Result = said
}

// refuses is a node that does not serve a method.
func refuses(json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"code":-32601,"message":"the method does not exist/is not available"}`)
}

// leavesOut drops some of the last entries of a list; all if there are not so many.
func leavesOut(n int) lie {
	return func(honest json.RawMessage) json.RawMessage {
		var list []json.RawMessage
		if json.Unmarshal(honest, &list) != nil || len(list) == 0 {
			return nil
		}
		return encoded(list[:max(len(list)-n, 0)], nil)
	}
}

// altersOne changes a digit in the data of one log.
func altersOne(random *rand.Rand) lie {
	return ofReceipts(func(logs []map[string]json.RawMessage) []map[string]json.RawMessage {
		one := logs[random.IntN(len(logs))]
		const front = len(`"0x`)
		digits := slices.Clone(one["data"])
		if len(digits) <= front+1 {
			return nil
		}
		i := front + random.IntN(len(digits)-front-1)
		digits[i] = "0123456789abcdef"[(slices.Index([]byte("0123456789abcdef"), digits[i])+1)%16]
		one["data"] = digits
		return logs
	})
}

// leavesOutOfReceipts drops the last log of the last receipt that has any.
var leavesOutOfReceipts = ofReceipts(func(logs []map[string]json.RawMessage) []map[string]json.RawMessage {
	return logs[:len(logs)-1]
})

// ofReceipts makes a lie of a change to the logs of the last receipt that has any; a change to nil is none.
func ofReceipts(change func([]map[string]json.RawMessage) []map[string]json.RawMessage) lie {
	return func(honest json.RawMessage) json.RawMessage {
		var receipts []map[string]json.RawMessage
		if json.Unmarshal(honest, &receipts) != nil {
			return nil
		}
		for _, receipt := range slices.Backward(receipts) {
			var logs []map[string]json.RawMessage
			if json.Unmarshal(receipt["logs"], &logs) != nil || len(logs) == 0 {
				continue
			}
			said := change(logs)
			if said == nil {
				return nil
			}
			receipt["logs"] = encoded(said, nil)
			return encoded(receipts, nil)
		}
		return nil
	}
}

// pruned answers with an empty list.
func pruned(json.RawMessage) json.RawMessage { return json.RawMessage(`[]`) }

// ofAnotherFork gives every receipt of a list the hash of a block nobody asked for.
func ofAnotherFork(honest json.RawMessage) json.RawMessage {
	var logs []map[string]json.RawMessage
	if json.Unmarshal(honest, &logs) != nil || len(logs) == 0 {
		return nil
	}
	for _, l := range logs {
		l["blockHash"] = fmt.Appendf(nil, "%q", chain.Hash{0xbb})
	}
	return encoded(logs, nil)
}
