// Package whynot judges the present moment as the planner does: by its rules, on the state and the price reports that
// there are. It gives for every position, order and request whether it is due, and why not.
package whynot

import (
	"context"
	"fmt"
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

// Present is what a planner would decide by now.
func Present(ctx context.Context, db *pg.DB, board *price.Board, rules due.Rules,
	maxAge time.Duration) (*due.Moment, error) {
	s, err := db.Snapshot(ctx, nil)
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
	rows := perp.NewBook()
	put(rows, s.Markets)
	put(rows, s.Values)
	put(rows, s.Parameters)
	m := &due.Moment{
		Block: s.Watermark, Generation: uint32(s.Generation), Rows: rows,
		Glvs: due.GlvsOf(slices.Values(s.Values)), Rules: rules,
	}
	return m.Quoted(func(yield func(chain.Address) bool) {
		for _, one := range s.Markets {
			for _, token := range one.Tokens() {
				if !yield(token) {
					return
				}
			}
		}
	}, maxAge, func(token chain.Address) (due.Quote, bool) {
		r, known := board.Latest(token)
		return due.Quote{Price: perp.Price{Min: r.Min, Max: r.Max}, TimeMs: r.TimeMs, ID: r.ID(),
			Stuck: r.Stuck()}, known
	}), nil
}

func put[R perp.Row](book *perp.Book, rows []R) {
	for _, r := range rows {
		book.Put(r)
	}
}

// Decide finds what a key names, describes it, and decides about it.
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
