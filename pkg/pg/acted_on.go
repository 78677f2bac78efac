package pg

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

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
	err = db.Read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		generation, err := ActiveGeneration(ctx, tx)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, selectActedOn.In(generation), hash[:])
		if err != nil {
			return err
		}
		keys, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (chain.Hash, error) {
			var key []byte
			err := row.Scan(&key)
			return HashOf(key), err
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("looking up what transaction %s acted on: %w", hash, err)
	}
	return keys, nil
}
