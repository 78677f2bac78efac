package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

var (
	countWaiting = Register("count of arms by class",
		`SELECT class, count(*) FILTER (WHERE state = 'QUEUED'), count(*) FILTER (WHERE state <> 'QUEUED')
		FROM keeper.tx_intent WHERE state IN ('QUEUED', 'SIGNED', 'SENT', 'MINED') GROUP BY class ORDER BY class`)
	countEnded = Register("count of ended arms", `SELECT outcome, count(*) FROM keeper.tx_intent
		WHERE ended_at > clock_timestamp() - $1::interval GROUP BY outcome`)
	sumSpent = Register("sum of what was spent",
		`SELECT coalesce(sum(gas_used::numeric * gas_price), 0)::text FROM keeper.tx_receipt
		WHERE seen_at > clock_timestamp() - $1::interval`)
	sumEarned = Register("sum of what was earned",
		`SELECT coalesce(sum(f.amount), 0)::text FROM {state}.keeper_fee f JOIN keeper.signer s ON s.signer = f.keeper
		WHERE f.deleted_at IS NULL AND f.stamp_time_ms > extract(epoch FROM clock_timestamp() - $1::interval) * 1000`)
)

// Recent is what this keeper has before it and what it has lately done.
type Recent struct {
	// Queued and InFlight count the arms of jobs that wait for their nonce, and those whose fate is open.
	Queued, InFlight map[job.Class]int
	// Ended counts the arms that have ended, by outcome.
	Ended map[job.Outcome]int
	// Spent is what the chain took for transactions, and Earned what the venue paid this keeper's signers, in wei.
	// Neither waits for finality.
	Spent, Earned perp.Uint
}

// Recent counts in one snapshot. What has ended, was spent and earned is that of the last while, by the database's
// clock.
func (db *DB) Recent(ctx context.Context, last time.Duration) (r Recent, err error) {
	r = Recent{Queued: map[job.Class]int{}, InFlight: map[job.Class]int{}, Ended: map[job.Outcome]int{}}
	err = db.Read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := r.count(ctx, tx, last); err != nil {
			return err
		}
		generation, err := ActiveGeneration(ctx, tx)
		if err != nil {
			return err
		}
		if r.Spent, err = SumOf(tx.QueryRow(ctx, sumSpent.SQL(), last)); err != nil {
			return err
		}
		r.Earned, err = SumOf(tx.QueryRow(ctx, sumEarned.In(generation), last))
		return err
	})
	if err != nil {
		return Recent{}, fmt.Errorf("counting what was done lately: %w", err)
	}
	return r, nil
}

func (r Recent) count(ctx context.Context, tx pgx.Tx, last time.Duration) error {
	rows, err := tx.Query(ctx, countWaiting.SQL())
	if err != nil {
		return err
	}
	var class job.Class
	var outcome job.Outcome
	var queued, inFlight, ended int
	if _, err = pgx.ForEachRow(rows, []any{&class, &queued, &inFlight}, func() error {
		r.Queued[class], r.InFlight[class] = queued, inFlight
		return nil
	}); err != nil {
		return err
	}
	if rows, err = tx.Query(ctx, countEnded.SQL(), last); err != nil {
		return err
	}
	_, err = pgx.ForEachRow(rows, []any{&outcome, &ended}, func() error { r.Ended[outcome] = ended; return nil })
	return err
}
