package pg

import (
	"context"
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Gainers asks for the open positions of a side of a market that have gained the most.
type Gainers struct {
	Market chain.Address
	IsLong bool
	// Price is the index token's, in USD with 30 decimals for its smallest unit.
	Price perp.Uint
	// Except are the partitions that are left out.
	Except []int
	// Most is how many are wanted.
	Most int
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
		s, err := ActiveStanding(ctx, v.Tx)
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
