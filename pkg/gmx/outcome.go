package gmx

import (
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Result is what a transaction did to a job.
type Result string

// The results. A receipt's status shows none of them: a transaction that succeeded may have cancelled or frozen the
// order it carried.
const (
	Nothing    Result = "nothing"    // no log of the transaction is about the job
	Executed   Result = "executed"   // the order or request was executed, or the position deleveraged
	Cancelled  Result = "cancelled"  // the order or request was cancelled
	Frozen     Result = "frozen"     // the order was frozen
	Liquidated Result = "liquidated" // the position was liquidated
)

// Outcome is a result and, for Cancelled and Frozen, the cause that the contracts gave: a text, or the data of a custom
// error.
type Outcome struct {
	Result      Result
	Reason      string
	ReasonBytes []byte
}

// Cause returns the custom error behind a cancellation or freezing.
func (o Outcome) Cause() Revert { return DecodeRevert(o.ReasonBytes) }

// Outcome judges the logs of one receipt by what they say about a key: that of an order or request, or of the position
// that was to be liquidated or deleveraged, or of the market whose deleveraging was to be brought up to date. Logs of
// other contracts, and of other keys, are no concern of the job.
func (d *Decoder) Outcome(logs []chain.Log, key chain.Hash) (Outcome, error) {
	outcome := Outcome{Result: Nothing}
	var r reader // its joins stay open: the other logs of the transaction are not asked
	for i := range logs {
		if !d.mayEnd(&logs[i], key) {
			continue
		}
		if err := d.log(&r, &logs[i], 0); err != nil {
			return Outcome{}, fmt.Errorf("judging a receipt: %w", err)
		}
	}
	for _, e := range r.events {
		if o, isEnd := endOf(e, key); isEnd {
			outcome = o
		}
	}
	return outcome, nil
}

// mayEnd picks the logs worth decoding: decreases of positions, which carry the key among their items, and what has it
// as a topic.
func (d *Decoder) mayEnd(l *chain.Log, key chain.Hash) bool {
	if !d.takes(l) || len(l.Topics) < 3 {
		return false
	}
	kind, known := eventKinds[l.Topics[1]]
	return known && kind.decode != nil && (l.Topics[2] == key || kind.name == "PositionDecrease")
}

func endOf(e perp.Event, key chain.Hash) (Outcome, bool) {
	switch e := e.(type) {
	case perp.OrderEnded:
		return ended(e.Status, e.Reason, e.ReasonBytes), e.Key == key
	case perp.RequestEnded:
		return ended(e.Status, e.Reason, e.ReasonBytes), e.Key == key
	case perp.PositionDecreased:
		if e.OrderType == perp.Liquidation {
			return Outcome{Result: Liquidated}, e.Position.PositionKey == key
		}
		return Outcome{Result: Executed}, e.Position.PositionKey == key
	case perp.MarketValued:
		about := func(v perp.MarketValue) bool { return v.Measure == perp.AdlEnabled && v.Scope == key }
		return Outcome{Result: Executed}, slices.ContainsFunc(e.Values, about)
	}
	return Outcome{}, false
}

func ended(s perp.Status, reason string, reasonBytes []byte) Outcome {
	switch s {
	case perp.Cancelled:
		return Outcome{Result: Cancelled, Reason: reason, ReasonBytes: reasonBytes}
	case perp.Frozen:
		return Outcome{Result: Frozen, Reason: reason, ReasonBytes: reasonBytes}
	default:
		return Outcome{Result: Executed}
	}
}
