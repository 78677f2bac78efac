package txstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/txm"
)

const listedColumns = `i.id, i.job_id, i.attempt, i.kind, i.class, i.account, i.signer, i.state, i.due_since_ms,
	i.queued_at,
	i.ended_at, i.nonce, coalesce(i.outcome, ''), coalesce(i.reason, '')`

// Those that have ended may be in the archive. Each has an index of its own; those that wait or are in flight are few
// beside those that ended.
var (
	listQueued = pg.Register("list queued attempts", `SELECT `+listedColumns+` FROM keeper.tx_intent i
		WHERE i.state = 'QUEUED' AND ($1 = '' OR i.kind = $1)
		ORDER BY i.class, i.ratio, i.due_since_ms, i.job_id LIMIT $2`)
	listInFlight = pg.Register("list attempts in flight", `SELECT `+listedColumns+` FROM keeper.tx_intent i
		WHERE i.state IN `+inFlightStates+` AND ($1 = '' OR i.kind = $1) ORDER BY i.signer, i.nonce LIMIT $2`)
	listEnded = pg.Register("list ended attempts", `SELECT `+listedColumns+` FROM keeper.every_intent i
		WHERE i.ended_at < $3 AND ($1 = '' OR i.kind = $1) AND ($4 = '' OR i.outcome = $4)
		ORDER BY i.ended_at DESC, i.id DESC LIMIT $2`)
)

// ListedAttempt is an attempt as lists show it.
type ListedAttempt struct {
	ID       int64
	JobID    string
	Attempt  uint32
	Kind     job.Kind
	Class    job.Class
	Account  chain.Address
	Signer   chain.Address
	State    txm.State
	Born     time.Time // by the chain
	QueuedAt time.Time
	EndedAt  *time.Time
	Nonce    *uint64
	Outcome  job.Outcome
	Reason   string
}

// QueuedAttempts lists the attempts that wait for a nonce, in the order in which they get one; an empty kind means any.
func (s Intents) QueuedAttempts(ctx context.Context, kind job.Kind, limit int) ([]ListedAttempt, error) {
	return s.listAttempts(ctx, listQueued, string(kind), limit)
}

// AttemptsInFlight lists the attempts that have a nonce and have not ended, by signer and nonce; an empty kind means
// any.
func (s Intents) AttemptsInFlight(ctx context.Context, kind job.Kind, limit int) ([]ListedAttempt, error) {
	return s.listAttempts(ctx, listInFlight, string(kind), limit)
}

// EndedAttempts lists the attempts that ended before a time, the latest first; an empty kind or outcome means any.
func (s Intents) EndedAttempts(ctx context.Context, kind job.Kind, outcome job.Outcome, before time.Time,
	limit int) ([]ListedAttempt, error) {
	return s.listAttempts(ctx, listEnded, string(kind), limit, before, string(outcome))
}

func (s Intents) listAttempts(ctx context.Context, list *pg.Statement, args ...any) ([]ListedAttempt, error) {
	return pg.List(ctx, s.db, "listing attempts", scanListedAttempt, list.SQL(), args...)
}

func scanListedAttempt(row pgx.CollectableRow) (a ListedAttempt, err error) {
	var born int64
	err = row.Scan(&a.ID, pg.Text(&a.JobID), &a.Attempt, &a.Kind, &a.Class, pg.Fixed(a.Account[:]),
		pg.Fixed(a.Signer[:]),
		&a.State, &born, &a.QueuedAt, &a.EndedAt, &a.Nonce, &a.Outcome, pg.Text(&a.Reason))
	a.Born = time.UnixMilli(born)
	return a, err
}

var selectUnsigned = pg.Register("unsigned transactions", `SELECT asked.hash FROM unnest($1::bytea[]) AS asked (hash)
	WHERE NOT EXISTS (SELECT FROM keeper.signed_tx a WHERE a.hash = asked.hash)
		AND NOT EXISTS (SELECT FROM keeper.archived_signed_tx a WHERE a.hash = asked.hash)`)

// Unsigned returns those of the hashes that are of no transaction this keeper has signed, as far back as the archive
// reaches.
func (s Intents) Unsigned(ctx context.Context, hashes []chain.Hash) ([]chain.Hash, error) {
	return pg.List(ctx, s.db, fmt.Sprintf("looking up %d transactions", len(hashes)), pg.ScanHash,
		selectUnsigned.SQL(), pg.Hashes(hashes))
}
