// Package shadow judges a keeper that has no keys: what it would have sent, compared with what the venue's real keepers
// did on the chain. It is pure. The sender in mode "shadow" writes [Trial]s, pg reads the [Fate]s that the state has
// seen, and keeperctl shadow report prints the [Report].
//
// Guaranteed: each trial and each fate is counted once; what cannot be decided is counted as open, and neither praised
// nor blamed. Not guaranteed: that a transaction would have landed in the block after it was sent. A real one may be
// outbid or late; a shadow knows only when it could have sent.
package shadow

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// Trial is one due time of a job as the shadow met it.
type Trial struct {
	JobID      string
	DueSinceMs uint64 // of the job, on the chain's clock
	Kind       job.Kind
	Key        chain.Hash // of the position, order or request
	Account    chain.Address
	Market     chain.Address
	IsLong     bool

	// ObservedMs is the chain's time when the planner's job first came.
	ObservedMs uint64
	// SentBlock is the head on which the gate was open and the simulated call succeeded: the transaction would have
	// gone out then, and landed in the next block at the earliest. 0 = never.
	SentBlock uint64
	SentMs    uint64 // the chain's time then
	Gas       uint64 // limit that it would have had
	GasPrice  uint64 // wei per gas that the nodes suggested then
	// Reverts counts how often the simulated call reverted for a cause that ends a job, each time after the planner had
	// found it due anew from a state after the last.
	Reverts int
	// Outcome is how the job ended without being sent; empty while it is open, and when it was sent.
	Outcome job.Outcome
	Reason  string // of the last verdict
}

// Fate is what the chain shows of one order, request or position: by whose transaction, and what it paid.
type Fate struct {
	Kind   job.Kind
	Key    chain.Hash    // as a job's; of a deleveraging the position
	Market chain.Address // of a deleveraging
	IsLong bool          // of a deleveraging

	Block, TimeMs uint64
	By            chain.Address // who sent the transaction
	// ByOwner is true when its owner withdrew it, or something else ended it: no keeper was needed any more.
	ByOwner bool
	Fee     chain.Uint // wei that the venue paid the keeper
	Gas     chain.Uint // wei that the transaction burnt
}

// needOf is what trials and fates have in common. Of a deleveraging the side of a market is meant: which positions are
// chosen changes with every block, and the venue wants as many as it takes.
func needOf(kind job.Kind, key chain.Hash, market chain.Address, isLong bool) job.Need {
	if kind == job.Adl {
		return job.Need{Kind: kind, Key: market.Hash(), IsLong: isLong}
	}
	return job.Need{Kind: kind, Key: key}
}

func (t Trial) need() job.Need { return needOf(t.Kind, t.Key, t.Market, t.IsLong) }

func (f Fate) need() job.Need { return needOf(f.Kind, f.Key, f.Market, f.IsLong) }
