package transport

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// Conn is a connection that ends when it is mute (PIPE-14).
type Conn struct {
	net.Conn

	dialer  *Dialer
	address string

	mu       sync.Mutex
	asked    time.Time // when the first byte was written that nothing has been read since; zero if there is none
	heard    time.Time // when something was last read, or the connection made
	watching bool      // a timer runs that looks at it
	alive    func(context.Context) bool
	mute     bool
	closed   bool
}

// muteError is why a connection was closed.
type muteError struct{ after time.Duration }

func (e *muteError) Error() string {
	return fmt.Sprintf("the connection is dead: not a byte has come for %s", e.after)
}

// Timeout implements [net.Error].
func (e *muteError) Timeout() bool { return true }

// Temporary implements [net.Error].
func (e *muteError) Temporary() bool { return false }

// Under returns the Conn below an encrypted connection, or the connection itself.
func Under(c net.Conn) (*Conn, bool) {
	if secured, is := c.(interface{ NetConn() net.Conn }); is {
		c = secured.NetConn()
	}
	own, is := c.(*Conn)
	return own, is
}

// Confirm has somebody asked before the connection is given up: a server that works on an answer says nothing either.
// Alive reports that it is at work, and may take another Mute.
func (c *Conn) Confirm(alive func(ctx context.Context) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alive = alive
}

// Write implements [net.Conn].
func (c *Conn) Write(p []byte) (int, error) {
	c.ask()
	n, err := c.Conn.Write(p)
	return n, c.explain(err)
}

// Read implements [net.Conn].
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.mu.Lock()
		c.asked, c.heard = time.Time{}, time.Now()
		c.mu.Unlock()
	}
	return n, c.explain(err)
}

// Close implements [net.Conn]. Whoever closes it after half of the patience without an answer has given it up.
func (c *Conn) Close() error {
	c.mu.Lock()
	asked, again := c.asked, c.closed
	c.closed, c.asked = true, time.Time{}
	c.mu.Unlock()
	if !again {
		c.dialer.forget(c)
		if !asked.IsZero() && time.Since(asked) >= c.dialer.patience()/2 {
			c.dialer.closeIdle(c.address, asked)
		}
	}
	return c.Conn.Close()
}

func (c *Conn) explain(err error) error {
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mute {
		return &muteError{c.dialer.patience()}
	}
	return err
}

// ask notes that an answer is waited for from now on.
func (c *Conn) ask() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.asked.IsZero() || c.closed {
		return
	}
	c.asked = time.Now()
	if !c.watching {
		c.watching = true
		time.AfterFunc(c.dialer.patience(), c.look)
	}
}

// look gives the connection up if it is mute, and looks again later if it is waited for.
func (c *Conn) look() {
	c.mu.Lock()
	asked, alive := c.asked, c.alive
	if asked.IsZero() || c.closed {
		c.watching = false
		c.mu.Unlock()
		return
	}
	if rest := c.dialer.patience() - time.Since(asked); rest > 0 {
		time.AfterFunc(rest, c.look)
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	if alive != nil && c.confirmed(alive) {
		time.AfterFunc(c.dialer.patience(), c.look)
		return
	}
	c.mu.Lock()
	stillMute := c.asked == asked // nothing has come while somebody was asked
	c.mute = stillMute
	c.mu.Unlock()
	if stillMute {
		_ = c.Close() // it is given up
		return
	}
	time.AfterFunc(c.dialer.patience(), c.look)
}

func (c *Conn) confirmed(alive func(context.Context) bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), Mute/2)
	defer cancel()
	return alive(ctx)
}

// idleSince reports whether nobody waits for an answer, and nothing has come since.
func (c *Conn) idleSince(since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked.IsZero() && c.heard.Before(since)
}
