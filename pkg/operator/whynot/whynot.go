// Package whynot judges the present moment as the planner does: by its rules, on the state and the price reports that
// there are. It gives for every position, order and request whether it is due, and why not.
package whynot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/operator/market"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/due"
)

// Reports reads the price reports that may be judged with, up to the newest there is now.
func Reports(ctx context.Context, client *bus.Client, chainID uint64, maxAge time.Duration) (*price.Board, error) {
	board := price.NewBoard()
	err := market.Each(ctx, client, chainID, time.Now().Add(-2*maxAge), func(r price.Report) { board.Add(r) })
	return board, err
}

// Present is what a planner would decide by now. It holds what all of the venue is judged by; what accounts have set
// for themselves is as much as anybody likes, and [Decide] looks up what an order names of it.
func Present(ctx context.Context, db *pg.DB, board *price.Board, rules due.Rules,
	maxAge time.Duration) (*due.Moment, error) {
	rows, tokens := perp.NewBook(), map[chain.Address]bool{}
	var values []perp.MarketValue
	s, err := db.Load(ctx, nil, func(_ int, row perp.Row) error {
		switch r := row.(type) {
		case perp.Parameter:
			if r.Source == perp.FromAccount {
				return nil
			}
		case perp.Market:
			for _, token := range r.Tokens() {
				tokens[token] = true
			}
		case perp.MarketValue:
			values = append(values, r)
		}
		rows.Put(row)
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case s.Halted != "":
		return nil, fmt.Errorf("nothing is executed: the state is halted: %s", s.Halted)
	case !s.HasView():
		return nil,
			fmt.Errorf("nothing can be judged: the partitions of the state have no block in common; the foremost is "+
				"%d blocks ahead (is statevm running?)", s.Skew())
	}
	m := &due.Moment{
		Block: s.Watermark, Generation: uint32(s.Generation), Rows: rows,
		Glvs: due.GlvsOf(slices.Values(values)), Rules: rules,
	}
	return m.Quoted(maps.Keys(tokens), maxAge, func(token chain.Address) (due.Quote, bool) {
		r, known := board.Latest(token)
		return due.Quote{Price: perp.Price{Min: r.Min, Max: r.Max}, TimeMs: r.TimeMs, ID: r.ID(),
			Stuck: r.Stuck()}, known
	}), nil
}

// withFee is a moment's rows, and a UI fee.
type withFee struct {
	perp.Rows
	fee perp.Parameter
}

// Get implements [perp.Rows].
func (w withFee) Get(key perp.RowKey) perp.Row {
	if key == w.fee.RowKey() {
		return w.fee
	}
	return w.Rows.Get(key)
}

// lookUpFee gives a moment that nobody has used yet the UI fee that an order names.
func lookUpFee(ctx context.Context, db *pg.DB, m *due.Moment, receiver chain.Address) error {
	if receiver.IsZero() {
		return nil
	}
	fees, err := db.Parameters(ctx, []chain.Hash{perp.UIFeeKey(receiver)})
	for _, fee := range fees {
		m.Rows = withFee{m.Rows, fee}
	}
	return err
}

// Decide finds what a key names, describes it, and decides about it, at a moment that nobody has used yet.
func Decide(ctx context.Context, db *pg.DB, m *due.Moment, key chain.Hash) (what string, d due.Decision, err error) {
	position, err := db.Position(ctx, key)
	if err != nil {
		return "", d, err
	}
	if p := position.Row; position.Known {
		return fmt.Sprintf("position of %s in market %s, %s, %s", p.Account, p.Market, text.Side(p.IsLong), p.Status),
			m.Position(p), nil
	}
	order, err := db.Order(ctx, key)
	if err != nil {
		return "", d, err
	}
	if o := order.Row; order.Known {
		acted, err := db.Position(ctx, o.PositionKey())
		if err == nil {
			err = lookUpFee(ctx, db, m, o.UIFeeReceiver)
		}
		return fmt.Sprintf("order (%v) of %s in market %s, %s, %s", o.OrderType, o.Account, o.Market,
			text.Side(o.IsLong), o.Status), orCancel(m, m.Order(o, acted.Row)), err
	}
	request, err := db.Request(ctx, key)
	if err != nil {
		return "", d, err
	}
	if r := request.Row; request.Known {
		return fmt.Sprintf("%s of %s in market %s, %s", r.Kind, r.Account, r.Market, r.Status),
			orCancel(m, m.Request(r)), nil
	}
	return "", d, fmt.Errorf("%s is no position, order or request of the state at block %d", key, m.Block.Number)
}

// orCancel is a decision, or of what has expired that about cancelling it.
func orCancel(m *due.Moment, d due.Decision) due.Decision {
	if d.Expired {
		return m.Cancel(d)
	}
	return d
}
