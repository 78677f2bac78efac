package lease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"perpkeeper/pkg/chain"
)

// The time a lease is given for, at each renewal. The shortest still leaves a renewal at a third of it time to be tried
// again.
const (
	DefaultTTL = 10 * time.Second
	MinTTL     = 3 * time.Second
	MaxTTL     = time.Minute
)

// Owner is one start of one process. The ID decides; the Label is for people, and stays the same over restarts
// (NON-12).
type Owner struct {
	ID    uuid.UUID
	Label string
}

// NewOwner returns an owner with a new random ID.
func NewOwner(label string) Owner { return Owner{ID: uuid.New(), Label: label} }

// Fence is the proof of ownership that every write for a signer presents.
type Fence struct {
	Signer chain.Address
	Owner  uuid.UUID
	// Token is the count of the signer's terms up to this one.
	Token int64
}

// Store keeps the lease rows. Each method is one statement, judged by the store's own clock.
type Store interface {
	// Acquire takes a lease that nobody holds, or whose holder's session with the store has been gone for a [Moment],
	// with the next token, or extends the owner's own, with the same one. The error of a lease that somebody else holds
	// is a [HeldError]; a signer that was never registered is another error.
	Acquire(ctx context.Context, signer chain.Address, owner Owner, ttl time.Duration) (Fence, error)
	// Renew extends the term of the fence, if it has not ended: otherwise the error is a [LostError], also for the
	// same owner.
	Renew(ctx context.Context, f Fence, ttl time.Duration) error
	// Release ends the term of the fence, so that the next owner need not wait. A term that has ended is left as it
	// is, with no error.
	Release(ctx context.Context, f Fence) error
}

// HeldError reports that somebody else holds the lease. It is no failure: ask again later.
type HeldError struct {
	Signer chain.Address
	Holder string // the owner's label
	Token  int64
	// Ahead is how far ahead of the store's clock the lease was last written; 0 where that clock has not gone back.
	Ahead time.Duration
	// Gone is true when the holder's session with the store has ended, and not begun again yet.
	Gone bool
}

// Error names the holder.
func (e *HeldError) Error() string {
	text := fmt.Sprintf("the lease of signer %s is held by %s (token %d)", e.Signer, e.Holder, e.Token)
	if e.Gone {
		text += ", which has no session any more"
	}
	if e.ClockWentBack() {
		text += fmt.Sprintf("; it was written %s ahead of the database's clock, which has gone back: while its "+
			"holder does not renew it, nobody gets it for that long (keeperctl lease break %s)",
			e.Ahead.Round(time.Second), e.Signer)
	}
	return text
}

// ClockWentBack reports whether the store's clock has gone back since the lease was written, by more than a clock is
// corrected by. A holder that lives ends that with its next renewal; the lease of one that is gone does not end in
// time.
func (e *HeldError) ClockWentBack() bool { return ClockWentBack(e.Ahead) }

// ClockWentBack is [HeldError.ClockWentBack] of a lease that was written so far ahead of the store's clock.
func ClockWentBack(ahead time.Duration) bool { return ahead >= time.Second }

// Held reports whether an error says that somebody else holds the lease.
func Held(err error) bool {
	_, is := errors.AsType[*HeldError](err)
	return is
}

// LostError reports that a term is over, or was over when a write presented its fence: the write changed nothing. It
// is no failure of the job, which the next term finds as it was (NON-8).
type LostError struct {
	Fence Fence
	Op    string // what was refused
}

// Error names what was refused, and to whom.
func (e *LostError) Error() string {
	return fmt.Sprintf("%s: owner %s no longer holds the lease of signer %s under token %d", e.Op, e.Fence.Owner,
		e.Fence.Signer, e.Fence.Token)
}

// Lost reports whether an error says that the term is over.
func Lost(err error) bool {
	_, is := errors.AsType[*LostError](err)
	return is
}

// Rest is how long who waits for a lease rests between two looks.
func Rest(ttl time.Duration) time.Duration { return min(ttl/10, Moment/4) }

// CheckTTL reports why a TTL cannot work, or nil.
func CheckTTL(ttl time.Duration) error {
	if ttl < MinTTL || ttl > MaxTTL {
		return fmt.Errorf("%s is not between %s and %s", ttl, MinTTL, MaxTTL)
	}
	return nil
}
