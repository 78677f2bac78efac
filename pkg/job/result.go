package job

import "perpkeeper/pkg/chain"

// Outcome is the result of one attempt at a job in this keeper. It describes our transaction, not the position or
// order: those are closed by the chain's events alone.
type Outcome string

// The outcomes.
const (
	// Done: the chain executed the order or request, or liquidated the position, by our transaction.
	Done Outcome = "executed"
	// CancelledByVenue: our transaction succeeded and the venue's rule cancelled the order or request.
	CancelledByVenue Outcome = "cancelled"
	FrozenByVenue    Outcome = "frozen"            // our transaction succeeded and the venue's rule froze the order
	LostRace         Outcome = "lost_race"         // somebody else was first; no failure
	DroppedRecovered Outcome = "dropped_recovered" // the condition no longer held when we looked again; no failure
	// SkippedDone: no longer pending when we looked again; if it had a nonce, a payment to oneself has freed it.
	SkippedDone Outcome = "skipped"
	// Expired: past the venue's deadline, or made to wait for longer than a job may; a nonce is freed likewise.
	Expired  Outcome = "expired"
	Reverted Outcome = "reverted" // our transaction was mined and reverted for another reason
	// Foreign: our nonce was spent by a transaction that is not ours: no verdict about the job.
	Foreign Outcome = "foreign"
	// Withdrawn: the nonce was wanted back, by an operator, for more urgent jobs behind it, or in another tier's window
	// for ours behind it; the job is as due as before, and no failure.
	Withdrawn Outcome = "withdrawn"
	// Refused: the simulated call failed for a cause that sending would not mend, or no node takes the transaction.
	Refused Outcome = "refused"
)

// Failure reports whether the outcome counts against the success rate (LIQ-16).
func (o Outcome) Failure() bool { return o == Reverted || o == Refused || o == Expired }

// Result is the end of one attempt at a job, as the sender publishes it.
type Result struct {
	JobID      string
	Attempt    uint32
	Kind       Kind
	Key        chain.Hash
	Account    chain.Address
	Outcome    Outcome
	Reason     string
	TxHash     chain.Hash // zero when nothing was sent
	Signer     chain.Address
	Nonce      uint64
	Block      chain.BlockRef
	GasUsed    uint64
	GasPrice   uint64 // wei
	DueSinceMs uint64
	AtMs       uint64 // when the attempt ended, by the database's clock; for dashboards only

	// Market, Collateral and IsLong are the job's, so that a consumer of results need not look anything up;
	// results of old have none.
	Market     chain.Address
	Collateral chain.Address
	IsLong     bool
	// GivenUp is true when this keeper tries no further attempt by itself: of a liquidation, LIQUIDATION_FAILED.
	GivenUp bool
	// Settlement is what our transaction came to for the position's owner; nil where it did nothing to a position, and
	// in results of old.
	Settlement *Settlement
}
