package transport

import (
	"context"
	"net"
	"sync"
	"time"
)

// Mute is after how long a connection is dead that does not answer. It leaves a second of the five in which every wire
// is to work again.
const Mute = 4 * time.Second

// Dialer opens connections that end when they are mute. The zero value is ready; it is safe for concurrent use.
type Dialer struct {
	// Patience is how long a question may have no byte of an answer; 0 is Mute.
	Patience time.Duration

	mu   sync.Mutex
	open map[*Conn]struct{}
}

// DialContext connects, within Mute. The connection is a [Conn].
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: Mute, KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3,
	}}
	raw, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return d.Watch(raw, address), nil
}

// Watch has a connection to an address end when it is mute.
func (d *Dialer) Watch(raw net.Conn, address string) *Conn {
	c := &Conn{Conn: raw, dialer: d, address: address, heard: time.Now()}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[*Conn]struct{}{}
	}
	d.open[c] = struct{}{}
	return c
}

func (d *Dialer) patience() time.Duration {
	if d.Patience > 0 {
		return d.Patience
	}
	return Mute
}

// forget takes a connection that has ended out of the list.
func (d *Dialer) forget(c *Conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, c)
}

// closeIdle closes the idle connections to an address that have said nothing since.
func (d *Dialer) closeIdle(address string, since time.Time) {
	d.mu.Lock()
	var idle []*Conn
	for c := range d.open {
		if c.address == address && c.idleSince(since) {
			idle = append(idle, c)
		}
	}
	d.mu.Unlock()
	for _, c := range idle {
		_ = c.Close() // it is given up
	}
}
