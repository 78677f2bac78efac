package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
)

var selectUnsigned = pg.Register("unsigned transactions", `SELECT asked.hash FROM unnest($1::bytea[]) AS asked (hash)
	WHERE NOT EXISTS (SELECT FROM keeper.tx_attempt a WHERE a.hash = asked.hash)
		AND NOT EXISTS (SELECT FROM keeper.archived_attempt a WHERE a.hash = asked.hash)`)

// Unsigned returns those of the hashes that are of no transaction this keeper has signed, as far back as the archive
// reaches.
func (s Intents) Unsigned(ctx context.Context, hashes []chain.Hash) ([]chain.Hash, error) {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	asked := make([][]byte, len(hashes))
	for i, h := range hashes {
		asked[i] = h[:]
	}
	rows, err := s.db.Pool().Query(ctx, selectUnsigned.SQL(), asked)
	if err != nil {
		return nil, fmt.Errorf("looking up %d transactions: %w", len(hashes), err)
	}
	unsigned, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (chain.Hash, error) {
		var hash []byte
		err := row.Scan(&hash)
		return pg.HashOf(hash), err
	})
	if err != nil {
		return nil, fmt.Errorf("looking up %d transactions: %w", len(hashes), err)
	}
	return unsigned, nil
}
