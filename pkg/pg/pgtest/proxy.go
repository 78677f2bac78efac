package pgtest

import (
	"encoding/binary"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"

	"perpkeeper/pkg/transport/transporttest"
)

// Fault is what a Proxy does to a COMMIT.
type Fault int

// The faults. In each of them the client sees its connection break and cannot know which one it was.
const (
	// LoseReply lets the server commit and cuts the connection instead of answering.
	LoseReply Fault = iota + 1
	// LoseCommit cuts the connection on both sides before the COMMIT reaches the server.
	LoseCommit
	// Stall cuts the client off and keeps the server waiting in the open transaction, as a network does that swallows
	// packets.
	Stall
	// Vanish is LoseReply, and from then on the server looks as if it were down; see Refuse.
	Vanish
)

// Proxy stands between a client and a database server and breaks connections at the one moment that matters.
type Proxy struct {
	transporttest.Gate
	address *url.URL

	mu     sync.Mutex
	faults []Fault
	hits   int
	seen   int    // statements since Kill
	killAt int    // 0 = never
	kill   func() // what happens then, besides cutting all connections

	requests int // from clients since Hold
	holdAt   int // 0 = never
	held     chan struct{}
	release  chan struct{}
	over     chan struct{} // closed when the test ends
}

// NewProxy starts a proxy in front of the server of a database address. It ends with the test.
func NewProxy(tb testing.TB, databaseURL string) *Proxy {
	tb.Helper()
	address, err := url.Parse(databaseURL)
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{address: address, over: make(chan struct{})}
	p.Open(tb, address.Host, p.pass)
	tb.Cleanup(func() { close(p.over) })
	address.Host = p.Addr()
	return p
}

// URL is the database's address through the proxy.
func (p *Proxy) URL() string { return p.address.String() }

// Next attempts faults for the next commits, one each.
func (p *Proxy) Next(faults ...Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = append(p.faults, faults...)
}

// Hits is how many faults have happened.
func (p *Proxy) Hits() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hits
}

// Kill counts the statements that clients have executed from now on, and instead of passing on the n-th (from 1) cuts
// every connection and calls dies, as if the client's process had ended at this moment.
func (p *Proxy) Kill(n int, dies func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen, p.killAt, p.kill = 0, n, dies
}

// Hold counts the requests of clients from now on, each of one or more statements that are written at once, and keeps
// the n-th (from 1) back, as if the client's process were paused at this moment. The channel is closed when it has come
// to that; resume lets the request go on, if there is still somebody to receive it.
func (p *Proxy) Hold(n int) (held <-chan struct{}, resume func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests, p.holdAt, p.held, p.release = 0, n, make(chan struct{}), make(chan struct{})
	return p.held, sync.OnceFunc(func() { close(p.release) })
}

// Requests is how many requests of clients have come since the last Hold, or in all: each is a round trip.
func (p *Proxy) Requests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

// Killed reports whether the statement that Kill waits for has come.
func (p *Proxy) Killed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killAt > 0 && p.seen >= p.killAt
}

func (p *Proxy) take() Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults) == 0 {
		return 0
	}
	f := p.faults[0]
	p.faults = p.faults[1:]
	p.hits++
	return f
}

// dies counts a statement and reports whether it is the one not to be passed on.
func (p *Proxy) dies(message []byte) bool {
	if message[0] != simpleQuery && message[0] != execute {
		return false
	}
	p.mu.Lock()
	p.seen++
	last := p.seen == p.killAt
	p.mu.Unlock()
	if last {
		p.kill()
		p.Cut()
	}
	return last
}

// pause counts a request and holds it back if it is the one to be held.
func (p *Proxy) pause() {
	p.mu.Lock()
	p.requests++
	hold, held, release := p.requests == p.holdAt, p.held, p.release
	p.mu.Unlock()
	if !hold {
		return
	}
	close(held)
	select {
	case <-release:
	case <-p.over:
	}
}

func (p *Proxy) pass(client, server net.Conn) {
	answers := make(chan struct{})
	go func() {
		defer close(answers)
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}()
	if stalled := p.forward(client, server); !stalled {
		_ = server.Close()
	}
	_ = client.Close()
	<-answers
}

// forward passes messages on until one of the sides is gone or a fault strikes. It reports whether the server is to be
// left waiting.
func (p *Proxy) forward(client, server net.Conn) (stalled bool) {
	message, err := readMessage(client, true)
	for begins := true; ; message, err = readMessage(client, false) {
		if begins && err == nil {
			p.pause()
		}
		if err != nil || p.dies(message) {
			return false
		}
		begins = message[0] == simpleQuery || message[0] == endOfRequest
		fault := Fault(0)
		if isCommit(message) {
			fault = p.take()
		}
		switch fault {
		case LoseCommit:
			return false
		case Stall:
			return true
		case LoseReply, Vanish:
			_ = client.Close() // Nothing can be answered any more.
			_, _ = server.Write(message)
			if fault == Vanish {
				p.Refuse(true)
			}
			return false
		}
		if _, err := server.Write(message); err != nil {
			return false
		}
	}
}

// The messages of the protocol that matter here: a statement by itself, the execution of a prepared one, and the end of
// a request of such.
const (
	simpleQuery  = 'Q'
	execute      = 'E'
	endOfRequest = 'S'
)

func isCommit(message []byte) bool {
	return message[0] == simpleQuery && strings.EqualFold(strings.TrimRight(string(message[5:]), "\x00"), "commit")
}

// readMessage reads one message of the protocol; the first of a connection has no type.
func readMessage(r io.Reader, first bool) ([]byte, error) {
	header := make([]byte, 5)
	if first {
		header = header[:4]
	}
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, err
	}
	length := int(binary.BigEndian.Uint32(header[len(header)-4:])) - 4
	message := make([]byte, len(header)+length)
	_, err := io.ReadFull(r, message[copy(message, header):])
	return message, err
}
