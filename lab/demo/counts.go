package demo

import (
	"context"
	"fmt"
	"strings"

	"perpkeeper/pkg/pg"
)

const counting = `SELECT 'position ' || status, count(*) FROM {state}.position WHERE deleted_at IS NULL GROUP BY 1
	UNION ALL SELECT CASE order_type WHEN 7 THEN 'liquidation ' ELSE 'order ' END || status, count(*)
		FROM {state}.perp_order WHERE deleted_at IS NULL GROUP BY 1
	UNION ALL SELECT 'request ' || status, count(*) FROM {state}.request WHERE deleted_at IS NULL GROUP BY 1
	UNION ALL SELECT 'sent', count(*) FROM keeper.signed_tx WHERE sends > 0`

// Counts is how far the active generation has come and what stands in it: what there is of which status ("order
// Executed"; liquidations are orders on chain, and counted apart), and how many transactions this keeper has "sent".
type Counts struct {
	pg.Progress
	Of map[string]int
}

// Count counts in a database.
func Count(ctx context.Context, db *pg.DB) (c Counts, err error) {
	if c.Progress, err = db.Progress(ctx); err != nil {
		return c, err
	}
	rows, err := db.Pool().Query(ctx, strings.ReplaceAll(counting, "{state}", fmt.Sprintf("state_g%d", c.Generation)))
	if err != nil {
		return c, fmt.Errorf("counting: %w", err)
	}
	defer rows.Close()
	c.Of = map[string]int{}
	for rows.Next() {
		var what string
		var n int
		if err := rows.Scan(&what, &n); err != nil {
			return c, fmt.Errorf("counting: %w", err)
		}
		c.Of[what] = n
	}
	return c, rows.Err()
}
