package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

var (
	countPositions = Register("count of positions by status",
		`SELECT status, count(*) FROM {state}.position WHERE deleted_at IS NULL GROUP BY status`)
	countOrders = Register("count of orders by kind and status",
		`SELECT CASE order_type WHEN 7 THEN 'liquidation' ELSE 'order' END, status, count(*)
		FROM {state}.perp_order WHERE deleted_at IS NULL GROUP BY 1, 2`)
	countSent = Register("count of transactions sent", `SELECT (SELECT count(*) FROM keeper.tx_attempt WHERE sends > 0)
			+ (SELECT coalesce(sum(sent), 0)::bigint FROM keeper.archive_week)`)
	countRequests = Register("count of requests by kind and status", `SELECT kind, status, count(*)
		FROM {state}.request WHERE deleted_at IS NULL GROUP BY kind, status`)
)

// Overview counts what stands in the active generation, for people to look at.
type Overview struct {
	Standing
	Positions map[string]int // by status
	// Orders and Requests are counted by status. Liquidations are orders on chain and counted apart.
	Orders       map[string]int
	Liquidations map[string]int
	Requests     map[string]int
	// Sent counts the transactions of this keeper that were broadcast.
	Sent int
}

// Overview counts in one snapshot.
func (db *DB) Overview(ctx context.Context) (o Overview, err error) {
	o.Positions, o.Orders, o.Liquidations, o.Requests = map[string]int{}, map[string]int{}, map[string]int{},
		map[string]int{}
	err = db.Read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if o.Standing, err = ActiveStanding(ctx, tx); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, countSent.SQL()).Scan(&o.Sent); err != nil {
			return err
		}
		return o.count(ctx, tx)
	})
	if err != nil {
		return Overview{}, fmt.Errorf("counting: %w", err)
	}
	return o, nil
}

func (o Overview) count(ctx context.Context, tx pgx.Tx) error {
	var kind, status string
	var n int
	rows, err := tx.Query(ctx, countPositions.In(o.Generation))
	if err != nil {
		return err
	}
	if _, err = pgx.ForEachRow(rows, []any{&status, &n},
		func() error { o.Positions[status] = n; return nil }); err != nil {
		return err
	}
	if rows, err = tx.Query(ctx, countOrders.In(o.Generation)); err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, []any{&kind, &status, &n}, func() error {
		if kind == "liquidation" {
			o.Liquidations[status] = n
		} else {
			o.Orders[status] = n
		}
		return nil
	})
	if err != nil {
		return err
	}
	if rows, err = tx.Query(ctx, countRequests.In(o.Generation)); err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, []any{&kind, &status, &n}, func() error { o.Requests[status] += n; return nil })
	return err
}
