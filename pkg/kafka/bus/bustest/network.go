package bustest

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
)

// fate is what happens to a produce request on the network.
type fate int

const (
	passes      fate = iota
	cutReply         // the broker gets the request and answers; the answer is dropped and the connection cut
	isLost           // the connection is cut before the request
	isSwallowed      // the request never arrives, and the connection stays
)

const produceKey = 0

// network stands between one client and the cluster. The zero value passes everything.
type network struct {
	mu     sync.Mutex
	fates  []fate
	counts map[fate]int
	down   bool
	frozen bool
	conns  []*conn
}

// plan decides what happens to the next produce requests, in their order.
func (n *network) plan(fates ...fate) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fates = append(n.fates, fates...)
}

// count is how many produce requests met a fate.
func (n *network) count(f fate) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counts[f]
}

// sever cuts every connection and refuses new ones; to the cluster this is a process that died.
func (n *network) sever() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = true
	for _, c := range n.conns {
		_ = c.Close() // it is to be broken
	}
}

// freeze drops everything this side sends from now on, and lets connections hang.
func (n *network) freeze() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.frozen = true
}

// reconnect undoes sever and freeze for new connections.
func (n *network) reconnect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down, n.frozen = false, false
}

func (n *network) dial(ctx context.Context, transport, address string) (net.Conn, error) {
	n.mu.Lock()
	down := n.down
	n.mu.Unlock()
	if down {
		return nil, errors.New("the network is down")
	}
	raw, err := new(net.Dialer).DialContext(ctx, transport, address)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	c := &conn{Conn: raw, network: n}
	n.conns = append(n.conns, c)
	return c, nil
}

// meet takes the next planned fate.
func (n *network) meet() fate {
	n.mu.Lock()
	defer n.mu.Unlock()
	next := passes
	if len(n.fates) > 0 {
		next = n.fates[0]
		n.fates = slices.Delete(n.fates, 0, 1)
	}
	if n.counts == nil {
		n.counts = make(map[fate]int)
	}
	n.counts[next]++
	return next
}

func (n *network) isFrozen() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.frozen
}

// conn sees the requests of one connection, which carries one at a time.
type conn struct {
	net.Conn

	network *network

	mu   sync.Mutex
	rest int  // bytes of the current request still to come
	now  fate // of the current request
}

// requestHead is a request's size (4 bytes) and its API key (2).
const requestHead = 6

func (c *conn) Write(p []byte) (int, error) {
	if c.network.isFrozen() {
		return len(p), nil
	}
	switch c.follow(p) {
	case isLost:
		_ = c.Close() // that is the fate
		return 0, net.ErrClosed
	case isSwallowed:
		return len(p), nil
	case passes, cutReply:
	}
	return c.Conn.Write(p)
}

// follow keeps track of where requests begin and returns the fate of the one that p belongs to. The client under test
// writes a request's head together with what follows, and nothing of the next.
func (c *conn) follow(p []byte) fate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rest == 0 {
		c.now = passes
		if len(p) >= requestHead && binary.BigEndian.Uint16(p[4:]) == produceKey {
			c.now = c.network.meet()
		}
		if len(p) >= 4 {
			c.rest = 4 + int(binary.BigEndian.Uint32(p))
		}
	}
	c.rest = max(0, c.rest-len(p))
	return c.now
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil && c.now == cutReply {
		_ = c.Close() // that is the fate
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}
