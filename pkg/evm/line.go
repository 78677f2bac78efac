package evm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"github.com/gorilla/websocket"

	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/transport"
)

// line is the connection to a node. It is made at the first request and again after it broke, and nothing is asked over
// it before the node has shown that it belongs to the chain.
type line struct {
	url     secret.URL
	chainID uint64
	// sendOnly is a relay, which may serve nothing but transactions. These name their chain themselves, so that it need
	// not show its own.
	sendOnly bool
	header   header
	http     *http.Client

	opening chan struct{} // a lock that a context can end the wait for; guards conn
	conn    *connection
}

// caller carries requests to a node.
type caller interface {
	call(ctx context.Context, method string, args ...any) (json.RawMessage, error)
	// batch makes calls in one request and fills in how each ended. Its error is for what keeps all from being
	// answered.
	batch(ctx context.Context, calls []batchCall) error
	Close()
}

// batchCall is one call of a batch.
type batchCall struct {
	method string
	args   []any
	result json.RawMessage
	err    error
}

// connection is one connection that has named the chain; over HTTP, the time between two failures.
type connection struct {
	caller
	proven   bool
	timeouts atomic.Int32 // in a row
}

// hung is how many requests in a row may have no answer before a WebSocket is taken for dead: a cut cable sends no
// farewell.
const hung = 3

// errBroken means that a WebSocket connection has ended. What was to be sent over it was not sent.
var errBroken = errors.New("the connection has ended")

// do makes a trip over the connection, once more if the connection turns out to have ended before.
func (l *line) do(ctx context.Context, trip func(context.Context, *connection) error) error {
	for again := false; ; again = true {
		c, err := l.open(ctx)
		if err != nil {
			return err
		}
		err = trip(ctx, c)
		l.inspect(ctx, c, err)
		if again || !errors.Is(err, errBroken) {
			return err
		}
	}
}

// inspect gives up a connection that broke, or over which nothing comes any more.
func (l *line) inspect(ctx context.Context, c *connection, err error) {
	if err == nil {
		c.timeouts.Store(0)
		return
	}
	switch class, _ := classify(err); {
	case errors.Is(ctx.Err(), context.Canceled): // says nothing about the connection
	case class == failedTransport, class == failedTimeout && (!announces(l.url) || c.timeouts.Add(1) >= hung):
		l.drop(c)
	}
}

// open connects if need be and checks the chain.
func (l *line) open(ctx context.Context) (*connection, error) {
	select {
	case l.opening <- struct{}{}:
		defer func() { <-l.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l.conn == nil {
		dialed, err := l.dial(ctx)
		if err != nil {
			return nil, err
		}
		l.conn = &connection{caller: dialed}
	}
	if !l.conn.proven {
		if err := l.prove(ctx, l.conn); err != nil {
			if announces(l.url) { // perhaps it was cut: then it never gets better
				l.conn.Close()
				l.conn = nil
			}
			return nil, unproven(err)
		}
		l.conn.proven = true
	}
	return l.conn, nil
}

// dial connects. Over a WebSocket go-ethereum's client would connect again by itself when it broke, and go on with a
// node that has not shown its chain: the hook that it asks for headers before each attempt refuses the second.
func (l *line) dial(ctx context.Context) (caller, error) {
	if !announces(l.url) {
		return &poster{url: l.url.Reveal(), header: l.header, http: l.http}, nil
	}
	var dialed bool
	var below *transport.Conn
	wire := &transport.Dialer{Patience: transport.Mute / 2}
	client, err := rpc.DialOptions(ctx, l.url.Reveal(), rpc.WithHTTPAuth(func(sent http.Header) error {
		if dialed {
			return errBroken
		}
		dialed = true
		l.header.set(sent)
		return nil
	}), rpc.WithWebsocketDialer(websocket.Dialer{
		Proxy: http.ProxyFromEnvironment, ReadBufferSize: 1024, WriteBufferSize: 1024, WriteBufferPool: new(sync.Pool),
		NetDialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := wire.DialContext(ctx, network, address)
			below, _ = c.(*transport.Conn)
			return c, err
		},
	}))
	if err == nil && below != nil {
		below.Confirm(func(ctx context.Context) bool { return answers(ctx, client) })
	}
	return socket{client}, err
}

// answers reports whether a node answers, with whatever: what waits for an answer may be slow, or want none.
func answers(ctx context.Context, client *rpc.Client) bool {
	err := client.CallContext(ctx, nil, methodChainID)
	_, refused := errors.AsType[rpc.Error](err)
	return err == nil || refused
}

// drop gives up a connection: the next request makes a new one, or, over HTTP, proves the old one again.
func (l *line) drop(c *connection) {
	l.opening <- struct{}{}
	defer func() { <-l.opening }()
	if l.conn != c {
		return
	}
	if !announces(l.url) {
		l.conn = &connection{caller: c.caller}
		return
	}
	l.conn = nil
	c.Close()
}

// unproven marks that a node's refusal to say which chain it belongs to is no answer to the request that waits behind
// the question.
func unproven(err error) error {
	if _, is := errors.AsType[rpc.Error](err); is {
		return &unprovenError{err}
	}
	return err
}

// unprovenError is a node's refusal to say which chain it belongs to.
type unprovenError struct{ reply error }

func (e *unprovenError) Error() string { return "asked for its chain: " + e.reply.Error() }

// prove compares the node's chain with the configured one.
func (l *line) prove(ctx context.Context, c *connection) error {
	raw, err := c.call(ctx, methodChainID)
	if _, refused := errors.AsType[rpc.Error](err); refused && l.sendOnly {
		return nil
	}
	if err != nil {
		return err
	}
	id, err := scalar[hexNumber](methodChainID).read(raw)
	if err != nil {
		return err
	}
	if uint64(id) != l.chainID {
		return &wrongChainError{fmt.Sprintf(methodChainID+": chain id %d is wanted, the endpoint names %d (correct "+
			"keeper.chain_id, or the address in chain.urls)",
			l.chainID, uint64(id))}
	}
	return nil
}

func (l *line) close() {
	l.opening <- struct{}{}
	defer func() { <-l.opening }()
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

// patient reports to the endpoint when an HTTP gateway asks for a pause, and bounds the size of an answer.
type patient struct {
	http.RoundTripper
	throttled func(pause time.Duration)
}

// How many bytes an answer may have, after it was unpacked: a gateway may pack thousands of them into one.
// go-ethereum's client has a limit for WebSockets only.
const (
	longestAnswer = 4 << 20  // to what is asked for a number or a call
	longestBlock  = 64 << 20 // of what is in one block, or a batch of headers
)

// longest is how many bytes an answer to a method may have.
func longest(method string) int64 {
	switch method {
	case methodBlock, methodBlockAt, methodReceipts, methodReceipt, labelBatch:
		return longestBlock
	default:
		return longestAnswer
	}
}

// bounded is the key of the longest answer in the context of a request.
type bounded struct{}

func (p patient) RoundTrip(r *http.Request) (*http.Response, error) {
	reply, err := p.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if reply.StatusCode == http.StatusTooManyRequests {
		p.throttled(retryAfter(reply.Header))
	}
	limit, is := r.Context().Value(bounded{}).(int64)
	if !is {
		limit = longestAnswer
	}
	reply.Body = http.MaxBytesReader(nil, reply.Body, limit)
	return reply, nil
}

// retryAfter is how long a gateway wants no requests, 0 if it does not say so in seconds.
func retryAfter(h http.Header) time.Duration {
	seconds, err := strconv.ParseUint(h.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
