package pg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// delayedTx is the delayed.Tx: the transaction of one row.
type delayedTx struct{ tx pgx.Tx }

var (
	releaseFrozen = Register("release frozen balance",
		`UPDATE keeper.wallet SET frozen_balance = frozen_balance - $2, balance = balance + $2,
		version = version + 1, updated_at = clock_timestamp() WHERE agent = $1 AND frozen_balance >= $2`)
	enterRelease = Register("enter release",
		`INSERT INTO keeper.wallet_entry (agent, what, source, balance_delta, frozen_delta)
		VALUES ($1, 'release', $3, $2, -$2::numeric)`)
	selectFrozen  = Register("frozen balance", `SELECT frozen_balance::text FROM keeper.wallet WHERE agent = $1`)
	selectWaiting = Register("whether an order or request is open", `SELECT
		EXISTS (SELECT FROM {state}.perp_order WHERE key = $1 AND deleted_at IS NULL
			AND status IN ('Created', 'Updated', 'Frozen')) OR
		EXISTS (SELECT FROM {state}.request WHERE key = $1 AND deleted_at IS NULL
			AND status IN ('Created', 'Updated', 'Frozen'))`)
	countAttempts = Register("attempts that ended on a day", `SELECT kind, outcome, count(*) FROM keeper.every_intent
		WHERE ended_at >= $1 AND ended_at < $1 + interval '1 day' AND kind <> $2 GROUP BY kind, outcome`)
	sumFees = Register("fees booked on a day", `SELECT agent, count(*), sum(amount)::text FROM keeper.commission
		WHERE booked_at >= $1 AND booked_at < $1 + interval '1 day' GROUP BY agent`)
)

// Release implements delayed.Ledger.
func (t delayedTx) Release(ctx context.Context, agent string, amount chain.Uint, source string) error {
	moved, err := t.tx.Exec(ctx, releaseFrozen.SQL(), agent, amount.String())
	if err != nil {
		return fmt.Errorf("releasing %s wei to %s: %w", amount, agent, err)
	}
	if moved.RowsAffected() == 0 {
		return t.explain(ctx, agent, amount)
	}
	_, err = t.tx.Exec(ctx, enterRelease.SQL(), agent, amount.String(), source)
	if HasCode(err, codeUniqueViolation) {
		return delayed.Anomalyf("releasing %s wei to %s: commission %s was released before", amount, agent, source)
	}
	if err != nil {
		return fmt.Errorf("entering the release of %s wei to %s: %w", amount, agent, err)
	}
	return nil
}

// explain reports why nothing could be released.
func (t delayedTx) explain(ctx context.Context, agent string, amount chain.Uint) error {
	var frozen string
	err := t.tx.QueryRow(ctx, selectFrozen.SQL(), agent).Scan(&frozen)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return delayed.Anomalyf("releasing %s wei to %s: there is no such wallet", amount, agent)
	case err != nil:
		return fmt.Errorf("reading the frozen balance of %s: %w", agent, err)
	}
	return delayed.Anomalyf("releasing %s wei to %s: only %s wei are frozen", amount, agent, frozen)
}

// Waiting implements delayed.Requests.
func (t delayedTx) Waiting(ctx context.Context, key chain.Hash) (waits bool, err error) {
	generation, err := activeGeneration(ctx, t.tx)
	if err != nil {
		return false, err
	}
	if err := t.tx.QueryRow(ctx, selectWaiting.In(generation), key[:]).Scan(&waits); err != nil {
		return false, fmt.Errorf("looking up %s: %w", key, err)
	}
	return waits, nil
}

// Day implements delayed.Days.
func (t delayedTx) Day(ctx context.Context, day time.Time) (delayed.Day, error) {
	d := delayed.Day{Day: day.Format(time.DateOnly), Fees: map[string]delayed.Fees{}}
	var kind job.Kind
	var outcome job.Outcome
	var n int
	err := Each(ctx, t.tx, []any{&kind, &outcome, &n}, func() error { d.Count(kind, outcome, n); return nil },
		countAttempts.SQL(), day, string(txm.Filler))
	if err != nil {
		return d, fmt.Errorf("counting the attempts of %s: %w", d.Day, err)
	}
	var agent string
	var wei chain.Uint
	err = Each(ctx, t.tx, []any{&agent, &n, Amount(&wei)}, func() error {
		d.Fees[agent] = delayed.Fees{Count: n, Wei: wei}
		return nil
	}, sumFees.SQL(), day)
	if err != nil {
		return d, fmt.Errorf("adding up the fees of %s: %w", d.Day, err)
	}
	return d, nil
}
