// Package transporttest stands between a client and a server, for tests of what a network does to connections.
package transporttest

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Relay passes bytes on, until it is told otherwise. It ends with the test.
type Relay struct {
	listener net.Listener

	mu       sync.Mutex
	to       string
	present  []*pair
	accepted int
	muteAll  bool
	refuses  bool
}

// pair is a connection and its continuation.
type pair struct {
	client, server net.Conn

	mu     sync.Mutex
	frozen bool
}

// NewRelay starts a relay to an address.
func NewRelay(tb testing.TB, to string) *Relay {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	r := &Relay{listener: l, to: to}
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			connections.Go(func() { r.serve(client) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		r.Cut()
		connections.Wait()
	})
	return r
}

// Addr is the relay's host:port.
func (r *Relay) Addr() string { return r.listener.Addr().String() }

// To has new connections go to another address.
func (r *Relay) To(address string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to = address
}

// Freeze swallows all bytes of the connections there are, which stay open, as behind a balancer that forgot them. New
// ones work.
func (r *Relay) Freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.freeze()
}

func (r *Relay) freeze() {
	for _, p := range r.present {
		p.mu.Lock()
		p.frozen = true
		p.mu.Unlock()
	}
}

// Mute is Freeze, for the connections to come as well, or ends it for these.
func (r *Relay) Mute(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.muteAll = on; on {
		r.freeze()
	}
}

// Refuse cuts all connections and lets none in, or lets new ones in again.
func (r *Relay) Refuse(on bool) {
	r.mu.Lock()
	r.refuses = on
	r.mu.Unlock()
	if on {
		r.Cut()
	}
}

// Cut ends the connections there are.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.present {
		p.close()
	}
	r.present = nil
}

// Accepted is how many connections were let in.
func (r *Relay) Accepted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.accepted
}

func (p *pair) close() {
	_, _ = p.client.Close(), p.server.Close()
}

func (r *Relay) serve(client net.Conn) {
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", to)
	if err != nil {
		_ = client.Close()
		return
	}
	p := &pair{client: client, server: server}
	r.mu.Lock()
	if r.refuses {
		r.mu.Unlock()
		p.close()
		return
	}
	p.frozen = r.muteAll
	r.accepted++
	r.present = append(r.present, p)
	r.mu.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.pass(server, client)
	}()
	p.pass(client, server)
	<-done
}

// pass copies one way. An end that comes while the pair is frozen is not passed on either.
func (p *pair) pass(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.mu.Lock()
		frozen := p.frozen
		p.mu.Unlock()
		switch {
		case err != nil && frozen:
			_ = from.Close()
			return
		case err != nil:
			p.close()
			return
		case frozen:
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			p.close()
			return
		}
	}
}
