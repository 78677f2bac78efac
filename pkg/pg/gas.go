package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

var (
	ordersOfPosition = tableQuery{perp.Orders,
		register("orders that end with a position", `SELECT `+layouts[perp.Orders].selected()+`
		FROM {state}.perp_order t WHERE t.account = $1 AND t.market = $2 AND t.initial_collateral_token = $3
			AND t.is_long = $4
		AND t.auto_cancel AND `+isOpen+` AND t.deleted_at IS NULL`)}
	someParameters = tableQuery{perp.Parameters,
		register("parameters by key", `SELECT `+layouts[perp.Parameters].selected()+`
		FROM {state}.parameter t WHERE t.key = ANY ($1) AND `+oneCopy(perp.Parameters)+` AND t.deleted_at IS NULL`)}
	glvMarkets = tableQuery{perp.MarketValues,
		register("markets of GLVs", `SELECT `+layouts[perp.MarketValues].selected()+`
		FROM {state}.market_value t WHERE t.measure = '`+string(perp.GlvMarket)+`' AND t.deleted_at IS NULL`)}
)

// Closing looks up one position in the active generation, and the open orders that the exchange cancels when it closes
// (autoCancel), in one view.
func (db *DB) Closing(ctx context.Context, key chain.Hash) (found Found[perp.Position], orders []perp.Order,
	err error) {
	err = db.read(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		var generation int
		if found, generation, err = lookUpIn[perp.Position](ctx, tx, onePosition, key); err != nil || !found.Known {
			return err
		}
		p := found.Row
		return into(ctx, tx, &orders, ordersOfPosition, generation, p.Account[:], p.Market[:], p.CollateralToken[:],
			p.IsLong)
	})
	if err != nil {
		return Found[perp.Position]{}, nil, fmt.Errorf("looking up position %s and the orders that end with it: %w",
			key, err)
	}
	return found, orders, nil
}

// Parameters looks up words of the exchange in the active generation, by their full keys; those that are not known are
// left out.
func (db *DB) Parameters(ctx context.Context, keys []chain.Hash) (known []perp.Parameter, err error) {
	wanted := make([][]byte, len(keys))
	for i := range keys {
		wanted[i] = keys[i][:]
	}
	return inActive[perp.Parameter](ctx, db, someParameters, wanted)
}

// GlvMarkets returns which markets belong, or belonged, to which GLV ([perp.GlvMarket]), in the active generation.
func (db *DB) GlvMarkets(ctx context.Context) ([]perp.MarketValue, error) {
	return inActive[perp.MarketValue](ctx, db, glvMarkets)
}

// inActive reads rows of the active generation.
func inActive[R perp.Row](ctx context.Context, db *DB, q tableQuery, args ...any) (rows []R, err error) {
	err = db.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		generation, err := activeGeneration(ctx, tx)
		if err != nil {
			return err
		}
		return into(ctx, tx, &rows, q, generation, args...)
	})
	return rows, err
}
