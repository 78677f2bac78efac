package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// The derived state says nothing of what a keeper intends: a position that is being liquidated is Active in it until
// the chain closes it.
var selectLiquidations = Register("liquidations", `SELECT v.key, v.account, v.job_id, v.arm, v.status,
	coalesce(v.outcome, ''), coalesce(v.reason, ''), v.ended_at
	FROM keeper.liquidation v JOIN {state}.position p ON p.key = v.key
	WHERE v.status IS NOT NULL AND p.status = 'Active' AND p.deleted_at IS NULL ORDER BY v.key`)

// LiquidationStatus is what a keeper is doing about an active position (LIQ-8).
type LiquidationStatus string

// The statuses.
const (
	Liquidating LiquidationStatus = "LIQUIDATING" // a transaction is in flight; it may still fail
	// LiquidationFailed: the last retry failed; the next arm begins by itself if the condition still holds.
	LiquidationFailed LiquidationStatus = "LIQUIDATION_FAILED"
)

// Liquidation is a position of the active generation that is being liquidated, or could not be.
type Liquidation struct {
	Position chain.Hash
	Account  chain.Address
	JobID    string
	Arm      uint32
	Status   LiquidationStatus
	// Outcome, Reason and EndedAt are those of the last arm, where it has failed.
	Outcome job.Outcome
	Reason  string
	EndedAt time.Time
}

// Liquidations lists the active positions that are being liquidated or could not be, by key, in one snapshot.
func (db *DB) Liquidations(ctx context.Context) (found []Liquidation, err error) {
	err = db.Read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		standing, err := ActiveStanding(ctx, tx)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, selectLiquidations.In(standing.Generation))
		if err != nil {
			return err
		}
		found, err = pgx.CollectRows(rows, scanLiquidation)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing liquidations: %w", err)
	}
	return found, nil
}

func scanLiquidation(row pgx.CollectableRow) (l Liquidation, err error) {
	var key, account []byte
	var id, reason string
	var ended *time.Time
	if err := row.Scan(&key, &account, &id, &l.Arm, &l.Status, &l.Outcome, &reason, &ended); err != nil {
		return l, err
	}
	l.Position, l.Account = HashOf(key), AddressOf(account)
	if ended != nil {
		l.EndedAt = *ended
	}
	if l.JobID, err = Unescape(id); err != nil {
		return l, err
	}
	l.Reason, err = Unescape(reason)
	return l, err
}
