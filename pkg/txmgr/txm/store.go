package txm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/lease"
)

// Store keeps intents, their transactions and receipts. Its parts are what the stages of a sender need one by one.
//
// Every write but Enqueue presents a fence. If the lease term is over the write changes nothing and the error is a
// lease.LostError; if the intent has moved on meanwhile it changes nothing and the error is a [RefusedError]. Any other
// error of a write leaves open whether it happened.
type Store interface {
	Queue
	Claims
	PendingTxs
	Again
	Money
	Reports
}

// Queue is the intents that have no nonce yet.
type Queue interface {
	// Enqueue stores a job that a planner found in a state of the chain, and wakes whoever listens. Any sender may: a
	// job is one job however often it is published. Which of two publications is newer shows the chain's time of that
	// state, and by no other clock. The error wraps [ErrUnknownSigner] when the job is routed to a signer that was
	// never registered.
	Enqueue(ctx context.Context, j job.Job) (Admission, error)
	// Heads returns the most urgent queued intents of a signer that could be claimed now, see [Pick]. There is none
	// when the signer is paused.
	Heads(ctx context.Context, signer chain.Address, p Pick) ([]Intent, error)
	// Paused returns why a signer claims nothing, empty while it does.
	Paused(ctx context.Context, signer chain.Address) (reason string, err error)
	// Depth counts the queued intents of a signer.
	Depth(ctx context.Context, signer chain.Address) (int, error)
	// Skip ends a queued intent.
	Skip(ctx context.Context, f lease.Fence, intent int64, e Ending) error
}

// Pick is which queued intents are looked for. Those whose key is in flight, and liquidations of an account that has
// one in flight that is not mined, are left out: they would be refused, and whoever tried them first would let less
// urgent ones go before them.
type Pick struct {
	Except []int64
	// Limit is how many at most.
	Limit int
	// Liquidations is the most that may be pending over all signers of the keeper: no more are returned than there
	// are slots left, and nothing less urgent while one of the signer's waits for a slot. 0 for any number.
	Liquidations int
	// Urgent is true when only jobs of the [job.LiquidationLane] are looked for: no other finds a slot, see [Limits].
	Urgent bool
}

// Admission is what became of a job that was published.
type Admission string

// The admissions.
const (
	NewAttempt Admission = "queued"    // a new attempt lives
	Refreshed  Admission = "refreshed" // the live attempt is still queued, and carries these words
	Flying     Admission = "in_flight" // the live attempt has its nonce, or the words were older
	Cooling    Admission = "cooling"   // the last attempt has ended, and the job was not found since it cooled down
)

// Ending is the end of an attempt.
type Ending struct {
	Verdict
	Rest
}

// FinalReceipt is a stored receipt whose block is final, and what comes after its attempt.
type FinalReceipt struct {
	Receipt
	Rest
}

// Claims turn queued intents into signed ones.
type Claims interface {
	// Claim advances the cursor and stores numbers, transactions and states in one statement, all of the batch or
	// nothing. A batch without claims, or whose numbers are not as [Batch.Fresh] wants them, is the caller's mistake
	// and not refused but failed.
	Claim(ctx context.Context, f lease.Fence, b Batch) error
	// Pending counts the transactions of a signer that take one of its slots: those in flight from the number on that
	// MinedBelow last said.
	Pending(ctx context.Context, signer chain.Address) (int, error)
	// Claimed returns what became of a claim whose answer was lost (NON-3): the hash of the first transaction that is
	// stored for the intent, or zero if it is still without a nonce.
	Claimed(ctx context.Context, intent int64) (chain.Hash, error)
}

// Limits of what is pending at a time: in flight, and not mined as far as two hosts agree, see PendingTxs.MinedBelow.
type Limits struct {
	Signer int // transactions of one signer
	// Reserved are those of the signer's slots that only the [job.LiquidationLane] may take: what is less urgent finds
	// no slot once Signer-Reserved are taken, by whatever. At least one slot is open to all.
	Reserved     int
	Liquidations int // liquidations over all senders of the keeper (LIQ-6)
}

// Slots is how many of a signer's transactions may be pending when one of a lane is claimed, itself included.
func (l Limits) Slots(lane job.Lane) int {
	if lane == job.LiquidationLane {
		return l.Signer
	}
	return l.Signer - max(0, min(l.Reserved, l.Signer-1))
}

// PendingTxs are the intents with a nonce whose fate is open: not mined yet, or not in a final block.
type PendingTxs interface {
	// InFlight lists a signer's pending transactions by nonce.
	InFlight(ctx context.Context, signer chain.Address) ([]PendingTx, error)
	// Noted counts a broadcast of a transaction and its answer. An accepted one makes a signed intent [Sent].
	Noted(ctx context.Context, f lease.Fence, hash chain.Hash, class string, accepted bool) error
	// Replace stores another transaction at the nonce of an intent that was not mined yet, before anybody broadcasts
	// it. It refuses as [Moved] if the newest transaction is not the one that the caller knows, if the price is not
	// above it by [MinGrowth], or if an intent that is being cancelled would be executed after all.
	Replace(ctx context.Context, f lease.Fence, r Replacement) error
	// Fill spends a number below the cursor that was released or never given: it stores a pending transaction of kind
	// [Filler] with its transaction. It refuses as [Moved] where the number is taken.
	Fill(ctx context.Context, f lease.Fence, tx SignedTx) error
	// Record stores receipts, each in place of an earlier one of the same nonce: all of them or, where an intent has
	// moved on, none.
	Record(ctx context.Context, f lease.Fence, receipts ...Receipt) error
	// Unmine removes a stored receipt whose block left the chain.
	Unmine(ctx context.Context, f lease.Fence, r Receipt) error
	// MinedBelow reports that all of a signer's numbers below one are in mined blocks, as far as two hosts agree now.
	// What is in flight below it takes no slot any more, of the signer's or of the keeper's liquidations. A number
	// lower than the one before, as after a reorg, has what is in flight from it on take slots again, also where there
	// are none left. It stays in flight all the same, and what is unique in flight stays so, until it ends.
	MinedBelow(ctx context.Context, f lease.Fence, number uint64) error
	// Finish ends the intents of stored receipts whose blocks are final, and consumes their nonces: all of them or,
	// where an intent has moved on, none.
	Finish(ctx context.Context, f lease.Fence, finals ...FinalReceipt) error
	// NonceLost ends an intent whose nonce was spent by somebody else, and pauses the signer, unless a resync has found
	// that this may come. One that an operator gives up with its nonce unspent ends as withdrawn.
	NonceLost(ctx context.Context, f lease.Fence, intent int64, e Ending) error
	// Pause keeps a signer from claiming, until an operator has looked. What it has in flight goes on.
	Pause(ctx context.Context, f lease.Fence, reason string) error
	// Unable notes why a signer cannot sign, or pay, which is believed for some time; an empty reason ends it. It may
	// claim all the same, but planners route jobs past it, and what it has in flight takes no slot of the keeper's
	// liquidations, as for a signer that is paused or has no holder.
	Unable(ctx context.Context, f lease.Fence, reason string, believed time.Duration) error
}

// Money is what a signer has spent and earned in the last 24 hours, in wei.
type Money interface {
	// Spent is what was burnt, by the store's clock, and what is in flight and not mined may still burn.
	Spent(ctx context.Context, signer chain.Address) (ByLane, error)
	// Earned is what the venue has paid for what the signer's transactions did, as far as that was booked, by the
	// chain's time.
	Earned(ctx context.Context, signer chain.Address) (ByLane, error)
}

// Replacement is a further transaction at the nonce of a pending transaction.
type Replacement struct {
	Intent int64
	After  chain.Hash // the newest transaction as the caller knows it
	Kind   TxKind
	Tx     SignedTx
	// Cancel is how the attempt ends if this transaction is mined; it counts for kind [Cancel], and only the first
	// time.
	Cancel Verdict
}

// Reports are the intents that have ended and were not yet published.
type Reports interface {
	// Unreported lists the oldest of a signer's.
	Unreported(ctx context.Context, signer chain.Address, limit int) ([]Ended, error)
	// Reported takes intents off the list.
	Reported(ctx context.Context, f lease.Fence, intents []int64) error
}

// Ended is an intent at its end, with what is known of its transaction.
type Ended struct {
	Intent  Intent
	EndedAt time.Time
	Receipt *Receipt // nil when nothing of ours was mined
}

// ErrUnknownSigner marks a job that is routed to nobody: planner and sender are configured with different signers.
var ErrUnknownSigner = errors.New("the signer is not registered")

// Refusal is why a write found its intent, or its slot, taken.
type Refusal string

// The refusals.
const (
	Moved       Refusal = "moved"        // the intent is not in a state that the write starts from
	CursorMoved Refusal = "cursor_moved" // the promised nonce is not the next one: read the cursor again
	SignerFull  Refusal = "signer_full"  // as many of the signer's transactions are pending as may be, for that lane
	KeeperFull  Refusal = "keeper_full"  // as many liquidations are pending as may be
	AccountBusy Refusal = "account_busy" // a liquidation of the account is in flight, and not mined (LIQ-20)
	// SideBusy: a deleveraging of the same side of a market, or the update before it, is in flight.
	SideBusy Refusal = "side_busy"
	KeyBusy  Refusal = "key_busy" // a transaction for the same order, request or position is in flight, as another job
)

// RefusedError reports that a write changed nothing, under a fence that still holds.
type RefusedError struct {
	Op  string
	Why Refusal
}

// Error names what was refused and why.
func (e *RefusedError) Error() string { return fmt.Sprintf("%s: refused: %s", e.Op, e.Why) }

// Refused returns why a write was refused; the empty refusal if it was not.
func Refused(err error) Refusal {
	if refused, is := errors.AsType[*RefusedError](err); is {
		return refused.Why
	}
	return ""
}
