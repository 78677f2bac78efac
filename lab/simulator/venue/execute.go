package venue

import (
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Effect is the result of a call.
type Effect struct {
	// Kind and Key name the job that was called for; Kind is empty where the call is for none.
	Kind job.Kind
	Key  chain.Hash
	OK   bool
	// Revert is the error data of a call that failed; it may be empty.
	Revert  []byte
	GasUsed uint64
	// Events have been applied to the state that the call was executed on. There are none of a call that failed.
	Events []perp.Event
}

// execution is one call under way.
type execution struct {
	venue *Venue
	state perp.State
	at    perp.Stamp
	jobCall
	oldest, newest uint64 // seconds of the reports
	events         []perp.Event
}

// Execute runs a call on a state, at a place in a block; the logs of the call are numbered on from the stamp's. A
// failed call leaves the state as it was. In a rehearsal a hidden poison does not work.
func (v *Venue) Execute(s perp.State, c Call, at perp.Stamp, rehearsal bool) Effect {
	w, known := decode(c)
	if !known {
		return Effect{OK: len(c.Data) == 0, GasUsed: gasPayment}
	}
	x := &execution{venue: v, state: s, at: at, jobCall: w}
	e := Effect{Kind: w.kind, Key: w.key}
	why := x.run(c.From, rehearsal)
	switch {
	case why != nil:
		e.Revert, e.GasUsed = why.data, min(why.gas, c.Gas)
	case c.Gas < gasWon:
		e.GasUsed = c.Gas // out of gas: nobody says why
	default:
		e.OK, e.GasUsed, e.Events = true, gasWon, x.events
		for _, event := range x.events {
			mustApply(s, event)
		}
	}
	return e
}

// mustApply folds an event of the exchange's own. That it cannot follow the rows is a mistake in this package.
func mustApply(s perp.State, e perp.Event) {
	if err := perp.Apply(s, e); err != nil {
		panic(fmt.Sprintf("venue: %v", err))
	}
}

func (x *execution) run(by chain.Address, rehearsal bool) *revert {
	if x.venue.revoked[by] {
		return unauthorized(by)
	}
	if why := x.prices(); why != nil {
		return why
	}
	switch p := x.venue.poison[x.key]; {
	case p == Open, p == Hidden && !rehearsal:
		return refuse(early(x.kind), "Poisoned()")
	}
	switch x.kind {
	case job.Liquidation:
		return x.liquidation()
	case job.Order:
		return x.order()
	default:
		return x.request()
	}
}

// prices checks the reports as the oracle does, before anything else is looked at.
func (x *execution) prices() *revert {
	now := x.at.Seconds()
	for n, r := range x.reports {
		if r.provider != provider {
			return refuse(gasNoRole, "InvalidOracleProvider(address)", r.provider.Hash())
		}
		if r.second()+maxPriceAgeSeconds < now {
			return refuse(early(x.kind), "MaxPriceAgeExceeded(uint256,uint256)", number(r.second()), number(now))
		}
		if n == 0 {
			x.oldest = r.second()
		}
		x.oldest, x.newest = min(x.oldest, r.second()), max(x.newest, r.second())
	}
	if x.newest-x.oldest > maxRangeSeconds {
		return refuse(early(x.kind), "MaxOracleTimestampRangeExceeded(uint256,uint256)", number(x.newest-x.oldest),
			number(maxRangeSeconds))
	}
	return nil
}

// price is the reported price of a token.
func (x *execution) price(token chain.Address) (perp.Price, *revert) {
	for _, r := range x.reports {
		if r.token == token {
			return r.price, nil
		}
	}
	return perp.Price{}, refuse(early(x.kind), "EmptyPrimaryPrice(address)", token.Hash())
}

// market returns a market with the price of its index token; the other tokens must be reported as well.
func (x *execution) market(address chain.Address) (m perp.Market, index perp.Price, why *revert) {
	m, _ = row[perp.Market](x.state, perp.Markets, address.Hash())
	for _, token := range m.Tokens() {
		if _, why = x.price(token); why != nil {
			return m, index, why
		}
	}
	index, why = x.price(m.IndexToken)
	return m, index, why
}

// within refuses reports from outside a window.
func (x *execution) within(w perp.Window, updated chain.Uint) *revert {
	switch {
	case x.oldest < w.From:
		return refuse(early(x.kind), "OracleTimestampsAreSmallerThanRequired(uint256,uint256)", number(x.oldest),
			number(w.From))
	case w.To > 0 && x.newest > w.To:
		return refuse(early(x.kind), "OracleTimestampsAreLargerThanRequestExpirationTime(uint256,uint256,uint256)",
			number(x.newest), updated.Bytes32(), number(expirationSeconds))
	}
	return nil
}

// emit adds an event, made with the stamp of the log it stands in, behind so many others that belong to it.
func (x *execution) emit(behind uint32, event func(at perp.Stamp) perp.Event) {
	x.at.Log += behind
	x.events = append(x.events, event(x.at))
	x.at.Log++
}

func (x *execution) request() *revert {
	r, known := row[perp.Request](x.state, perp.Requests, x.key)
	if !known || !r.Status.Pending() || job.Kind(r.Kind) != x.kind {
		return gone(x.kind, x.key)
	}
	if _, _, why := x.market(r.Market); why != nil {
		return why
	}
	if why := x.within(perp.RequestWindow(r, expirationSeconds), r.UpdatedAtTime); why != nil {
		return why
	}
	x.emit(0, func(at perp.Stamp) perp.Event {
		return perp.RequestEnded{Kind: r.Kind, Key: x.key, Status: perp.Executed, Stamp: at}
	})
	return nil
}
