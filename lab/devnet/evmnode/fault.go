package evmnode

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
)

// Fault makes the server misbehave for requests of one method: one of Error, DropConnection and DropReply, and DelayMS
// with any of them or alone.
type Fault struct {
	Method         string // For example eth_getBlockReceipts; empty for every method but devnet_*.
	Times          int    // How many requests it hits; 0 for all until ClearFaults.
	DelayMS        uint64 // Answer this much later.
	Error          string // Answer with this error text instead.
	Code           int    // Code of Error. Default -32000.
	DropConnection bool   // Close the connection without doing anything.
	DropReply      bool   // Do what was asked, then close the connection instead of answering.
}

func (f Fault) delay() time.Duration { return time.Duration(f.DelayMS) * time.Millisecond }

// Inject adds a fault. Of several that fit a request the oldest hits.
func (n *Node) Inject(f Fault) error {
	kinds := 0
	for _, set := range []bool{f.Error != "", f.DropConnection, f.DropReply} {
		if set {
			kinds++
		}
	}
	if kinds > 1 || kinds == 0 && f.DelayMS == 0 {
		return errors.New("a fault has one of Error, DropConnection and DropReply, or DelayMS")
	}
	n.faults.mu.Lock()
	defer n.faults.mu.Unlock()
	n.faults.armed = append(n.faults.armed, &f)
	return nil
}

// ClearFaults ends all faults.
func (n *Node) ClearFaults() {
	n.faults.mu.Lock()
	defer n.faults.mu.Unlock()
	n.faults.armed = nil
}

type faults struct {
	mu    sync.Mutex
	armed []*Fault
}

// take returns the oldest fault that fits and counts it as used.
func (f *faults) take(fits func(*Fault) bool) (Fault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.armed, fits)
	if i < 0 {
		return Fault{}, false
	}
	hit := *f.armed[i]
	if f.armed[i].Times == 1 {
		f.armed = slices.Delete(f.armed, i, i+1)
	} else if f.armed[i].Times > 1 {
		f.armed[i].Times--
	}
	return hit, true
}

// strike returns the fault that hits a request or batch, the zero Fault if none does, and how to answer with it. A
// message is read only while there is a fault.
func (f *faults) strike(raw []byte) (hit Fault, r request) {
	if f.none() {
		return Fault{}, request{}
	}
	r = parse(raw)
	hit, _ = f.take(func(fault *Fault) bool {
		return slices.ContainsFunc(r.calls, func(c call) bool {
			return c.Method == fault.Method || fault.Method == "" && !strings.HasPrefix(c.Method, "devnet_")
		})
	})
	return hit, r
}

func (f *faults) none() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.armed) == 0
}

// request is a JSON-RPC message as far as faults care.
type request struct {
	calls []call
	batch bool
}

type call struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// parse reads what it can; a malformed message has no calls and is left to the server to refuse.
func parse(raw []byte) request {
	var r request
	if json.Unmarshal(raw, &r.calls) == nil {
		r.batch = true
		return r
	}
	var single call
	if json.Unmarshal(raw, &single) == nil {
		r.calls = []call{single}
	}
	return r
}

type errorReply struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   replyError      `json:"error"`
}

type replyError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// errorReply answers every call of a request with the fault's error.
func (r request) errorReply(f Fault) []byte {
	replies := make([]errorReply, 0, len(r.calls))
	for _, c := range r.calls {
		replies = append(replies, errorReply{"2.0", c.ID, replyError{orDefault(f.Code, -32000), f.Error}})
	}
	var reply any = replies
	if !r.batch {
		reply = replies[0]
	}
	//nolint:errchkjson // Of strings, numbers and JSON that was parsed before: cannot fail.
	raw, _ := json.Marshal(reply)
	return raw
}
