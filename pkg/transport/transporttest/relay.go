// Package transporttest stands between a client and a server, for tests of what a network does to connections.
package transporttest

import (
	"net"
	"sync/atomic"
	"testing"
)

// Relay is a gate that passes all bytes on, until it is told otherwise.
type Relay struct {
	Gate
	muteAll atomic.Bool
	freezes atomic.Int64 // how often the connections there were have been frozen
}

// NewRelay starts a relay to an address.
func NewRelay(tb testing.TB, to string) *Relay {
	tb.Helper()
	r := &Relay{}
	r.Open(tb, to, r.relay)
	return r
}

// Freeze swallows all bytes of the connections there are, which stay open, as behind a balancer that forgot them. New
// ones work.
func (r *Relay) Freeze() { r.freezes.Add(1) }

// Mute is Freeze, for the connections to come as well, or ends it for these.
func (r *Relay) Mute(on bool) {
	r.muteAll.Store(on)
	if on {
		r.Freeze()
	}
}

func (r *Relay) relay(client, server net.Conn) {
	begun := r.freezes.Load()
	born := r.muteAll.Load() // a connection that came while all were mute stays so
	frozen := func() bool { return born || r.freezes.Load() > begun }
	done := make(chan struct{})
	go func() {
		defer close(done)
		pass(server, client, frozen)
	}()
	pass(client, server, frozen)
	<-done
}

// pass copies one way. An end that comes while the connection is frozen is not passed on.
func pass(to, from net.Conn, frozen func() bool) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		switch {
		case err != nil && frozen():
			_ = from.Close()
			return
		case frozen():
			continue
		}
		if err == nil {
			_, err = to.Write(buffer[:n])
		}
		if err != nil {
			_, _ = from.Close(), to.Close()
			return
		}
	}
}
