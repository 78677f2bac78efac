package transporttest

import (
	"context"
	"net"
	"sync"
	"testing"
)

// Gate lets connections in on their way to a server, until it is told otherwise. It ends with the test.
type Gate struct {
	listener net.Listener
	pass     func(client, server net.Conn)

	mu       sync.Mutex
	to       string
	open     map[net.Conn]bool
	accepted int
	refuses  bool
}

// Open has a gate let connections in to an address. Each has pass, which returns when no more is to be passed on; both
// ends are closed then.
func (g *Gate) Open(tb testing.TB, to string, pass func(client, server net.Conn)) {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	g.listener, g.pass, g.to, g.open = l, pass, to, map[net.Conn]bool{}
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			connections.Go(func() { g.serve(client) })
		}
	})
	tb.Cleanup(func() {
		_ = l.Close()
		g.Refuse(true)
		connections.Wait()
	})
}

// Addr is the gate's host:port.
func (g *Gate) Addr() string { return g.listener.Addr().String() }

// To has new connections go to another address.
func (g *Gate) To(address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.to = address
}

// Refuse cuts all connections and lets none in, as if the server were down, or lets new ones in again.
func (g *Gate) Refuse(on bool) {
	g.mu.Lock()
	g.refuses = on
	g.mu.Unlock()
	if on {
		g.Cut()
	}
}

// Cut ends the connections there are.
func (g *Gate) Cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for c := range g.open {
		_ = c.Close()
	}
}

// Accepted is how many connections were let in.
func (g *Gate) Accepted() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.accepted
}

func (g *Gate) serve(client net.Conn) {
	g.mu.Lock()
	to := g.to
	g.mu.Unlock()
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", to)
	if err != nil {
		_ = client.Close()
		return
	}
	defer func() { _, _ = client.Close(), server.Close() }()
	if !g.admit(client, server) {
		return
	}
	g.pass(client, server)
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.open, client)
	delete(g.open, server)
}

// admit registers a connection, unless none is to be let in.
func (g *Gate) admit(client, server net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refuses {
		return false
	}
	g.open[client], g.open[server] = true, true
	g.accepted++
	return true
}
