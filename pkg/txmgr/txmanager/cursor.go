package txmanager

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
)

// cursor is the lease term's memory of the next nonces. It is read from the store when the lease term begins and
// whenever it turned out to be old, and used by one goroutine, except where stated otherwise.
type cursor struct {
	known *nonce.Cursor
	open  func(ctx context.Context) (nonce.Cursor, error)
	// given is the lowest number that was never given, 0 before it is known, for whoever else looks at it, and
	// unverified is set by whoever has seen the chain beyond it.
	given      atomic.Uint64
	unverified atomic.Bool
	opened     atomic.Bool
}

// isRead reports whether it has been read and not turned out to be old since. It is safe for concurrent use.
func (c *cursor) isRead() bool { return c.opened.Load() }

func (c *cursor) get(ctx context.Context) (nonce.Cursor, error) {
	if c.unverified.Swap(false) {
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
	c.opened.Store(true)
	c.given.Store(now.Next)
}

func (c *cursor) lose() {
	c.known = nil
	c.opened.Store(false)
	c.given.Store(0)
}

// cursorOf reads the cursor of a lease term: the store's or the chain's, whichever is further. A store that has gone
// back in time pauses the signer. One endpoint's word moves nothing where there are several, as no number comes back:
// the store's own then has to do, and a signer that never had one waits for a second endpoint.
func (w *worker) cursorOf(f lease.Fence) func(context.Context) (nonce.Cursor, error) {
	return func(ctx context.Context) (nonce.Cursor, error) {
		latest, sure, err := reached(ctx, w.Node, f.Signer)
		if err != nil {
			return nonce.Cursor{}, err
		}
		if !sure {
			return w.openUnsure(ctx, f, latest)
		}
		c, err := w.Nonces.TakeOver(ctx, f, latest)
		if next, is := nonce.Promoted(err); is {
			if ends := w.adopt(ctx, f, nonce.ChainNonces{Latest: latest}, next, err); ends != nil {
				return c, ends
			}
		}
		if nonce.Behind(err) {
			w.log.Error().Bool("critical", true).Err(err).Msg("the signer is paused")
			return c, errors.Join(err, w.Intents.Pause(ctx, f, err.Error()))
		}
		return c, err
	}
}

// restPatience is how long a signer waits for its numbers to come to rest after a standby was promoted.
const restPatience = time.Minute

// adopt takes a promoted standby for the database it was where nothing was lost, so that nobody need be asked: all that
// the signer has under way has landed, and the chain names no number beyond what this store gave out. It returns what
// ends this try, a lost lease term among them: the next one begins with a token that no lost time had. It returns nil
// where a person has to look.
func (w *worker) adopt(ctx context.Context, f lease.Fence, seen nonce.ChainNonces, next uint64, cause error) error {
	resyncer, is := w.Nonces.(nonce.Resyncer)
	if !is {
		return nil
	}
	var err, failed error
	seen.Finalized, err = w.Node.NonceAt(ctx, f.Signer, evm.Finalized)
	seen.Pending, failed = w.Node.NonceAt(ctx, f.Signer, evm.Pending)
	if err := errors.Join(err, failed); err != nil {
		return fmt.Errorf("%w; asking for the signer's numbers: %w", cause, err)
	}
	if w.promoted.IsZero() {
		w.promoted = w.Heads.Clock()
	}
	switch err := seen.Settled(); {
	case seen.Pending > next:
		return nil
	case err != nil && w.Heads.Clock().Sub(w.promoted) < restPatience:
		return fmt.Errorf("the database is a promoted standby, and its numbers are compared with the chain's: %w", err)
	case err != nil:
		return nil //nolint:nilerr // they do not come to rest: a person is asked
	}
	if _, err := resyncer.Resync(ctx, f.Signer, seen); err != nil {
		return err
	}
	w.promoted = time.Time{}
	w.log.Warn().Uint64("next", next).Err(cause).
		Msg("the database is a promoted standby; the signer's numbers are the chain's, and it goes on")
	return &lease.LostError{Fence: f, Op: "adopt"}
}

// openUnsure is cursorOf by the store alone, held against the one endpoint that answers.
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
