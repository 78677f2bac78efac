// Package nonce decides which number the next transaction of a signer gets.
//
// The numbers come from one cursor per signer, which lives in the signer's lease row and is advanced in the statement
// that stores the signed transaction. What is here is the part that needs no database: where a lease term starts, which
// number it promises, and how an allocation may change.
//
// # Guaranteed, given a [Store] that passes the suite in noncetest and a claim that takes only what the cursor promises
//
//   - No number is given to two jobs (NON-6, NON-14): the claim compares the cursor under the lease row's lock.
//   - A number with a signed transaction is never given again, whatever the time that has passed (NON-13).
//   - A lease term starts at or above the chain's own number.
//   - A store that knows less than the chain, or is not the database it was, opens no lease term until it was resynced:
//     see [Behind].
//
// # Not guaranteed
//
//   - If an outside wallet spends our signer's numbers and the chain takes those blocks back, a number below the cursor
//     may stay unused, and everything above it waits until it is filled.
package nonce

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/txmgr/lease"
)

// State is how far the allocation of one number has come.
type State string

// The states of an allocation.
const (
	// Held is promised to an intent whose signature is still being made elsewhere. It does not say that nothing was
	// signed.
	Held State = "HELD"
	// Signed has bytes in store. It does not say that anybody has seen them.
	Signed State = "SIGNED"
	// Consumed was spent in a finalized block. It does not say by which of our transactions, nor that it succeeded.
	Consumed State = "CONSUMED"
	// Released was held, never signed, and may be given again. It does not say that the numbers above it can land
	// before it does.
	Released State = "RELEASED"
)

var successors = map[State][]State{
	Held:     {Signed, Released},
	Signed:   {Consumed},
	Released: {Held, Signed},
	Consumed: nil,
}

// To reports whether an allocation may go from one state to another. Nothing leads back from a signature, and time
// leads nowhere.
func (s State) To(next State) bool { return slices.Contains(successors[s], next) }

// Cursor is what a signer may use next. The zero Cursor is a signer that never sent anything.
type Cursor struct {
	// Next is the lowest number that was never given.
	Next uint64
	// Released are numbers below Next that may be given again, in ascending order.
	Released []uint64
}

// Begin returns the cursor of a new lease term: what the store remembers, or what the chain has reached if that is
// further. Gaps that the chain has passed are gone: somebody else filled them.
func Begin(stored Cursor, latest uint64) Cursor {
	return Cursor{
		Next:     max(stored.Next, latest),
		Released: slices.DeleteFunc(slices.Clone(stored.Released), func(n uint64) bool { return n < latest }),
	}
}

// Promise returns the number that the next claim will take: the lowest gap, or the next.
func (c Cursor) Promise() uint64 {
	if len(c.Released) > 0 {
		return c.Released[0]
	}
	return c.Next
}

// Taken returns the cursor after the number it promised was taken. It panics on any other number: the cursor and the
// store have parted, and going on would be a guess.
func (c Cursor) Taken(n uint64) Cursor {
	if n != c.Promise() {
		panic(fmt.Sprintf("nonce: %d was taken, but %d was promised", n, c.Promise()))
	}
	if len(c.Released) > 0 {
		return Cursor{Next: c.Next, Released: slices.Clone(c.Released[1:])}
	}
	return Cursor{Next: n + 1}
}

// Store keeps cursors and allocations.
type Store interface {
	// TakeOver begins a lease term's work on its signer, in one transaction under the lease's lock: allocations that
	// are held without any signed transaction are released and their intents queued again, and the cursor moves to
	// where [Begin] says. Latest is the chain's own number of the signer. The error of a lease term that is over is a
	// lease.LostError, that of a store that has gone back in time a [BehindError].
	TakeOver(ctx context.Context, f lease.Fence, latest uint64) (Cursor, error)
}

// Resyncer reconciles a store with the chain after the database went back in time.
type Resyncer interface {
	// Resync ends whatever lease term there is, raises the token beyond all that a lost stretch of time may have given
	// out, moves the cursor to the chain's number if that is further, takes the database for what it now is, and lifts
	// the signer's pause. Whoever calls it vouches that no sender of another copy of the database is alive. It refuses
	// while the numbers in seen differ: transactions that the store does not know are still under way.
	Resync(ctx context.Context, signer chain.Address, seen ChainNonces) (Cursor, error)
}

// ChainNonces are a signer's next numbers on the chain, at the three block tags.
type ChainNonces struct{ Finalized, Latest, Pending uint64 }

// Settled returns why transactions of the signer are still under way, or nil.
func (s ChainNonces) Settled() error {
	if s.Finalized == s.Latest && s.Latest == s.Pending {
		return nil
	}
	return fmt.Errorf("transactions are under way (next nonce: finalized %d, latest %d, pending %d): try again when "+
		"they have landed",
		s.Finalized, s.Latest, s.Pending)
}

// BehindError reports that a store has gone back in time: a backup was restored, a replica was promoted that lacked the
// newest writes, or somebody else has used the signer's key. What it would give out now may have been given out before.
type BehindError struct {
	Signer chain.Address
	Why    string
	// Promoted: nothing is known to be lost. The store goes on in a later timeline of the same database, as a promoted
	// standby does, and the chain is not beyond Next, the number it would give out.
	Promoted bool
	Next     uint64
}

// Error names the cause and what to do.
func (e *BehindError) Error() string {
	return fmt.Sprintf("the database has gone back in time for signer %s: %s (stop every other sender of this "+
		"keeper, then run `keeperctl signer resync %s`)",
		e.Signer, e.Why, e.Signer)
}

// Promoted is the next number of a store that may have lost nothing; see [BehindError].
func Promoted(err error) (next uint64, is bool) {
	behind, is := errors.AsType[*BehindError](err)
	if !is || !behind.Promoted {
		return 0, false
	}
	return behind.Next, true
}

// Behind reports whether an error says that the store has gone back in time.
func Behind(err error) bool {
	_, is := errors.AsType[*BehindError](err)
	return is
}
