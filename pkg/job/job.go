// Package job holds the types of what a keeper intends: a job, its deterministic identity, its order of urgency, and
// how it may end.
//
// A job is a function of state: the same position, order or request in the same condition yields the same id, so that
// finding it twice, or in two planners, is one job. Whether it was done is never recorded here: only the chain closes a
// job.
package job

import (
	"fmt"
	"strings"
	"time"

	"perpkeeper/pkg/chain"
)

// Class orders jobs of one queue: a smaller class goes first.
type Class uint8

// The classes, most urgent first.
const (
	ClassLiquidation Class = iota + 1
	ClassAdl
	ClassMarketOrder
	ClassTriggerOrder
	ClassRequest
	ClassCleanup
)

// Job is one on-chain action somebody has to execute.
type Job struct {
	// ID is the same in every planner of a keeper, and for every sighting of the same need; see [OrderID] and its
	// siblings.
	ID   string
	Kind Kind
	// Key is the position key of a liquidation or deleveraging, else the key of the order or request.
	Key        chain.Hash
	Account    chain.Address
	Market     chain.Address
	Collateral chain.Address
	IsLong     bool
	// SizeDeltaUsd is how much a deleveraging closes (30 decimals); zero for the others.
	SizeDeltaUsd chain.Uint
	// Tokens are those whose price reports the execution needs.
	Tokens []chain.Address
	// DueSinceMs is the chain's own time (ms) since when the job could be executed (TIER-9).
	DueSinceMs uint64
	// ExpiresMs is the chain time (ms) after which the venue refuses, 0 for never.
	ExpiresMs uint64
	Class     Class
	// Ratio is remaining over required collateral with 30 decimals, for liquidations, and the place among a side's,
	// from 0, for deleveragings: the lower, the sooner.
	Ratio chain.Uint
	// Frozen is true when executing needs the frozen-order role.
	Frozen   bool
	Evidence Evidence
	// Signer is the account the job is routed to.
	Signer chain.Address
}

// longestID is more bytes than any id has.
const longestID = 256

// Validate reports why a job cannot be one that a keeper has found: its id, its kind, its signer, or a time that no
// clock shows.
func (j Job) Validate() error {
	const never = 1 << 62 // ms
	_, known := Describe(j.Kind)
	switch {
	case j.ID == "" || len(j.ID) > longestID:
		return fmt.Errorf("a job with an id of %d bytes", len(j.ID))
	case !known:
		return fmt.Errorf("job %q is of kind %q, which this build does not know", j.ID, j.Kind)
	case j.Signer.IsZero():
		return fmt.Errorf("job %q is nobody's", j.ID)
	case max(j.DueSinceMs, j.ExpiresMs, j.Evidence.Block.TimeMs) > never:
		return fmt.Errorf("job %q has a time that never comes: born %d, expires %d, found in a block of %d", j.ID,
			j.DueSinceMs, j.ExpiresMs, j.Evidence.Block.TimeMs)
	}
	return nil
}

// Evidence is the state and the price reports the job was found in: enough to find it again.
type Evidence struct {
	Block      chain.BlockRef
	Generation uint32
	Reports    []string
	Reason     string
}

// LiquidationID identifies the liquidation of a position as it stands after its n-th change.
func LiquidationID(position chain.Hash, changes uint64) string {
	return fmt.Sprintf("%s:%s:%d", Liquidation, position.Hex(), changes)
}

// OrderID identifies the execution of an order as it stands after its n-th change.
func OrderID(order chain.Hash, changes uint64) string {
	return fmt.Sprintf("%s:%s:%d", Order, order.Hex(), changes)
}

// AdlID identifies the deleveraging of a position as it stands after its n-th change.
func AdlID(position chain.Hash, changes uint64) string {
	return fmt.Sprintf("%s:%s:%d", Adl, position.Hex(), changes)
}

// AdlStateID identifies the update that follows the one of the given block: there is one at a time for a side of a
// market.
func AdlStateID(market chain.Address, isLong bool, lastUpdate uint64) string {
	return fmt.Sprintf("%s:%s:%t:%d", AdlState, market, isLong, lastUpdate)
}

// RequestID identifies the execution of a deposit, withdrawal or shift, which never changes.
func RequestID(kind Kind, request chain.Hash) string {
	return fmt.Sprintf("%s:%s", kind, request.Hex())
}

// CancelID identifies the cancelling of what an expired job would have executed.
func CancelID(expired Job) string {
	cancel, _ := expired.Kind.Cancel()
	return string(cancel) + strings.TrimPrefix(expired.ID, string(expired.Kind))
}

// RenewedAfter is the age at which a price-born job that is still due is renewed, on the chain's clock. Every keeper
// of a venue has to come to the same due times, so that it is no setting.
const RenewedAfter = 300 * time.Second

// SaidEvery is the longest time between two sweeps, in which planners publish every job that is still due. For how long
// others wait for the next word follows from it, so that no sweep is too rare for them.
const SaidEvery = 10 * time.Second

// LifeEndsMs is when (ms, chain's clock) the job is renewed if it is still due; 0 for one that never is. A price
// made due what the venue sets no deadline for: every other job has its due time, and its end, from the chain.
func (j Job) LifeEndsMs() uint64 {
	if j.ExpiresMs > 0 {
		return 0
	}
	return j.DueSinceMs + uint64(RenewedAfter.Milliseconds())
}

// Before orders two jobs of one queue: class, then margin ratio, then age, then id (a total order).
func (j Job) Before(o Job) bool {
	if j.Class != o.Class {
		return j.Class < o.Class
	}
	if c := j.Ratio.Cmp(o.Ratio); c != 0 {
		return c < 0
	}
	if j.DueSinceMs != o.DueSinceMs {
		return j.DueSinceMs < o.DueSinceMs
	}
	return j.ID < o.ID
}
