package due

import (
	"errors"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Deleverage decides about auto-deleveraging a side of a market: first whether the exchange's state of it has to be
// brought up to date, then, if it is enabled, which of these open positions are closed, and by how much. The most
// profitable go first, until together they bring the side below its limit; the contract refuses what goes beyond.
// Remote are the positions of the side that other planners have, where there are such: they are chosen from as well,
// because the limit is that of the whole side, but their jobs are the others' to find. Planners that see the same
// positions choose the same; while they are not known nothing is chosen.
//
// A decision holds for the state and the reports of its moment. What has been executed since, or another price, makes
// another set of positions needed: a job has to be published again before it is sent.
//
// The decisions hold what is due only; positions that could not be judged are named in the error beside them. Nothing
// is without the role (LIQ-15, capabilities).
func (m *Moment) Deleverage(market perp.Market, isLong bool, open func(yield func(*perp.Position) bool),
	remote RemotePositions) (due []Decision, err error) {
	if !m.Rules.AdlRole {
		return nil, nil
	}
	terms, err := m.View().Terms(market.MarketToken)
	if err != nil {
		return nil, err
	}
	stand, err := terms.Deleveraging(m.Rows, isLong)
	if err != nil {
		return nil, err
	}
	tokens, err := m.tokens(market.MarketToken)
	if err != nil {
		return nil, err
	}
	enabled := perp.MarketValueKey(perp.AdlEnabled, market.MarketToken.Hash(), chain.Address{}, isLong)
	last, _ := m.Rows.Get(enabled).(perp.MarketValue)
	if m.newest(tokens) < last.Stamp.TimeMs/1000 {
		return nil, nil // the venue takes no reports of before its last update, LATEST_ADL_AT
	}
	if stand.Exceeded() != stand.Enabled {
		return []Decision{m.adlState(market, isLong, stand, tokens, last.Stamp.Block)}, nil
	}
	if !stand.Enabled {
		return nil, nil
	}
	var others []perp.Position
	if remote != nil {
		var known bool
		if others, known = remote(); !known {
			return nil, nil
		}
	}
	profitable, err := mostProfitable(terms, open, others, isLong)
	return m.deleverageEach(stand, tokens, profitable), err
}

// RemotePositions returns the most profitable positions of a side that other planners have, and whether they are known.
// It is asked only where there is something to choose.
type RemotePositions func() (positions []perp.Position, known bool)

// newest is the second of the newest of these tokens' reports.
func (m *Moment) newest(tokens []chain.Address) (second uint64) {
	for _, token := range tokens {
		second = max(second, m.Quotes[token].Second())
	}
	return second
}

// adlState is the job that has the exchange compare profits and pool again.
func (m *Moment) adlState(market perp.Market, isLong bool, stand perp.Deleveraging, tokens []chain.Address,
	lastUpdate uint64) Decision {
	d := Decision{Job: job.Job{
		ID: job.AdlStateID(market.MarketToken, isLong, lastUpdate), Kind: job.AdlState, Key: market.MarketToken.Hash(),
		Market: market.MarketToken,
		IsLong: isLong, Class: job.ClassAdl, Tokens: tokens,
	}}
	return d.yes(m, "profits are %s of the pool, the limit is %s, and the exchange says enabled = %t",
		percent(stand.Factor.Abs()), percent(stand.Limit), stand.Enabled)
}

// deleverageEach chooses no more positions than are needed: with any one of them left out, the others would not bring
// the side below its limit. They are in the order of their ratio, which for these jobs is their place among the chosen.
func (m *Moment) deleverageEach(stand perp.Deleveraging, tokens []chain.Address,
	profitable []profitable) (due []Decision) {
	left, surplus, taken := stand.Excess(), stand.Surplus(), chain.Uint{}
	for rank, c := range profitable {
		if left.IsZero() || rank > 0 && !taken.Less(surplus) {
			break
		}
		p, size, pays := c.position, c.position.SizeInUsd, c.pnl
		if left.Less(c.pnl) {
			size, pays = p.SizeInUsd.MulDiv(left, c.pnl), left
		}
		left, taken = left.Sub(pays), taken.Add(pays)
		if c.remote {
			continue
		}
		d := Decision{Job: job.Job{
			ID: job.AdlID(p.PositionKey, p.Changes), Kind: job.Adl, Key: p.PositionKey, Account: p.Account,
			Market: p.Market, Collateral: p.CollateralToken,
			IsLong: p.IsLong, SizeDeltaUsd: size, Class: job.ClassAdl, Ratio: chain.U64(uint64(rank)), Tokens: tokens,
		}}
		due = append(due, d.yes(m, "profits are %s of the pool, the limit is %s; of this position's %s USD close %s",
			percent(stand.Factor.Abs()), percent(stand.Limit), dollars(p.SizeInUsd), dollars(size)))
	}
	return due
}

// profitable is a position with what it has gained.
type profitable struct {
	position perp.Position
	pnl      chain.Uint
	remote   bool
}

// mostProfitable lists the positions of a side that have gained, the most first. Those whose gain is beyond the
// contract's arithmetic are left out and named.
func mostProfitable(terms *perp.Terms, open func(yield func(*perp.Position) bool), others []perp.Position,
	isLong bool) (list []profitable, failures error) {
	consider := func(p *perp.Position, remote bool) {
		if p.IsLong != isLong {
			return
		}
		var pnl chain.Int
		if err := chain.Checked(func() { pnl = terms.Pnl(*p) }); err != nil {
			failures = errors.Join(failures, fmt.Errorf("profit of position %s: %w", p.PositionKey, err))
		} else if pnl.Sign() > 0 {
			list = append(list, profitable{*p, pnl.Uint(), remote})
		}
	}
	for p := range open {
		consider(p, false)
	}
	for i := range others {
		consider(&others[i], true)
	}
	slices.SortFunc(list, func(a, b profitable) int {
		if c := b.pnl.Cmp(a.pnl); c != 0 {
			return c
		}
		return slices.Compare(a.position.PositionKey[:], b.position.PositionKey[:])
	})
	return list, failures
}
