package pgtest

import (
	"context"
	"fmt"

	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// State is the state as of one block, the watermark, however far single partitions are ahead of it.
type State struct {
	pg.Progress
	// Positions are the open ones, Orders and Requests those that have not ended (frozen ones among them), of the
	// partitions asked for.
	Positions []perp.Position
	Orders    []perp.Order
	Requests  []perp.Request
	// Everybody's.
	Markets    []perp.Market
	Values     []perp.MarketValue
	Parameters []perp.Parameter
}

// Load reads what a planner needs for some partitions. Without a view (see [pg.Progress.HasView]) there are no rows.
func Load(ctx context.Context, db *pg.DB, partitions ...int) (State, error) {
	var s State
	c, err := db.Load(ctx, partitions, func(_ int, row perp.Row) error {
		switch r := row.(type) {
		case perp.Position:
			s.Positions = append(s.Positions, r)
		case perp.Order:
			s.Orders = append(s.Orders, r)
		case perp.Request:
			s.Requests = append(s.Requests, r)
		case perp.Market:
			s.Markets = append(s.Markets, r)
		case perp.MarketValue:
			s.Values = append(s.Values, r)
		case perp.Parameter:
			s.Parameters = append(s.Parameters, r)
		case perp.OracleSource:
		default:
			return fmt.Errorf("a %T has no place here", row)
		}
		return nil
	})
	s.Progress = c.Progress
	return s, err
}
