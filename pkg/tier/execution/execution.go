package execution

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Result is how a job ended on the chain.
type Result string

// The results.
const (
	// Executed: the order or request was executed, or the exchange's deleveraging state was brought up to date.
	Executed Result = "executed"
	// Cancelled: the order or request was cancelled: by the venue's rule when a keeper sent the transaction, else by
	// its owner.
	Cancelled   Result = "cancelled"
	Frozen      Result = "frozen"      // the order was frozen; an update by its owner revives it
	Liquidated  Result = "liquidated"  // the position was liquidated
	Deleveraged Result = "deleveraged" // the position was deleveraged
	// Swept: the order went with the position it would have closed. It is over, and whoever closed the position
	// executed that and not this.
	Swept Result = "swept"
)

// Execution is the end of one job, or of what would have become one.
type Execution struct {
	Kind job.Kind
	// Key is as in [job.Job]: the position's key for liquidations and deleveragings, else that of the order or request,
	// or the market padded for [job.AdlState].
	Key    chain.Hash
	IsLong bool // of a [job.AdlState]: the side; one market has both under one key
	Result Result
	// Reason is the text the venue gave for a cancellation or freezing; empty where it gave a custom error, which is in
	// ReasonBytes.
	Reason      string
	ReasonBytes []byte
	// Tx is the transaction that did it: From executed, and paid for the gas.
	Tx chain.Tx
	// Block is where it stands.
	Block chain.BlockRef
	// Pos is the place of the log that ended it.
	Pos chain.LogPos
}

// Identity is what distinguishes an execution from all others. The place alone does not: one log may bring both sides
// of a market up to date.
type Identity struct {
	Block chain.Hash
	Pos   chain.LogPos
	Need  job.Need
}

// Identity returns the execution's own.
func (e Execution) Identity() Identity { return Identity{e.Block.Hash, e.Pos, e.Need()} }

// Need is what was done: that of the jobs it ended.
func (e Execution) Need() job.Need { return job.NeedOf(e.Kind, e.Key, e.IsLong) }

// Work reports whether whoever sent the transaction did the job, if only by having the venue's rule end it. What went
// with its position nobody has done, nor what was called off: by its owner or, after it had expired, by a keeper; the
// log does not tell which.
func (e Execution) Work() bool {
	return e.Result != Swept && !(e.Result == Cancelled && e.Reason == calledOff)
}

// The reasons that the exchange gives when closing a position cancels the protective orders that came with it
// (OrderUtils, v2.2), and when an order or request is cancelled by a call for just that.
const (
	autoCancel = "AUTO_CANCEL"
	calledOff  = "USER_INITIATED_CANCEL"
)

// secondaryAdl marks an order's execution as a deleveraging (Order.SecondaryOrderType.Adl).
var secondaryAdl = chain.U64(1)

// Endings reads what the events of one transaction ended, in their order. They may be the part of a transaction that
// one partition owns. Tx and Block are the caller's to fill in.
//
// A liquidation or deleveraging announces and executes an order in one transaction: it is one ending, the position's. A
// shift, or a request of a GLV, does so with deposits, withdrawals and shifts of its own: nobody could have executed
// those, and they are no endings.
func Endings(events []perp.Event) []Execution {
	var endings []Execution
	decreases := map[chain.Hash]perp.PositionDecreased{} // by order
	inner := map[chain.Hash]bool{}                       // requests that were made here
	for _, e := range events {
		switch e := e.(type) {
		case perp.PositionDecreased:
			decreases[e.OrderKey] = e
		case perp.OrderEnded:
			endings = append(endings, endOfOrder(e, decreases))
		case perp.RequestCreated:
			inner[e.Request.Key] = true
		case perp.RequestEnded:
			if inner[e.Key] {
				continue
			}
			endings = append(endings, Execution{
				Kind: job.Kind(e.Kind), Key: e.Key, Result: resultOf(e.Status), Reason: e.Reason,
				ReasonBytes: e.ReasonBytes, Pos: posOf(e.Stamp),
			})
		case perp.MarketValued:
			for _, v := range e.Values {
				if v.Measure == perp.AdlEnabled {
					endings = append(endings, Execution{Kind: job.AdlState, Key: v.Scope, IsLong: v.IsLong,
						Result: Executed, Pos: posOf(v.Stamp)})
				}
			}
		}
	}
	return endings
}

func endOfOrder(e perp.OrderEnded, decreases map[chain.Hash]perp.PositionDecreased) Execution {
	ending := Execution{
		Kind: job.Order, Key: e.Key, Result: resultOf(e.Status), Reason: e.Reason, ReasonBytes: e.ReasonBytes,
		Pos: posOf(e.Stamp),
	}
	decrease, closes := decreases[e.Key]
	switch {
	case ending.Result == Cancelled && e.Reason == autoCancel:
		ending.Result = Swept
	case ending.Result != Executed || !closes:
	case decrease.OrderType == perp.Liquidation:
		ending.Kind, ending.Key, ending.Result = job.Liquidation, decrease.Position.PositionKey, Liquidated
	case e.SecondaryOrderType == secondaryAdl:
		ending.Kind, ending.Key, ending.Result = job.Adl, decrease.Position.PositionKey, Deleveraged
	}
	return ending
}

func resultOf(s perp.Status) Result {
	switch s {
	case perp.Cancelled:
		return Cancelled
	case perp.Frozen:
		return Frozen
	default:
		return Executed
	}
}

func posOf(s perp.Stamp) chain.LogPos { return chain.LogPos{Block: s.Block, Index: s.Log} }
