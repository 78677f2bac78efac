// Package transport makes the connections of all adapters, by one rule: a connection that says nothing when it was
// asked something is dead after [Mute], and so are the idle ones beside it.
//
// Guaranteed: where something was written and not a byte has come since, the connection is closed when the dialer's
// patience is over. Whoever waits on it gets an error. Idle connections to the same address that have said nothing
// since are closed with it: what forgot one connection, a balancer or a NAT, forgot the others. HTTP/2 asks by pings of
// its own, so that a slow answer is none of a dead connection.
//
// Not guaranteed: that a connection of which nobody asks anything is found dead. TCP probes it (see [Dialer]), which
// finds a host that is away, and no box between that swallows bytes.
package transport
