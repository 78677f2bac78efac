package txmanager

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/nonce"
)

// cursor is the tenure's memory of the next nonces. It is read from the store when the tenure begins and whenever it
// turned out to be old, and used by one goroutine, except where stated otherwise.
type cursor struct {
	known *nonce.Cursor
	open  func(ctx context.Context) (nonce.Cursor, error)
	// given is the lowest number that was never given, 0 before it is known, for whoever else looks at it, and doubted
	// is set by whoever has seen the chain beyond it.
	given   atomic.Uint64
	doubted atomic.Bool
}

// read reports whether it has been read and not turned out to be old since.
func (c *cursor) read() bool { return c.known != nil }

func (c *cursor) get(ctx context.Context) (nonce.Cursor, error) {
	if c.doubted.Swap(false) {
		c.lose()
	}
	if c.known == nil {
		read, err := c.open(ctx)
		if err != nil {
			return nonce.Cursor{}, err
		}
		c.set(read)
	}
	return *c.known, nil
}

func (c *cursor) set(now nonce.Cursor) {
	c.known = &now
	c.given.Store(now.Next)
}

func (c *cursor) lose() {
	c.known = nil
	c.given.Store(0)
}

// opening reads the cursor of a tenure: the store's or the chain's, whichever is further. A store that has gone back in
// time pauses the signer. One endpoint's word moves nothing where there are several, as no number comes back: the
// store's own then has to do, and a signer that never had one waits for a second endpoint.
func (w *worker) opening(f lease.Fence) func(context.Context) (nonce.Cursor, error) {
	return func(ctx context.Context) (nonce.Cursor, error) {
		latest, sure, err := reached(ctx, w.Node, f.Signer)
		if err != nil {
			return nonce.Cursor{}, err
		}
		if !sure {
			return w.openUnsure(ctx, f, latest)
		}
		c, err := w.Nonces.TakeOver(ctx, f, latest)
		if nonce.Behind(err) {
			w.log.Error().Bool("critical", true).Err(err).Msg("the signer is paused")
			return c, errors.Join(err, w.Intents.Pause(ctx, f, err.Error()))
		}
		return c, err
	}
}

// openUnsure is opening by the store alone, held against the one endpoint that answers.
func (w *worker) openUnsure(ctx context.Context, f lease.Fence, latest uint64) (nonce.Cursor, error) {
	c, err := w.Nonces.TakeOver(ctx, f, 0)
	switch {
	case nonce.Behind(err):
		return c, fmt.Errorf("one of several endpoints answers: %w", err)
	case err == nil && (c.Next == 0 || c.Next < latest):
		return nonce.Cursor{}, fmt.Errorf("the next nonce is %d as one of several endpoints says, and no other "+
			"answers; those below %d were given out here", latest, c.Next)
	}
	return c, err
}
