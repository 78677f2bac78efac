package sender

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"perpkeeper/pkg/setting/secret"
)

// front is an address of the site's node that a test can spoil: every request comes by here. It is one endpoint among
// others to a sender, and the node behind all of them is the same, so that what they say differs only by what a test
// makes of it.
type front struct {
	*httptest.Server
	node  string
	spoil atomic.Pointer[spoiler]
	// slow is how much later every answer comes, so that a test knows whom a sender asks first.
	slow time.Duration
	hits atomic.Int64 // requests that were spoilt
}

// query is one JSON-RPC request.
type query struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

// spoiler answers a request in the node's place, or returns false and leaves it to the node.
type spoiler func(f *front, w http.ResponseWriter, r *http.Request, q query) bool

// front starts an endpoint; a nil spoiler is an honest one.
func (s *site) front(slow time.Duration, spoil spoiler) *front {
	f := &front{node: s.RPC(), slow: slow}
	f.become(spoil)
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	s.t.Cleanup(func() {
		f.CloseClientConnections()
		f.Close()
	})
	return f
}

// behind makes a site's senders use these endpoints and no other.
func (s *site) behind(fronts ...*front) {
	s.cfg.Chain.URLs = nil
	for _, f := range fronts {
		s.cfg.Chain.URLs = append(s.cfg.Chain.URLs, secret.MustURL(f.URL))
	}
	s.cfg.Chain.HedgeAfter, s.cfg.Chain.ProbeInterval = 2*headStart, 100*time.Millisecond
}

// become changes what is spoilt from now on.
func (f *front) become(spoil spoiler) {
	if spoil == nil {
		spoil = func(*front, http.ResponseWriter, *http.Request, query) bool { return false }
	}
	f.spoil.Store(&spoil)
}

func (f *front) serve(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if f.slow > 0 {
		select {
		case <-time.After(f.slow):
		case <-r.Context().Done():
			return
		}
	}
	var q query
	if err := json.Unmarshal(raw, &q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if (*f.spoil.Load())(f, w, r, q) {
		f.hits.Add(1)
		return
	}
	result, fault := f.ask(q)
	f.answer(w, q, result, fault)
}

// ask passes a request on to the node.
func (f *front) ask(q query) (result, fault json.RawMessage) {
	raw, err := json.Marshal(struct {
		Version string `json:"jsonrpc"`
		query
	}{"2.0", q})
	if err != nil {
		return nil, failure(err)
	}
	// a front outlives the request: what was sent was sent
	reply, err := http.Post(f.node, "application/json", bytes.NewReader(raw))
	if err != nil {
		return nil, failure(err)
	}
	defer func() { _ = reply.Body.Close() }()
	var answer struct{ Result, Error json.RawMessage }
	if err := json.NewDecoder(reply.Body).Decode(&answer); err != nil {
		return nil, failure(err)
	}
	return answer.Result, answer.Error
}

func failure(err error) json.RawMessage {
	return fmt.Appendf(nil, `{"code":-32000,"message":%q}`, err.Error())
}

// answer writes a result, or an error where there is one.
func (f *front) answer(w http.ResponseWriter, q query, result, fault json.RawMessage) {
	w.Header().Set("Content-Type", "application/json")
	if fault != nil {
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":%s}`, q.ID, fault)
		return
	}
	if result == nil {
		result = json.RawMessage("null")
	}
	_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, q.ID, result)
}

// hangs takes requests, and never answers.
func hangs(f *front, _ http.ResponseWriter, r *http.Request, _ query) bool {
	f.hits.Add(1)
	<-r.Context().Done()
	return true
}

// stale is a node that stopped at a block, and takes transactions all the same.
func stale(at uint64) spoiler {
	fixed := map[string]uint64{"latest": at, "pending": at, "safe": at - 1, "finalized": at - 2}
	return func(f *front, w http.ResponseWriter, _ *http.Request, q query) bool {
		switch q.Method {
		case "eth_getTransactionCount", "eth_call", "eth_getBalance", "eth_getBlockByNumber", "eth_feeHistory":
			for i, p := range q.Params {
				if number, tag := fixed[strings.Trim(string(p), `"`)]; tag {
					q.Params[i] = fmt.Appendf(nil, `"%#x"`, number)
				}
			}
		case "eth_chainId", "eth_sendRawTransaction", "eth_gasPrice":
			return false
		}
		if beyond(f, q, at) {
			f.answer(w, q, nil, nil)
			return true
		}
		result, fault := f.ask(q)
		if numberOf(result) > at {
			result = nil
		}
		f.answer(w, q, result, fault)
		return true
	}
}

// beyond reports whether a request names a block above a number.
func beyond(f *front, q query, at uint64) bool {
	switch q.Method {
	case "eth_getBlockByNumber":
		n, err := strconv.ParseUint(strings.Trim(string(q.Params[0]), `"`), 0, 64)
		return err == nil && n > at
	case "eth_getBlockReceipts":
		block, _ := f.ask(query{ID: q.ID, Method: "eth_getBlockByHash",
			Params: []json.RawMessage{q.Params[0], json.RawMessage("false")}})
		return numberOf(block) > at
	default:
		return false
	}
}

// numberOf is the block an answer stands in, or is; 0 for any other answer.
func numberOf(result json.RawMessage) uint64 {
	var in struct{ Number, BlockNumber string }
	if json.Unmarshal(result, &in) != nil {
		return 0
	}
	n, _ := strconv.ParseUint(in.Number+in.BlockNumber, 0, 64)
	return n
}

// changes lets a method's answers through, but for what a test makes of them.
func changes(method string, into func(json.RawMessage) json.RawMessage) spoiler {
	return func(f *front, w http.ResponseWriter, _ *http.Request, q query) bool {
		if q.Method != method {
			return false
		}
		result, fault := f.ask(q)
		if fault == nil {
			result = into(result)
		}
		f.answer(w, q, result, fault)
		return true
	}
}
