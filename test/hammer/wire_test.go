package hammer

import (
	"bytes"
	"net"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"perpkeeper/pkg/transport/transporttest"
)

// fault is what happens to a request. In both cases the client sees its connection break and cannot know which one it
// was.
type fault int

const (
	loseRequest fault = iota // it never arrives
	loseReply                // it arrives, and its answer is lost
)

// proxy stands between senders and a server. It loses the next request of a kind when lose is called.
type proxy struct {
	transporttest.Gate
	server string

	mu    sync.Mutex
	armed []plannedFault
	hits  map[fault]int
}

// plannedFault is a fault for the next request that holds some bytes.
type plannedFault struct {
	fault fault
	holds func(piece []byte) bool
}

// newProxy starts a proxy in front of the host of an address, and returns the address through it. It ends with the
// test.
func newProxy(t *testing.T, address string) (l *proxy, through string) {
	t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	l = &proxy{server: at.Host, hits: map[fault]int{}}
	l.Open(t, at.Host, l.pass)
	at.Host = l.Addr()
	return l, at.String()
}

// lose loses the next request that holds something. What was to be lost before and has not come yet waits its turn.
func (l *proxy) lose(f fault, holds func(piece []byte) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const most = 4 // a sender that is frozen sends nothing: faults are not saved up for it
	if len(l.armed) < most {
		l.armed = append(l.armed, plannedFault{f, holds})
	}
}

// lost counts what was lost.
func (l *proxy) lost(f fault) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hits[f]
}

// takeFault takes the first fault that is meant for a request.
func (l *proxy) takeFault(piece []byte) (f fault, hit bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, s := range l.armed {
		if s.holds(piece) {
			l.armed = append(l.armed[:i:i], l.armed[i+1:]...)
			l.hits[s.fault]++
			return s.fault, true
		}
	}
	return 0, false
}

func (l *proxy) pass(client, server net.Conn) {
	var muted atomic.Bool
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		reply(client, server, &muted)
	}()
	l.forward(client, server, &muted)
	_ = server.Close()
	<-answered
}

// reply passes on answers until the one that is to be lost has come: the server has done then what it was asked for.
func reply(client, server net.Conn, muted *atomic.Bool) {
	defer func() { _ = client.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		size, err := server.Read(buffer)
		if err != nil || muted.Load() {
			return
		}
		if _, err := client.Write(buffer[:size]); err != nil {
			return
		}
	}
}

// forward passes on requests until a side is gone or one is to be lost.
func (l *proxy) forward(client, server net.Conn, muted *atomic.Bool) {
	buffer := make([]byte, 256<<10)
	for {
		size, err := client.Read(buffer)
		if err != nil {
			return
		}
		f, hit := l.takeFault(buffer[:size])
		if hit && f == loseRequest {
			return
		}
		if hit {
			muted.Store(true)
		}
		if _, err := server.Write(buffer[:size]); err != nil {
			return
		}
	}
}

// claims tells the claims among the requests to a database. The driver prepares a statement once a connection and names
// it from then on; there is one for plain batches and one for those with liquidations or gaps.
type claims struct {
	mu    sync.Mutex
	names [][]byte
}

var prepared = regexp.MustCompile(`(stmtcache_[0-9a-f]+)\x00WITH advanced AS \(`)

// in reports whether a request executes the claim.
func (c *claims) in(piece []byte) bool {
	const prepare, bind = 'P', 'B'
	c.mu.Lock()
	defer c.mu.Unlock()
	switch piece[0] {
	case prepare:
		if found := prepared.FindSubmatch(piece[:min(len(piece), 200)]); found != nil && !c.named(found[1]) {
			c.names = append(c.names, bytes.Clone(found[1]))
		}
	case bind:
		return c.named(piece[:min(len(piece), 200)])
	}
	return false
}

// named tells whether a name of the claim stands in a piece.
func (c *claims) named(piece []byte) bool {
	return slices.ContainsFunc(c.names, func(name []byte) bool { return bytes.Contains(piece, name) })
}

func anything([]byte) bool { return true }

func broadcasts(piece []byte) bool {
	return bytes.Contains(piece[:min(len(piece), 1000)], []byte("eth_sendRawTransaction"))
}
