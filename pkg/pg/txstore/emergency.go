package txstore

import (
	"context"
	"fmt"
	"math/big"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/emergency"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/txm"
)

var (
	recordEmergency = pg.Register("record emergency", `INSERT INTO keeper.emergency_action
		(run, action, operator, cause, dry_run, stage, contract, calldata, tx_hash, outcome)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`)
	listEmergency = pg.Register("list emergency",
		`SELECT run, at, action, operator, cause, dry_run, stage, contract, calldata, tx_hash, outcome
		FROM keeper.emergency_action ORDER BY id DESC LIMIT $1`)
	sumBadDebt = pg.Register("bad debt since",
		`SELECT coalesce(sum(d.remaining_cost_usd), 0)::text FROM {state}.bad_debt d
		WHERE d.stamp_time_ms >= extract(epoch FROM clock_timestamp() - make_interval(secs => $1)) * 1000
			AND d.deleted_at IS NULL`)
	// The newest attempt of each liquidation of an active position, in the order in which they are taken up; then those
	// that wait for their next try.
	selectPending = pg.Register("pending liquidations",
		`SELECT n.id, n.job_id, n.account, n.attempt, n.state, coalesce(n.outcome, ''), n.ratio::text FROM (
			SELECT DISTINCT ON (i.job_id) i.* FROM keeper.tx_intent i WHERE i.kind = $1 ORDER BY i.job_id, i.attempt DESC
		) n JOIN {state}.position p ON p.key = n.key
		WHERE p.status = 'Active' AND p.deleted_at IS NULL AND (n.ended_at IS NULL OR n.outcome = ANY ($2))
		ORDER BY n.ended_at IS NOT NULL, n.class, n.ratio, n.due_since_ms, n.job_id`)
	retryNow = pg.Register("retry now", `UPDATE keeper.tx_intent SET retry_after_ms = 0, updated_at = clock_timestamp()
		WHERE id = ANY ($1) AND retry_after_ms > 0 AND outcome = ANY ($2)`)
)

// Emergencies keeps what was done in emergencies, and does what a keeper can do by itself.
type Emergencies struct{ db *pg.DB }

// NewEmergencies returns the store.
func NewEmergencies(db *pg.DB) Emergencies { return Emergencies{db} }

// Record implements emergency.Records. Entries are never changed.
func (s Emergencies) Record(ctx context.Context, e emergency.Entry) error {
	run, err := uuid.Parse(e.Run)
	if err != nil {
		return fmt.Errorf("recording %s: run %q is no UUID: %w", e.Action, e.Run, err)
	}
	var contract, calldata, tx []byte
	if !e.Step.Contract.IsZero() {
		contract, calldata = e.Step.Contract[:], append([]byte{}, e.Step.Calldata...)
	}
	if !e.TxHash.IsZero() {
		tx = e.TxHash[:]
	}
	_, err = s.db.Run(ctx, fmt.Sprintf("recording %s of run %s", e.Action, run), recordEmergency.SQL(), run, e.Action,
		pg.Escape(e.Operator), pg.Escape(e.Cause), e.DryRun, e.Stage, contract, calldata, tx, pg.Escape(e.Outcome))
	return err
}

// List returns the newest entries, newest first.
func (s Emergencies) List(ctx context.Context, limit int) ([]emergency.Entry, error) {
	return pg.List(ctx, s.db, "listing emergency actions", scanEmergency, listEmergency.SQL(), limit)
}

func scanEmergency(row pgx.CollectableRow) (e emergency.Entry, err error) {
	var run uuid.UUID
	err = row.Scan(&run, &e.At, &e.Action, pg.Text(&e.Operator), pg.Text(&e.Cause), &e.DryRun, &e.Stage,
		pg.Fixed(e.Step.Contract[:]), &e.Step.Calldata, pg.Fixed(e.TxHash[:]), pg.Text(&e.Outcome))
	e.Run = run.String()
	return e, err
}

// BadDebtUSD is what closed positions did not cover within a time back from now, in whole USD.
func (s Emergencies) BadDebtUSD(ctx context.Context, within time.Duration) (uint64, error) {
	var debt chain.Uint
	err := s.db.ReadActive(ctx, "summing up bad debt", func(ctx context.Context, tx pgx.Tx, g int) (err error) {
		debt, err = pg.SumOf(tx.QueryRow(ctx, sumBadDebt.In(g), within.Seconds()))
		return err
	})
	return new(big.Int).Div(debt.Big(), chain.Pow10(30).Big()).Uint64(), err
}

// PendingLiquidation is a liquidation that is not done.
type PendingLiquidation struct {
	Intent  int64
	JobID   string
	Account chain.Address
	Attempt uint32
	State   txm.State
	Outcome job.Outcome // of an attempt that has failed, and will be followed by another
	Ratio   string      // remaining over required collateral, 30 decimals
}

// Pending lists the liquidations of active positions that this keeper was given and that are not done, in the order
// in which they are taken up.
func (s Emergencies) Pending(ctx context.Context) (found []PendingLiquidation, err error) {
	err = s.db.ReadActive(ctx, "listing pending liquidations", func(ctx context.Context, tx pgx.Tx, g int) error {
		found, err = pg.Select(ctx, tx, pg.Columns(func(p *PendingLiquidation) []any {
			return []any{&p.Intent, pg.Text(&p.JobID), pg.Fixed(p.Account[:]), &p.Attempt, &p.State, &p.Outcome,
				&p.Ratio}
		}), selectPending.In(g), string(job.Liquidation), failures())
		return err
	})
	return found, err
}

// RetryNow lets failed attempts be followed at once, without their pause: the planner's next saying is enough. It
// returns how many waited.
func (s Emergencies) RetryNow(ctx context.Context, intents []int64) (int, error) {
	rows, err := s.db.Run(ctx, "lifting the pauses of failed liquidations", retryNow.SQL(), intents, failures())
	return int(rows), err
}
