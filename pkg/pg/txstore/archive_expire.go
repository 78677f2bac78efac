package txstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/retention"
)

const weekDays = 7

var (
	selectExpired = pg.Register("expired week of the archive", `SELECT week FROM keeper.archive_week
		WHERE dropped_at IS NULL
			AND (week + `+fmt.Sprint(weekDays)+`)::timestamp AT TIME ZONE 'UTC'
				< now() - $1::bigint * interval '1 microsecond'
		ORDER BY week LIMIT 1`)
	sumDays = pg.Register("profit and loss of days", `WITH `+pnlLines(`l.at <= $3::numeric`)+`
		INSERT INTO keeper.pnl_day (day, signer, kind, market, purpose, transactions, fees, gas)
		SELECT date '1970-01-01' + floor((at - 1) / 86400000)::integer, signer, kind, market, purpose, sum(n), sum(fee),
			sum(gas)
		FROM entry GROUP BY 1, 2, 3, 4, 5`)
	markSummed = pg.Register("mark what is summed up", `UPDATE keeper.archive_mark SET summed_ms = $1`)
	selectMark = pg.Register("mark of what is summed up", `SELECT summed_ms FROM keeper.archive_mark`)
	dropWeek   = pg.Register("drop week of the archive", `SELECT keeper.drop_archive_week($1)`)
)

// Expire implements retention.Store. What profit and loss needs of the week is summed up in the transaction that drops
// it, under no limit of a statement.
func (a Archive) Expire(ctx context.Context, keep time.Duration) (dropped retention.Dropped, err error) {
	err = a.alone(ctx, func(tx pgx.Tx) error {
		var week time.Time
		err := tx.QueryRow(ctx, selectExpired.SQL(), keep.Microseconds()).Scan(&week)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("looking for an expired week: %w", err)
		}
		if err := sumUp(ctx, tx, week.AddDate(0, 0, weekDays)); err != nil {
			return fmt.Errorf("summing up the week of %s: %w", week.Format(time.DateOnly), err)
		}
		var bytes int64
		if err := tx.QueryRow(ctx, dropWeek.SQL(), week).Scan(&bytes); err != nil {
			return fmt.Errorf("dropping the week of %s: %w", week.Format(time.DateOnly), err)
		}
		dropped = retention.Dropped{Week: week, Bytes: bytes}
		return nil
	})
	if err != nil {
		return retention.Dropped{}, fmt.Errorf("dropping what the archive is done with: %w", err)
	}
	return dropped, nil
}

// sumUp adds the days up to a midnight to pnl_day, from where it was left. The state has to be beyond it: one that is
// being brought up to date lacks blocks.
func sumUp(ctx context.Context, tx pgx.Tx, until time.Time) error {
	if _, err := tx.Exec(ctx, pg.NoStatementLimit.SQL()); err != nil {
		return err
	}
	var from int64
	to := until.UnixMilli()
	if err := tx.QueryRow(ctx, selectMark.SQL()).Scan(&from); err != nil || from >= to {
		return err
	}
	status, err := pg.ActiveProgress(ctx, tx)
	if err != nil {
		return err
	}
	if pg.FinalApplied(status) == 0 || int64(status.Finalized().TimeMs) < to {
		return fmt.Errorf("the state is not final up to %s yet", until.Format(time.DateOnly))
	}
	signers, err := signersOf(ctx, tx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, sumDays.In(status.Generation), signers, from, to); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, markSummed.SQL(), to)
	return err
}
