package pg

import (
	"context"
	"fmt"
)

var selectStateBytes = Register("bytes of the state", `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'r' AND n.nspname ~ '^state_g[0-9]+$'`)

// StateBytes is how much of the disk all generations take, with their indexes.
func (db *DB) StateBytes(ctx context.Context) (bytes uint64, err error) {
	ctx, cancel := db.Bounded(ctx)
	defer cancel()
	if err := db.pool.QueryRow(ctx, selectStateBytes.SQL()).Scan(&bytes); err != nil {
		return 0, fmt.Errorf("asking for the size of the state: %w", err)
	}
	return bytes, nil
}
