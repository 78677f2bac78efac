package liars

import (
	"bytes"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gorilla/websocket"
)

// endpoint is a JSON-RPC provider with a host of its own before the devnet's node: it passes requests on, over HTTP and
// WebSocket, takes its time, and changes answers while it lies.
type endpoint struct {
	host    string // an address of the loopback network
	address string // host and port
	node    string // the devnet's, over HTTP
	socket  string // the same over WebSocket

	mu     sync.Mutex
	delay  time.Duration
	lie    *lie
	share  int // one in so many of the answers that the lie is about is wrong; 1 = each
	random *rand.Rand
	forged map[string]json.RawMessage // blocks that were made up, by hash and by number
	about  int                        // answers that the lie is about, since it began
	lied   int                        // of these, changed
}

// call is a request, or the subscription that a notification belongs to.
type call struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`
}

// answer is what a node answers: a result or an error.
type answer struct {
	Result json.RawMessage
	Error  json.RawMessage
}

// message is any JSON-RPC message.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   json.RawMessage `json:"error,omitempty"`
}

// notification is the parameters of a push.
type notification struct {
	Subscription json.RawMessage `json:"subscription"`
	Result       json.RawMessage `json:"result"`
}

// toNode keeps its connections: many short ones use up the ports.
var toNode = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

const pushed = "eth_subscription"

// startEndpoint listens on a host of the loopback network: two endpoints of one host would count as one.
func startEndpoint(t *testing.T, host, node, socket string) *endpoint {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	e := &endpoint{host: host, address: listener.Addr().String(), node: node, socket: socket, share: 1,
		forged: map[string]json.RawMessage{}}
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(e.serve),
		ReadHeaderTimeout: time.Minute}}
	server.Start()
	t.Cleanup(server.CloseClientConnections)
	return e
}

// begin makes the endpoint lie from now on, in one of so many answers that the lie is about: the first, and so on.
func (e *endpoint) begin(l *lie, share int, seed uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lie, e.share, e.random, e.about, e.lied = l, share, rand.New(rand.NewPCG(seed, seed)), 0, 0
}

// end makes it honest. What it made up it no longer knows.
func (e *endpoint) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lie, e.forged = nil, map[string]json.RawMessage{}
}

// count is how many answers were changed since the lie began.
func (e *endpoint) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lied
}

// slow sets how long every answer takes beyond the node's own time.
func (e *endpoint) slow(delay time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.delay = delay
}

func (e *endpoint) latency() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.delay
}

func (e *endpoint) serve(w http.ResponseWriter, r *http.Request) {
	if websocket.IsWebSocketUpgrade(r) {
		e.serveSocket(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodPost, e.node, bytes.NewReader(body))
	if err != nil {
		return
	}
	request.Header.Set("Content-Type", "application/json")
	reply, err := toNode.Do(request)
	if err != nil {
		http.Error(w, "the node is away", http.StatusBadGateway)
		return
	}
	defer func() { _ = reply.Body.Close() }()
	honest, err := io.ReadAll(reply.Body)
	if err != nil {
		return
	}
	time.Sleep(e.latency())
	w.Header().Set("Content-Type", "application/json")
	calls := map[string]call{}
	note(calls, body)
	_, _ = w.Write(e.rewrite(calls, honest)) // the client may have gone
}

// note takes down the requests of a message, by their ids.
func note(calls map[string]call, raw []byte) {
	var batch []call
	if json.Unmarshal(raw, &batch) != nil {
		batch = make([]call, 1)
		if json.Unmarshal(raw, &batch[0]) != nil {
			return
		}
	}
	for _, c := range batch {
		calls[string(c.ID)] = c
	}
}

// rewrite changes a message of the node: one answer, a batch of them, or a push. The requests that it answers are
// forgotten.
func (e *endpoint) rewrite(calls map[string]call, raw []byte) []byte {
	var batch []message
	if json.Unmarshal(raw, &batch) == nil {
		for i := range batch {
			e.change(calls, &batch[i])
		}
		return encode(batch)
	}
	var m message
	if json.Unmarshal(raw, &m) != nil {
		return raw
	}
	if e.change(calls, &m) {
		return encode(m)
	}
	return raw
}

// change changes one message, and tells whether it did.
func (e *endpoint) change(calls map[string]call, m *message) bool {
	if m.Method == pushed {
		var n notification
		if json.Unmarshal(m.Params, &n) != nil {
			return false
		}
		a, changed := e.answer(call{Method: pushed}, answer{Result: n.Result})
		if changed {
			n.Result = a.Result
			m.Params = encode(n)
		}
		return changed
	}
	c, known := calls[string(m.ID)]
	if !known {
		return false
	}
	delete(calls, string(m.ID))
	a, changed := e.answer(c, answer{m.Result, m.Error})
	if changed {
		m.Result, m.Error = a.Result, a.Error
	}
	return changed
}

// answer is what the endpoint says. What it has made up it goes on knowing.
func (e *endpoint) answer(c call, honest answer) (answer, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lie == nil || e.lie.change == nil {
		return honest, false
	}
	if said, is := e.recall(c); is {
		return said, true
	}
	said, changed := e.lie.change(e, c, honest)
	if !changed {
		return honest, false
	}
	if e.about++; e.about%e.share != 1%e.share {
		return honest, false
	}
	e.lied++
	return said, true
}

// recall answers what is asked about a block that was made up. The caller holds mu.
func (e *endpoint) recall(c call) (answer, bool) {
	if len(c.Params) == 0 || len(e.forged) == 0 {
		return answer{}, false
	}
	switch c.Method {
	case "eth_getBlockByHash", "eth_getBlockByNumber":
		block, is := e.forged[strings.Trim(string(c.Params[0]), `"`)]
		return answer{Result: block}, is
	case "eth_getBlockReceipts":
		for hash := range e.forged {
			if len(hash) == hashDigits && bytes.Contains(c.Params[0], []byte(hash)) {
				return answer{Result: json.RawMessage(`[]`)}, true
			}
		}
	}
	return answer{}, false
}

// hashDigits is how long a hash is in hexadecimal.
const hashDigits = 2 + 64

func encode(value any) []byte {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err) // what was read as JSON can be written
	}
	return raw
}
