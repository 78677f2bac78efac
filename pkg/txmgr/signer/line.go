package signer

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/transport"
)

const (
	maxAnswer  = 1 << 20 // bytes of an answer that are read
	maxMessage = 200     // bytes of a refusal that are repeated
)

// line is the way to a remote signer: JSON-RPC 2.0 over HTTP, one request at a time and connection. It is safe for
// concurrent use.
type line struct {
	url    secret.URL
	client *http.Client
	last   atomic.Uint64 // id of the last request
}

// newLine follows no redirection and passes no proxy: a signer is where the configuration says, or nowhere.
func newLine(at secret.URL, secured *tls.Config, timeout time.Duration) *line {
	direct := transport.HTTP(timeout)
	direct.Proxy, direct.TLSClientConfig = nil, secured
	return &line{url: at, client: &http.Client{
		Transport:     direct,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// RefusedError reports that a remote signer was reached and does not sign what it was asked to.
type RefusedError struct {
	Code    int
	Message string
}

// Error repeats the beginning of the signer's answer.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("it refused: %.*q (code %d)", maxMessage, e.Message, e.Code)
}

// Refused reports whether an error says that the signer does not sign this. Another transaction it may sign.
func Refused(err error) bool {
	_, is := errors.AsType[*RefusedError](err)
	return is
}

type request struct {
	Version string `json:"jsonrpc"`
	ID      uint64 `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

type answer struct {
	ID     json.Number     `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// call makes one request. After an error it is unknown whether the request was obeyed.
func (l *line) call(ctx context.Context, method string, param any) (json.RawMessage, error) {
	id := l.last.Add(1)
	status, body, err := l.post(ctx, request{Version: "2.0", ID: id, Method: method, Params: []any{param}})
	if err != nil {
		return nil, err
	}
	// Signers give refusals with statuses of all kinds: the body is looked at first.
	var a answer
	if json.Unmarshal(body, &a) != nil {
		return nil, fmt.Errorf("it answered with HTTP status %d and no JSON-RPC", status)
	}
	switch {
	case a.Error != nil:
		return nil, &RefusedError{Code: a.Error.Code, Message: a.Error.Message}
	case status != http.StatusOK:
		return nil, fmt.Errorf("it answered with HTTP status %d", status)
	case a.ID.String() != strconv.FormatUint(id, 10):
		return nil, errors.New("it answered another request")
	}
	return a.Result, nil
}

func (l *line) post(ctx context.Context, question request) (status int, body []byte, err error) {
	text, err := json.Marshal(question)
	if err != nil {
		return 0, nil, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url.Reveal(), bytes.NewReader(text))
	if err != nil {
		return 0, nil, errors.New("its address is none") // the error quotes it
	}
	post.Header.Set("Content-Type", "application/json")
	reply, err := l.client.Do(post)
	if err != nil {
		return 0, nil, plain(ctx, err)
	}
	defer func() { _ = reply.Body.Close() }()
	body, err = io.ReadAll(io.LimitReader(reply.Body, maxAnswer+1))
	switch {
	case err != nil:
		return 0, nil, plain(ctx, err)
	case len(body) > maxAnswer:
		return 0, nil, fmt.Errorf("its answer is longer than %d bytes", maxAnswer)
	}
	return reply.StatusCode, body, nil
}

// plain is an error of the transport without the address, which may hold a secret, and with the reason for which the
// wait was ended.
func plain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if wrapped, is := errors.AsType[*url.Error](err); is {
		return wrapped.Err
	}
	return err
}
