package evm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/ethereum/go-ethereum/rpc"
)

// poster is a caller over HTTP. It reads an answer once: go-ethereum's client looks through each of them four times,
// which was two thirds of what a scanner did. It takes no answer for another one's: over HTTP answers come by
// themselves, but a gateway may mix them up.
type poster struct {
	url    string
	header header
	http   *http.Client
	last   atomic.Uint64 // the id of the last request
}

func (p *poster) call(ctx context.Context, method string, args ...any) (json.RawMessage, error) {
	id := p.last.Add(1)
	body, err := appendRequest(nil, id, method, args)
	if err != nil {
		return nil, err
	}
	raw, err := p.post(ctx, body)
	if err != nil {
		return nil, err
	}
	c := cursor{raw: raw}
	a, err := c.answer()
	if err = errors.Join(err, c.end()); err != nil {
		return nil, unreadable(err)
	}
	return a.to(id)
}

func (p *poster) batch(ctx context.Context, calls []batchCall) error {
	first := p.last.Add(uint64(len(calls))) - uint64(len(calls)) + 1
	body := []byte{'['}
	for i, call := range calls {
		var err error
		if i > 0 {
			body = append(body, ',')
		}
		if body, err = appendRequest(body, first+uint64(i), call.method, call.args); err != nil {
			return err
		}
	}
	raw, err := p.post(ctx, append(body, ']'))
	if err != nil {
		return err
	}
	for i := range calls {
		calls[i].err = rpc.ErrMissingBatchResponse
	}
	return readBatch(raw, first, calls)
}

// readBatch reads the answers to requests whose ids begin at first. They may come in any order; what was not asked for
// is passed over.
func readBatch(raw []byte, first uint64, calls []batchCall) error {
	c := cursor{raw: raw}
	if c.peek() == '{' { // the whole batch was refused
		a, err := c.answer()
		if err = errors.Join(err, c.end()); err == nil && a.failed == nil {
			err = c.fail("one answer to a batch")
		}
		if err != nil {
			return unreadable(err)
		}
		return a.refusal()
	}
	err := c.array(func(int) error {
		if c.word("null") { // gateways write that where they have no answer
			return nil
		}
		a, err := c.answer()
		if err != nil {
			return err
		}
		id, err := strconv.ParseUint(string(a.id), 10, 64)
		if err != nil || id < first || id-first >= uint64(len(calls)) {
			return nil //nolint:nilerr // Whose answer it is nobody knows.
		}
		if call := &calls[id-first]; errors.Is(call.err, rpc.ErrMissingBatchResponse) {
			call.result, call.err = a.to(id)
		}
		return nil
	})
	if err = errors.Join(err, c.end()); err != nil {
		return unreadable(err)
	}
	return nil
}

// appendRequest writes a request.
func appendRequest(body []byte, id uint64, method string, args []any) ([]byte, error) {
	params := []byte("[]")
	if len(args) > 0 {
		var err error
		if params, err = json.Marshal(args); err != nil {
			return nil, fmt.Errorf("writing the request: %w", err)
		}
	}
	body = append(body, `{"jsonrpc":"2.0","id":`...)
	body = strconv.AppendUint(body, id, 10)
	body = append(append(append(body, `,"method":"`...), method...), `","params":`...)
	return append(append(body, params...), '}'), nil
}

// post sends a body and reads the answer to its end, so that the connection is kept. How long it may be the transport
// says; see patient.
func (p *poster) post(ctx context.Context, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("Content-Type", "application/json")
	p.header.set(request.Header)
	reply, err := p.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reply.Body.Close() }()
	answer, err := readAll(reply)
	if reply.StatusCode < 200 || reply.StatusCode >= 300 {
		status := reply.Status
		if to, err := reply.Location(); err == nil {
			status, answer = status+" to "+to.Host, nil // a path may hold a key, and the page repeats it
		}
		return nil, rpc.HTTPError{Status: status, StatusCode: reply.StatusCode, Body: answer}
	}
	return answer, err
}

// readAll reads a body into one piece of memory where its length is known. What is announced and does not come is not
// reserved.
func readAll(reply *http.Response) ([]byte, error) {
	const most = 1 << 20
	var body bytes.Buffer
	body.Grow(int(min(max(reply.ContentLength, 0), most)) + bytes.MinRead)
	if _, err := body.ReadFrom(reply.Body); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}

func (p *poster) Close() {}

// answer is what stands around a result. Its parts are pieces of the document.
type answer struct {
	id, result, failed []byte // nil where it is not there; failed also where it is null
}

// answer reads the object around a result, and looks for no more than its end: who decodes it reads it.
func (c *cursor) answer() (a answer, err error) {
	err = c.object("an answer", 0, func(name []byte) (i int, err error) {
		var part []byte
		if part, err = c.value(); err != nil {
			return -1, err
		}
		switch string(name) {
		case "id":
			i, a.id = 0, part
		case "result":
			i, a.result = 1, part
		case "error":
			if i = 2; !isNull(part) {
				a.failed = part
			}
		default:
			i = -1
		}
		return i, nil
	})
	return a, err
}

// to returns the result of the request with an id. A refusal may be without one: a gateway may not have read so far.
func (a answer) to(id uint64) (json.RawMessage, error) {
	mine := string(a.id) == strconv.FormatUint(id, 10)
	switch {
	case a.failed != nil && (mine || a.id == nil || isNull(a.id)):
		return nil, a.refusal()
	case !mine:
		return nil, errForeign
	case a.result == nil:
		return nil, rpc.ErrNoResult
	default:
		return a.result, nil
	}
}

// errForeign means that an answer is to another request.
var errForeign = errors.New("the answer has the id of another request")

// refusal is the error of an answer.
func (a answer) refusal() error {
	var e nodeError
	_ = json.Unmarshal(a.failed, &e) // what cannot be read of it is left out: it is an error all the same
	return &e
}

// nodeError is a node's own error, an rpc.DataError.
type nodeError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data"`
}

func (e *nodeError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("json-rpc error %d", e.Code)
	}
	return e.Message
}

// ErrorCode implements rpc.Error.
func (e *nodeError) ErrorCode() int { return e.Code }

// ErrorData implements rpc.DataError.
func (e *nodeError) ErrorData() any { return e.Data }

// unreadable makes the error of what is no JSON-RPC at all, such as a login page: it counts as no answer, and the
// endpoint has to show its chain again.
func unreadable(err error) error {
	return errors.New("this is no answer: " + err.Error()) //nolint:err113 // A malformedError would be the node's.
}

// socket is a caller over a WebSocket.
type socket struct{ *rpc.Client }

func (s socket) call(ctx context.Context, method string, args ...any) (raw json.RawMessage, err error) {
	err = s.CallContext(ctx, &raw, method, args...)
	return raw, err
}

func (s socket) batch(ctx context.Context, calls []batchCall) error {
	elements := make([]rpc.BatchElem, len(calls))
	for i, call := range calls {
		elements[i] = rpc.BatchElem{Method: call.method, Args: call.args, Result: &calls[i].result}
	}
	if err := s.BatchCallContext(ctx, elements); err != nil {
		return err
	}
	for i := range calls {
		calls[i].err = elements[i].Error
	}
	return nil
}
