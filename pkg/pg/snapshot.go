package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// selectOne registers a query for the row of one key. While a reorg is on its way through the partitions two of them
// may hold the key, because the exchange gives keys of a lost branch again: the answer is the row of the later block.
func selectOne(table perp.Table, what string) tableQuery {
	l := layouts[table]
	return tableQuery{table,
		register(what, `SELECT `+l.selected()+` FROM {state}.`+string(table)+
			` t WHERE t.key = $1 AND t.deleted_at IS NULL
		ORDER BY t.stamp_block DESC, t.stamp_log DESC LIMIT 1`)}
}

// tableQuery is a statement whose result is rows of a table.
type tableQuery struct {
	table perp.Table
	*statement
}

var (
	onePosition = selectOne(perp.Positions, "one position")
	oneOrder    = selectOne(perp.Orders, "one order")
	oneRequest  = selectOne(perp.Requests, "one request")
	oneValue    = selectOne(perp.MarketValues, "one market value")
)

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
	rows, err := tx.Query(ctx, q.in(generation), args...)
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

// Found is the answer to a question about one row. That there is none is an answer, not an error (TIER-5).
type Found[R perp.Row] struct {
	Row   R
	Known bool
	// At is the watermark: the answer is at least as new as this block. Its Hash is zero while the partitions have none
	// in common.
	At Block
}

// Position looks up one position in the active generation.
func (db *DB) Position(ctx context.Context, key chain.Hash) (Found[perp.Position], error) {
	return lookUp[perp.Position](ctx, db, onePosition, key)
}

// Order looks up one order in the active generation.
func (db *DB) Order(ctx context.Context, key chain.Hash) (Found[perp.Order], error) {
	return lookUp[perp.Order](ctx, db, oneOrder, key)
}

// Request looks up one deposit, withdrawal or shift in the active generation.
func (db *DB) Request(ctx context.Context, key chain.Hash) (Found[perp.Request], error) {
	return lookUp[perp.Request](ctx, db, oneRequest, key)
}

// MarketValue looks up one measure of a market in the active generation.
func (db *DB) MarketValue(ctx context.Context, key chain.Hash) (Found[perp.MarketValue], error) {
	return lookUp[perp.MarketValue](ctx, db, oneValue, key)
}

func lookUp[R perp.Row](ctx context.Context, db *DB, q tableQuery, key chain.Hash) (found Found[R], err error) {
	err = db.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		found, _, err = lookUpIn[R](ctx, tx, q, key)
		return err
	})
	if err != nil {
		return Found[R]{}, fmt.Errorf("looking up %s %s: %w", q.name, key, err)
	}
	return found, nil
}

// lookUpIn looks up a row in a transaction, and says in which generation.
func lookUpIn[R perp.Row](ctx context.Context, tx pgx.Tx, q tableQuery, key chain.Hash) (found Found[R], generation int,
	err error) {
	s, err := activeStanding(ctx, tx)
	if err != nil {
		return found, 0, err
	}
	found.At = s.Watermark
	var rows []R
	if err := into(ctx, tx, &rows, q, s.Generation, key[:]); err != nil {
		return found, 0, err
	}
	if len(rows) > 0 {
		found.Row, found.Known = rows[0], true
	}
	return found, s.Generation, nil
}
