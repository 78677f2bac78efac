package scanner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/setting/secret"
)

// lie changes what a node answers to a request. It gets the parameters and the honest answer; nil leaves that as it is.
type lie func(params []json.RawMessage, honest json.RawMessage) json.RawMessage

// refusal is a lie that answers with an error.
type refusal struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// liar is a node of its own in front of the honest one: a server that passes requests on and changes the answers.
type liar struct {
	*httptest.Server
	node string

	mu    sync.Mutex
	lies  map[string]lie // by method
	lied  map[string]int
	asked map[string]int
}

func startLiar(t *testing.T, d *devnet) *liar {
	t.Helper()
	l := &liar{node: d.HTTPURL(), lies: map[string]lie{}, lied: map[string]int{}, asked: map[string]int{}}
	l.Server = httptest.NewServer(http.HandlerFunc(l.serve))
	t.Cleanup(l.Close)
	return l
}

// tell makes the node lie about a method from now on; nil makes it honest again.
func (l *liar) tell(method string, f lie) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lies[method] = f
}

func (l *liar) tellAll(all map[string]lie) {
	for method, f := range all {
		l.tell(method, f)
	}
}

func (l *liar) count(method string) (lied, asked int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lied[method], l.asked[method]
}

type rpcCall struct {
	Version string            `json:"jsonrpc"`
	ID      json.RawMessage   `json:"id"`
	Method  string            `json:"method,omitempty"`
	Params  []json.RawMessage `json:"params,omitempty"`
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
	defer answer.Body.Close()
	honest, err := io.ReadAll(answer.Body)
	if err != nil {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(l.twist(body, honest))
}

// twist changes the answers of a request or a batch.
func (l *liar) twist(body, honest []byte) []byte {
	var calls []rpcCall
	var replies []rpcReply
	batch := json.Unmarshal(body, &calls) == nil
	if batch {
		if json.Unmarshal(honest, &replies) != nil {
			return honest
		}
	} else {
		calls, replies = make([]rpcCall, 1), make([]rpcReply, 1)
		if json.Unmarshal(body, &calls[0]) != nil || json.Unmarshal(honest, &replies[0]) != nil {
			return honest
		}
	}
	for i := range replies {
		for _, c := range calls {
			if bytes.Equal(c.ID, replies[i].ID) {
				l.answer(c, &replies[i])
			}
		}
	}
	var out any = replies
	if !batch {
		out = replies[0]
	}
	raw, err := json.Marshal(out)
	if err != nil {
		return honest
	}
	return raw
}

func (l *liar) answer(c rpcCall, r *rpcReply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked[c.Method]++
	f := l.lies[c.Method]
	if f == nil || r.Error != nil {
		return
	}
	said := f(c.Params, r.Result)
	if said == nil {
		return
	}
	l.lied[c.Method]++
	var no refusal
	if json.Unmarshal(said, &no) == nil && no.Code != 0 {
		r.Result, r.Error = nil, said
		return
	}
	r.Result = said
}

// The ways in which providers lie.

// refuses is a node that does not serve a method.
func refuses([]json.RawMessage, json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"code":-32601,"message":"the method does not exist/is not available"}`)
}

// leavesOut drops some of the last entries of a list; all if there are not so many.
func leavesOut(n int) lie {
	return func(_ []json.RawMessage, honest json.RawMessage) json.RawMessage {
		var list []json.RawMessage
		if json.Unmarshal(honest, &list) != nil || len(list) == 0 {
			return nil
		}
		out, err := json.Marshal(list[:max(len(list)-n, 0)])
		if err != nil {
			return nil
		}
		return out
	}
}

// pruned answers with an empty list.
func pruned([]json.RawMessage, json.RawMessage) json.RawMessage { return json.RawMessage(`[]`) }

// leavesOutOfReceipts drops the last log of every receipt that has several, and leaves the rest as it is.
func leavesOutOfReceipts(_ []json.RawMessage, honest json.RawMessage) json.RawMessage {
	var receipts []map[string]json.RawMessage
	if json.Unmarshal(honest, &receipts) != nil {
		return nil
	}
	last := len(receipts) - 1
	if last < 0 {
		return nil
	}
	var logs []json.RawMessage
	if json.Unmarshal(receipts[last]["logs"], &logs) != nil || len(logs) == 0 {
		return nil
	}
	receipts[last]["logs"], _ = json.Marshal(logs[:len(logs)-1])
	out, err := json.Marshal(receipts)
	if err != nil {
		return nil
	}
	return out
}

// asFailed says of every transaction that it failed.
func asFailed(_ []json.RawMessage, honest json.RawMessage) json.RawMessage {
	return bytes.ReplaceAll(honest, []byte(`"status":"0x1"`), []byte(`"status":"0x0"`))
}

// ofAnotherFork gives every entry of a list the hash of a block nobody asked for.
func ofAnotherFork(_ []json.RawMessage, honest json.RawMessage) json.RawMessage {
	var list []map[string]json.RawMessage
	if json.Unmarshal(honest, &list) != nil || len(list) == 0 {
		return nil
	}
	for _, l := range list {
		l["blockHash"] = json.RawMessage(fmt.Sprintf("%q", chain.Hash{0xbb}))
	}
	out, err := json.Marshal(list)
	if err != nil {
		return nil
	}
	return out
}

// through makes a scanner read through liars alone.
func through(cfg Config, liars ...*liar) Config {
	cfg.Chain.URLs = nil
	for _, l := range liars {
		cfg.Chain.URLs = append(cfg.Chain.URLs, secret.MustURL(l.URL))
	}
	return cfg
}
