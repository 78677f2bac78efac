package pg

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Gainers asks for the open positions of a side of a market that have gained the most.
type Gainers struct {
	Market chain.Address
	IsLong bool
	// Price is the index token's, in USD with 30 decimals for its smallest unit.
	Price chain.Uint
	// Except are the partitions that are left out.
	Except []int
	// Most is how many are wanted.
	Most int
}

// tableQuery is a statement whose result is rows of a table.
type tableQuery struct {
	table perp.Table
	*Statement
}

var mostProfitable = tableQuery{perp.Positions, Register("most profitable positions", `SELECT `+
	layouts[perp.Positions].selected()+` FROM {state}.position t
	WHERE t.part = ANY ($1) AND `+isActive+` AND t.deleted_at IS NULL AND t.market = $2 AND t.is_long = $3
	ORDER BY (t.size_in_tokens * $4::numeric - t.size_in_usd) * CASE WHEN $3 THEN 1 ELSE -1 END DESC, t.key LIMIT $5`)}

// MostProfitable lists positions by what they have gained, the most first. It reads the tables as they are, each
// partition as far as it has come, and all open positions of the partitions: with millions it takes seconds, under no
// limit of a statement. Positions that have lost may be among them.
func (db *DB) MostProfitable(ctx context.Context, g Gainers) (found []perp.Position, err error) {
	err = db.unhurried(ctx, func(ctx context.Context, v view) error {
		s, err := ActiveProgress(ctx, v.Tx)
		if err != nil {
			return err
		}
		var parts []int
		for part := range s.Partitions {
			if !slices.Contains(g.Except, part) {
				parts = append(parts, part)
			}
		}
		return into(ctx, v.Tx, &found, mostProfitable, s.Generation, parts, g.Market[:], g.IsLong, g.Price.String(),
			g.Most)
	})
	if err != nil {
		return nil, fmt.Errorf("looking for the most profitable positions of market %s: %w", g.Market, err)
	}
	return found, nil
}

var selectActedOn = Register("what a transaction acted on", `
	SELECT key FROM {state}.perp_order WHERE stamp_tx_hash = $1 AND deleted_at IS NULL
	UNION SELECT key FROM {state}.request WHERE stamp_tx_hash = $1 AND deleted_at IS NULL
	UNION SELECT position_key FROM {state}.settlement WHERE stamp_tx_hash = $1 AND deleted_at IS NULL`)

// Transaction looks up a transaction that touched the exchange, or that a watched signer sent, in the active
// generation.
func (db *DB) Transaction(ctx context.Context, hash chain.Hash) (Found[perp.Transaction], error) {
	found, err := db.Look(ctx, Keys{Transactions: []chain.Hash{hash}})
	return found.Transactions[hash], err
}

// ActedOn returns the keys of the orders, requests and positions that a transaction was the last to act on, in the
// active generation.
func (db *DB) ActedOn(ctx context.Context, hash chain.Hash) (keys []chain.Hash, err error) {
	doing := fmt.Sprintf("looking up what transaction %s acted on", hash)
	err = db.ReadActive(ctx, doing, func(ctx context.Context, tx pgx.Tx, generation int) error {
		keys, err = Select(ctx, tx, ScanHash, selectActedOn.In(generation), hash[:])
		return err
	})
	return keys, err
}

var (
	someParameters = tableQuery{perp.Parameters,
		Register("parameters by key", `SELECT `+layouts[perp.Parameters].selected()+`
		FROM {state}.parameter t WHERE t.key = ANY ($1) AND `+oneCopy(perp.Parameters)+` AND t.deleted_at IS NULL`)}
	glvMarkets = tableQuery{perp.MarketValues,
		Register("markets of GLVs", `SELECT `+layouts[perp.MarketValues].selected()+`
		FROM {state}.market_value t WHERE t.measure = '`+string(perp.GlvMarket)+`' AND t.deleted_at IS NULL`)}
	allMarkets = tableQuery{perp.Markets, Register("markets", `SELECT `+layouts[perp.Markets].selected()+`
		FROM {state}.market t WHERE `+oneCopy(perp.Markets)+` AND t.deleted_at IS NULL`)}
)

// Parameters looks up words of the exchange in the active generation, by their full keys; those that are not known are
// left out.
func (db *DB) Parameters(ctx context.Context, keys []chain.Hash) (known []perp.Parameter, err error) {
	return inActive[perp.Parameter](ctx, db, someParameters, Hashes(keys))
}

// GlvMarkets returns which markets belong, or belonged, to which GLV ([perp.GlvMarket]), in the active generation.
func (db *DB) GlvMarkets(ctx context.Context) ([]perp.MarketValue, error) {
	return inActive[perp.MarketValue](ctx, db, glvMarkets)
}

// Markets returns the markets of the exchange, in the active generation.
func (db *DB) Markets(ctx context.Context) ([]perp.Market, error) {
	return inActive[perp.Market](ctx, db, allMarkets)
}

// inActive reads rows of the active generation.
func inActive[R perp.Row](ctx context.Context, db *DB, q tableQuery, args ...any) (rows []R, err error) {
	err = db.ReadActive(ctx, "reading rows", func(ctx context.Context, tx pgx.Tx, generation int) error {
		return into(ctx, tx, &rows, q, generation, args...)
	})
	return rows, err
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
