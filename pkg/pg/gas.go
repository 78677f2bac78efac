package pg

import (
	"context"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

var (
	someParameters = tableQuery{perp.Parameters,
		Register("parameters by key", `SELECT `+layouts[perp.Parameters].selected()+`
		FROM {state}.parameter t WHERE t.key = ANY ($1) AND `+oneCopy(perp.Parameters)+` AND t.deleted_at IS NULL`)}
	glvMarkets = tableQuery{perp.MarketValues,
		Register("markets of GLVs", `SELECT `+layouts[perp.MarketValues].selected()+`
		FROM {state}.market_value t WHERE t.measure = '`+string(perp.GlvMarket)+`' AND t.deleted_at IS NULL`)}
)

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
	err = db.Read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		generation, err := ActiveGeneration(ctx, tx)
		if err != nil {
			return err
		}
		return into(ctx, tx, &rows, q, generation, args...)
	})
	return rows, err
}
