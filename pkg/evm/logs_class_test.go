package evm_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"perpkeeper/pkg/evm"
)

// logsAnswers are the texts of nodes and providers to eth_getLogs, complete, with what may surround them.
var logsAnswers = []struct {
	code   int
	text   string
	want   evm.LogsVerdict
	idNull bool
}{
	{code: -32000, text: "exceed maximum block range: 5000", want: shrink(5000)},
	{code: -32000, text: "exceed maximum block range: 50000", want: shrink(50_000)},
	{code: -32000, text: "eth_getLogs is limited to a 10,000 range", want: shrink(10_000)},
	{code: -32000, text: "limited to a 10000 range", want: shrink(10_000)},
	{code: -32614, text: "eth_getLogs is limited to a 1000 blocks range", want: shrink(1000)},
	{code: -32000, text: "limited to 1024 block", want: shrink(1024)},
	{code: -32000, text: "limited to 1024 blocks", want: shrink(1024)},
	{code: -32600, text: "block range is too wide", want: shrink(0)},
	{code: -32000, text: "maximum [from, to] blocks distance: 2000", want: shrink(2000)},
	{code: -32600, text: "You can make eth_getLogs requests with up to a 10 block range.", want: shrink(10)},
	{code: -32000, text: "up to a 500 block range", want: shrink(500)},
	{code: -32000, text: "block range too large. Max range: 800", want: shrink(800)},
	{code: -32602, text: "Maximum allowed number of requested blocks is 3500", want: shrink(3500)},
	{code: -32005, text: "Block range limit exceeded. See more details at https://example.org/logs", want: shrink(0)},
	{code: -32000, text: "exceeds the range allowed for your plan (50000 > 10000)", want: shrink(10_000)},
	{code: -32000, text: "please limit the query to at most 1000 blocks", want: shrink(1000)},
	{code: -32000, text: "ranges over 10000 blocks are not supported on freetier", want: shrink(10_000)},
	{code: -32000, text: "range is too large, max is 10k blocks", want: shrink(10_000)},
	{code: -32000, text: "range is too large, max is 1k blocks", want: shrink(1000)},
	{code: -32005, text: "range limit exceeded", want: shrink(0)},
	{code: -32000, text: "range threshold exceeded", want: shrink(0)},
	{code: -32602, text: "query exceeds max block range 100000", want: shrink(100_000)},
	{code: -32005, text: "query exceeds max block range", want: shrink(0)},
	{code: -32602, text: "eth_getLogs is limited to 0 - 50 blocks range", want: shrink(50)},
	{code: -32005, text: "Requested range exceeds maximum RPC range limit", want: shrink(0)},
	{code: -32005, text: "Requested range exceeds maximum range limit", want: shrink(0)},

	{code: -32000, text: "this block range should work: [0x10, 0x1f]", want: suggested(16, 31, 0)},
	{code: -32602, text: "Log response size exceeded. This block range should work: [0x1f, 0x10]",
		want: suggested(16, 31, 0)},
	{code: -32600, text: "up to a 10 block range. Based on your parameters, this block range should work: [0x10, 0x19]",
		want: suggested(16, 25, 10)},
	{code: -32005, text: "query returned more than 10000 results. Try with this block range [0x10, 0x1f].",
		want: suggested(16, 31, 0)},
	{code: -32000, text: "query exceeds max results 20000, retry with the range 1000-2000",
		want: suggested(1000, 2000, 0)},
	{code: -32000, text: "retry with the range 2000-1000", want: suggested(1000, 2000, 0)},

	{code: -32005, text: "query returned more than 10000 results", want: class(evm.LogsHalve)},
	{code: -32000, text: "query exceeds max results 20000", want: class(evm.LogsHalve)},
	{code: -32000, text: "logs matched by query exceeds limit of 10000", want: class(evm.LogsHalve)},
	{code: -32000, text: "response size should not greater than 10000000 bytes", want: class(evm.LogsHalve)},
	{code: -32020, text: "backend response too large", want: class(evm.LogsHalve)},
	{code: -32008, text: "Response is too big", want: class(evm.LogsHalve)},

	{code: -32602, text: "exceed max addresses or topics per search position", want: class(evm.LogsSplit)},
	{code: -32000, text: "This query contains 120 filters. The current limit is 100", want: class(evm.LogsSplit)},

	{code: -32005, text: "limit exceeded", want: class(evm.LogsDisabled)},
	{code: -32601, text: "the method eth_getLogs does not exist/is not available", want: class(evm.LogsDisabled)},

	{code: -32005, text: "method eth_getLogs in batch triggered rate limit", want: class(evm.LogsThrottled),
		idNull: true},
	{code: 429, text: "Your app has exceeded its compute units per second capacity", want: class(evm.LogsThrottled)},
	{code: -32005, text: "rate limit", want: class(evm.LogsThrottled)},
	{code: -32005, text: "daily request count exceeded, request rate limited", want: class(evm.LogsThrottled)},

	{code: -32011, text: "no backend is currently healthy", want: class(evm.LogsElsewhere)},
	// not -32005: nothing is known about it
	{code: -32000, text: "limit exceeded somewhere", want: class(evm.LogsElsewhere)},
	{code: -32000, text: "internal error", want: class(evm.LogsElsewhere)},
	{code: -32602, text: "block range extends beyond current head block", want: class(evm.LogsElsewhere)},
	{code: -32000, text: "", want: class(evm.LogsElsewhere)},
	{code: -32000, text: "limited to 10 requests", want: class(evm.LogsElsewhere)}, // no range
	{code: -32000, text: "exceed maximum block range: 99999999999999999999", want: shrink(0)},
	{code: -32000, text: "retry with the range 0xffffffffffffffffffff-1", want: class(evm.LogsElsewhere)},
}

func class(c evm.LogsClass) evm.LogsVerdict { return evm.LogsVerdict{Class: c} }

func shrink(limit uint64) evm.LogsVerdict {
	return evm.LogsVerdict{Class: evm.LogsShrink, Limit: limit}
}

func suggested(from, to, limit uint64) evm.LogsVerdict {
	return evm.LogsVerdict{Class: evm.LogsSuggested, From: from, To: to, Limit: limit}
}

// replyError is a node's own error.
type replyError struct {
	code int
	text string
}

func (e replyError) Error() string  { return e.text }
func (e replyError) ErrorCode() int { return e.code }

// Every text, bare, behind prefixes, in any case.
func TestLogsClasses(t *testing.T) {
	for _, a := range logsAnswers {
		for _, text := range []string{a.text, "x: " + a.text, "upstream: err: " + a.text, strings.ToUpper(a.text),
			"X: " + strings.ToUpper(a.text)} {
			if got := evm.SortLogsAnswer(replyError{a.code, text}); got != a.want {
				t.Errorf("%d %q: %+v, want %+v", a.code, text, got, a.want)
			}
		}
	}
}

// The same over HTTP: as a JSON-RPC error, with an id of null, and behind a status that says nothing.
func TestLogsClassesOverHTTP(t *testing.T) {
	node := startAnswering(t)
	for _, a := range logsAnswers {
		text, _ := json.Marshal(a.text)
		for _, form := range []struct {
			id     string // empty is that of the request
			status int
		}{{"", 200}, {"null", 200}, {"", http.StatusBadRequest}} {
			member := fmt.Sprintf(`"error":{"code":%d,"message":%s}`, a.code, text)
			err := logsError(t, node, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(form.status)
				if form.id == "" {
					respond(w, r, member)
					return
				}
				_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, form.id, member)
			})
			if got := evm.SortLogsAnswer(err); got != a.want {
				t.Errorf("%q, id %s, HTTP %d: %+v, want %+v", a.text, form.id, form.status, got, a.want)
			}
			if !a.idNull {
				break // the forms differ in the transport alone: one text shows it
			}
		}
	}
}

// What is no reply says nothing but that somebody else should be asked, unless a gateway says that it is too much.
func TestLogsClassesOfNoReply(t *testing.T) {
	node := startAnswering(t)
	for _, tt := range []struct {
		name string
		do   http.HandlerFunc
		want evm.LogsVerdict
	}{
		{"a cut", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, class(evm.LogsElsewhere)},
		{"HTTP 429", status(http.StatusTooManyRequests, "rate"), class(evm.LogsThrottled)},
		{"HTTP 503", status(http.StatusServiceUnavailable, "limit exceeded"), class(evm.LogsElsewhere)},
		{"HTTP 400 with a page", status(http.StatusBadRequest, "<html>"), class(evm.LogsElsewhere)},
		{"HTTP 400 with the node's error",
			status(http.StatusBadRequest, `{"error":{"code":-32000,"message":"Max range: 70"}}`), shrink(70)},
		{"HTTP 413", status(http.StatusRequestEntityTooLarge,
			`{"error":{"code":-32008,"message":"Response is too big"}}`), class(evm.LogsHalve)},
	} {
		err := logsError(t, node, tt.do)
		if got := evm.SortLogsAnswer(err); got != tt.want {
			t.Errorf("%s: %+v, want %+v (%v)", tt.name, got, tt.want, err)
		}
	}
	for _, err := range []error{errors.New("exceed maximum block range: 5000"), io.EOF, nil} {
		if got := evm.SortLogsAnswer(err); got != class(evm.LogsElsewhere) {
			t.Errorf("%v: %+v", err, got)
		}
	}
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, code) }
}

// logsError asks a node for logs through a client that has learnt nothing about it yet.
func logsError(t *testing.T, node *answering, how http.HandlerFunc) error {
	t.Helper()
	node.handler.Store(nil)
	c := dial(t, node.config())
	node.serve(how)
	_, err := c.Logs(t.Context(), blockSeven, filter)
	return err
}
