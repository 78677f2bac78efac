package notify

import (
	"fmt"

	"perpkeeper/pkg/job"
)

// Audience is who receives a message.
type Audience string

// The audiences.
const (
	Owner    Audience = "owner"    // of the position, through the venue's front end, which knows how to reach them
	Operator Audience = "operator" // of this keeper
)

// audiences lists them.
func audiences() []Audience { return []Audience{Owner, Operator} }

// The events.
const (
	PositionLiquidated = "position.liquidated" // final on the chain, by this keeper's transaction
	// positionDeleveraged: as above: a part of it, or all, was closed because its side had gained too much.
	positionDeleveraged = "position.deleveraged"
	LiquidationFailed   = "liquidation.failed" // LIQUIDATION_FAILED: this keeper tries no further attempt by itself
	KeepersAlarm        = "keepers.alarm"      // an alarm of a monitor about the keepers of a venue
	Emergency           = "keepers.emergency"  // an emergency action that was taken, or only rehearsed
)

// Message is what is posted.
type Message struct {
	// ID is the same however often a message is posted: receivers drop what they have had.
	ID      string `json:"id"`
	Event   string `json:"event"`
	ChainID uint64 `json:"chain_id"`
	// AtMs is when it happened (Unix ms): by the keeper's clock for what ended, by the chain's for alarms.
	AtMs        uint64       `json:"at_ms"`
	Liquidation *Liquidation `json:"liquidation,omitempty"`
	Alarm       *Alarm       `json:"alarm,omitempty"`
}

// Liquidation is the end of one attempt at liquidating, or deleveraging, a position.
type Liquidation struct {
	Job        string `json:"job"`
	Attempt    uint32 `json:"attempt"`
	Position   string `json:"position"`
	Account    string `json:"account"`
	Market     string `json:"market"`
	MarketName string `json:"market_name,omitempty"` // as front ends call it; absent where nobody knows
	Collateral string `json:"collateral"`
	IsLong     bool   `json:"is_long"`
	Outcome    string `json:"outcome"`
	Reason     string `json:"reason,omitempty"`
	TxHash     string `json:"tx_hash,omitempty"`  // absent when nothing was mined
	Explorer   string `json:"explorer,omitempty"` // where people see the transaction
	Block      uint64 `json:"block,omitempty"`
	Signer     string `json:"signer"` // who executed it
	// Settlement is size, price, fees, what was returned and what was not covered, by the venue's own events. It is
	// absent where nothing was executed.
	Settlement *job.Settlement `json:"settlement,omitempty"`
}

// Alarm is one thing that a monitor found wrong, or right again.
type Alarm struct {
	Name string `json:"name"`
	Text string `json:"text"`
	Over bool   `json:"over"` // it has passed
}

// About returns the message about a result and its audience; concerns is false for a result that nobody is notified of.
func About(chainID uint64, r job.Result) (m Message, to Audience, concerns bool) {
	var event string
	switch {
	case r.Kind == job.Liquidation && r.Outcome == job.Done:
		event, to = PositionLiquidated, Owner
	case r.Kind == job.Adl && r.Outcome == job.Done:
		event, to = positionDeleveraged, Owner
	case r.Kind == job.Liquidation && r.GivenUp:
		event, to = LiquidationFailed, Operator
	default:
		return m, "", false
	}
	return Message{
		ID: fmt.Sprintf("%s#%d", r.JobID, r.Attempt), Event: event, ChainID: chainID, AtMs: r.AtMs,
		Liquidation: liquidationOf(r),
	}, to, true
}

func liquidationOf(r job.Result) *Liquidation {
	l := &Liquidation{
		Job: r.JobID, Attempt: r.Attempt, Position: r.Key.Hex(), Account: r.Account.Hex(), Market: r.Market.Hex(),
		Collateral: r.Collateral.Hex(), IsLong: r.IsLong,
		Outcome: string(r.Outcome), Reason: r.Reason, Block: r.Block.Number, Signer: r.Signer.Hex(),
		Settlement: r.Settlement,
	}
	if !r.TxHash.IsZero() {
		l.TxHash = r.TxHash.Hex()
	}
	return l
}
