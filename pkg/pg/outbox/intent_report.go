package outbox

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txm"
)

var (
	selectUnreported = pg.Register("unreported intents", `SELECT `+intentColumns+`, `+receiptColumns+`, i.ended_at
		FROM keeper.tx_intent i LEFT JOIN keeper.tx_receipt r ON r.intent = i.id
		WHERE i.signer = $1 AND i.ended_at IS NOT NULL AND i.reported_at IS NULL ORDER BY i.id LIMIT $2`)
	markReported = pg.Register("mark reported", `WITH `+fenceHeld+`, changed AS (
		UPDATE keeper.tx_intent t SET reported_at = clock_timestamp() FROM held
		WHERE t.signer = $1 AND t.id = ANY ($4) AND t.ended_at IS NOT NULL
		RETURNING t.id)
		SELECT (SELECT count(*) FROM held), (SELECT count(*) FROM changed)`)
)

// Unreported implements txm.Reports.
func (s Intents) Unreported(ctx context.Context, signer chain.Address, limit int) ([]txm.Ended, error) {
	ctx, cancel := s.db.Bounded(ctx)
	defer cancel()
	rows, err := s.db.Pool().Query(ctx, selectUnreported.SQL(), signer[:], limit)
	if err != nil {
		return nil, fmt.Errorf("listing what signer %s has ended: %w", signer, err)
	}
	ended, err := pgx.CollectRows(rows, scanEnded)
	if err != nil {
		return nil, fmt.Errorf("listing what signer %s has ended: %w", signer, err)
	}
	return ended, nil
}

func scanEnded(row pgx.CollectableRow) (e txm.Ended, err error) {
	var i intentRow
	var r receiptRow
	if err := row.Scan(append(append(i.fields(), r.fields()...), &e.EndedAt)...); err != nil {
		return e, err
	}
	if e.Intent, err = i.intent(); err != nil {
		return e, err
	}
	e.Receipt, err = r.receipt()
	return e, err
}

// Reported implements txm.Reports.
func (s Intents) Reported(ctx context.Context, f lease.Fence, intents []int64) error {
	return fenced(ctx, s.db, "report", f, markReported, intents)
}
