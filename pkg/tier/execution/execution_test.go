package execution

import (
	"reflect"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// What each transaction of a keeper, an owner or the venue's rule ends.
func TestEndings(t *testing.T) {
	order, position, market := chain.Hash{1}, chain.Hash{2}, chain.Hash{3}
	decrease := func(kind perp.OrderType) perp.Event {
		return perp.PositionDecreased{OrderKey: order, OrderType: kind, Position: perp.Position{PositionKey: position}}
	}
	at := perp.Stamp{Block: 5, Log: 9}
	ended := perp.OrderEnded{Key: order, Status: perp.Executed, Stamp: at}
	deleveraged := ended
	deleveraged.SecondaryOrderType = chain.U64(1)
	pos := chain.LogPos{Block: 5, Index: 9}
	for name, c := range map[string]struct {
		events []perp.Event
		want   []Execution
	}{
		"nothing": {[]perp.Event{perp.OrderCreated{Order: perp.Order{Key: order}}}, nil},
		"an order": {[]perp.Event{ended},
			[]Execution{{Kind: job.Order, Key: order, Result: Executed, Pos: pos}}},
		"an order to close": {[]perp.Event{decrease(perp.MarketDecrease), ended},
			[]Execution{{Kind: job.Order, Key: order, Result: Executed, Pos: pos}}},
		"a liquidation": {[]perp.Event{decrease(perp.Liquidation), ended},
			[]Execution{{Kind: job.Liquidation, Key: position, Result: Liquidated, Pos: pos}}},
		"a deleveraging": {[]perp.Event{decrease(perp.MarketDecrease), deleveraged},
			[]Execution{{Kind: job.Adl, Key: position, Result: Deleveraged, Pos: pos}}},
		"another's decrease": {
			[]perp.Event{perp.PositionDecreased{OrderKey: chain.Hash{8}, OrderType: perp.Liquidation}, ended},
			[]Execution{{Kind: job.Order, Key: order, Result: Executed, Pos: pos}},
		},
		"the venue's rule": {
			[]perp.Event{
				perp.OrderEnded{Key: order, Status: perp.Cancelled, ReasonBytes: perp.Bytes{1}},
				perp.OrderEnded{Key: order, Status: perp.Frozen, Reason: "so"},
			},
			[]Execution{{Kind: job.Order, Key: order, Result: Cancelled, ReasonBytes: []byte{1}},
				{Kind: job.Order, Key: order, Result: Frozen, Reason: "so"}},
		},
		"a protective order": {
			[]perp.Event{ended, perp.OrderEnded{Key: chain.Hash{4}, Status: perp.Cancelled, Reason: "AUTO_CANCEL"}},
			[]Execution{{Kind: job.Order, Key: order, Result: Executed, Pos: pos},
				{Kind: job.Order, Key: chain.Hash{4}, Result: Swept, Reason: "AUTO_CANCEL"}},
		},
		"requests": {
			[]perp.Event{
				perp.RequestEnded{Kind: perp.GlvShift, Key: order, Status: perp.Executed, Stamp: at},
				perp.RequestEnded{Kind: perp.Deposit, Key: position, Status: perp.Cancelled, Reason: "why"},
			},
			[]Execution{{Kind: job.GlvShift, Key: order, Result: Executed, Pos: pos},
				{Kind: job.Deposit, Key: position, Result: Cancelled, Reason: "why"}},
		},
		"requests within a request": {
			[]perp.Event{
				perp.RequestCreated{Request: perp.Request{Kind: perp.Withdrawal, Key: position}},
				perp.RequestEnded{Kind: perp.Withdrawal, Key: position, Status: perp.Executed, Stamp: at},
				perp.RequestEnded{Kind: perp.Shift, Key: order, Status: perp.Executed, Stamp: at},
			},
			[]Execution{{Kind: job.Shift, Key: order, Result: Executed, Pos: pos}},
		},
		"the word on deleveraging": {
			[]perp.Event{perp.MarketValued{Values: []perp.MarketValue{
				{Measure: perp.AdlEnabled, Scope: market, IsLong: true, Stamp: at},
				{Measure: perp.FundingFactorPerSecond, Scope: market},
			}}},
			[]Execution{{Kind: job.AdlState, Key: market, IsLong: true, Result: Executed, Pos: pos}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := Endings(c.events)
			if !reflect.DeepEqual(got, c.want) {
				t.Fatalf("got  %+v\nwant %+v", got, c.want)
			}
		})
	}
}

// Who sent the transaction has done nothing for what went with its position, nor for what was called off: a keeper that
// cancels what expired leaves the same log as an owner.
func TestWork(t *testing.T) {
	for _, c := range []struct {
		status perp.Status
		reason string
		work   bool
	}{
		{perp.Executed, "", true}, {perp.Frozen, "USER_INITIATED_CANCEL", true}, {perp.Cancelled, "", true},
		{perp.Cancelled, "OrderNotFulfillable", true}, {perp.Cancelled, "USER_INITIATED_CANCEL", false},
		{perp.Cancelled, "AUTO_CANCEL", false},
	} {
		ended := Endings([]perp.Event{perp.OrderEnded{Status: c.status, Reason: c.reason}})
		if len(ended) != 1 || ended[0].Work() != c.work {
			t.Errorf("%s for %q: %+v", c.status, c.reason, ended)
		}
	}
}
