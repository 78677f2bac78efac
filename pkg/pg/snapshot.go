package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/perp"
)

// tableQuery is a statement whose result is rows of a table.
type tableQuery struct {
	table perp.Table
	*Statement
}

// Snapshot is the state as of one block, the watermark, however far single partitions are ahead of it.
type Snapshot struct {
	Standing
	// Positions are the open ones, Orders and Requests those that have not ended (frozen ones among them), of the
	// partitions asked for.
	Positions []perp.Position
	Orders    []perp.Order
	Requests  []perp.Request
	// Everybody's.
	Markets       []perp.Market
	Values        []perp.MarketValue
	Parameters    []perp.Parameter
	OracleSources []perp.OracleSource
}

// Snapshot reads what a planner needs for some partitions, out of the active generation. While there is no view (see
// [Standing.HasView]) there are no rows in it: the caller waits for the next change.
func (db *DB) Snapshot(ctx context.Context, partitions []int) (Snapshot, error) {
	var s Snapshot
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
			s.OracleSources = append(s.OracleSources, r)
		default:
			return fmt.Errorf("a %T has no place in a snapshot", row)
		}
		return nil
	})
	if err != nil {
		return Snapshot{}, fmt.Errorf("taking a snapshot: %w", err)
	}
	s.Standing = c.Standing
	return s, nil
}

// into appends the rows of a query.
func into[R perp.Row](ctx context.Context, tx pgx.Tx, list *[]R, q tableQuery, generation int, args ...any) error {
	rows, err := tx.Query(ctx, q.In(generation), args...)
	if err != nil {
		return fmt.Errorf("reading %s: %w", q.name, err)
	}
	defer rows.Close()
	err = eachRow(rows, layouts[q.table], func(row perp.Row) error {
		r, ok := row.(R)
		if !ok {
			return fmt.Errorf("a %T among them", row)
		}
		*list = append(*list, r)
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading %s: %w", q.name, err)
	}
	return nil
}
