package pg

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txm"
)

const listedColumns = `i.id, i.job_id, i.arm, i.kind, i.class, i.account, i.signer, i.state, i.birth_ms, i.queued_at,
	i.ended_at, i.nonce, coalesce(i.outcome, ''), coalesce(i.reason, '')`

// Those that have ended may be in the archive. Each has an index of its own; those that wait or are in flight are few beside those that ended.
var (
	listQueued = register("list queued arms", `SELECT `+listedColumns+` FROM keeper.tx_intent i
		WHERE i.state = 'QUEUED' AND ($1 = '' OR i.kind = $1) ORDER BY i.class, i.ratio, i.birth_ms, i.job_id LIMIT $2`)
	listInFlight = register("list arms in flight", `SELECT `+listedColumns+` FROM keeper.tx_intent i
		WHERE i.state IN `+inFlightStates+` AND ($1 = '' OR i.kind = $1) ORDER BY i.signer, i.nonce LIMIT $2`)
	listEnded = register("list ended arms", `SELECT `+listedColumns+` FROM keeper.every_intent i
		WHERE i.ended_at < $3 AND ($1 = '' OR i.kind = $1) AND ($4 = '' OR i.outcome = $4)
		ORDER BY i.ended_at DESC, i.id DESC LIMIT $2`)
)

// ListedArm is an arm as lists show it.
type ListedArm struct {
	ID       int64
	JobID    string
	Arm      uint32
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

// QueuedArms lists the arms that wait for a nonce, in the order in which they get one; an empty kind means any.
func (db *DB) QueuedArms(ctx context.Context, kind job.Kind, limit int) ([]ListedArm, error) {
	return db.listArms(ctx, listQueued, string(kind), limit)
}

// ArmsInFlight lists the arms that have a nonce and have not ended, by signer and nonce; an empty kind means any.
func (db *DB) ArmsInFlight(ctx context.Context, kind job.Kind, limit int) ([]ListedArm, error) {
	return db.listArms(ctx, listInFlight, string(kind), limit)
}

// EndedArms lists the arms that ended before a time, the latest first; an empty kind or outcome means any.
func (db *DB) EndedArms(ctx context.Context, kind job.Kind, outcome job.Outcome, before time.Time,
	limit int) ([]ListedArm, error) {
	return db.listArms(ctx, listEnded, string(kind), limit, before, string(outcome))
}

func (db *DB) listArms(ctx context.Context, list *statement, args ...any) ([]ListedArm, error) {
	ctx, cancel := db.bounded(ctx)
	defer cancel()
	rows, err := db.pool.Query(ctx, list.sql(), args...)
	if err != nil {
		return nil, fmt.Errorf("listing arms: %w", err)
	}
	arms, err := pgx.CollectRows(rows, scanListedArm)
	if err != nil {
		return nil, fmt.Errorf("listing arms: %w", err)
	}
	return arms, nil
}

func scanListedArm(row pgx.CollectableRow) (a ListedArm, err error) {
	var account, signer []byte
	var born int64
	if err := row.Scan(&a.ID, &a.JobID, &a.Arm, &a.Kind, &a.Class, &account, &signer, &a.State, &born, &a.QueuedAt,
		&a.EndedAt, &a.Nonce, &a.Outcome, &a.Reason); err != nil {
		return a, err
	}
	a.Account, a.Signer, a.Born = addressOf(account), addressOf(signer), time.UnixMilli(born)
	for _, text := range []*string{&a.JobID, &a.Reason} {
		if *text, err = unescape(*text); err != nil {
			return a, err
		}
	}
	return a, nil
}

// The newest transactions of each account, by the index of senders.
var listSenders = register("newest transactions of accounts", `SELECT a.account, count(t.key),
		count(t.key) FILTER (WHERE t.tx_ok), coalesce(max(t.stamp_time_ms), 0)::bigint
	FROM unnest($1::bytea[]) AS a (account) LEFT JOIN LATERAL (
		SELECT n.key, n.tx_ok, n.stamp_time_ms FROM {state}.transaction n
		WHERE n.tx_from = a.account AND n.deleted_at IS NULL
		ORDER BY n.tx_nonce DESC LIMIT $3) t ON t.stamp_time_ms >= $2
	GROUP BY a.account`)

// Sent counts what an account has sent to the exchange, as the chain shows it.
type Sent struct {
	Transactions, OK int
	Last             time.Time // by the chain; zero where there is none
}

// SentSince counts the transactions of accounts since a time of the chain, in the active generation; of each account
// the newest are looked at, at most so many.
func (db *DB) SentSince(ctx context.Context, accounts []chain.Address, since time.Time,
	most int) (map[chain.Address]Sent, error) {
	sent := map[chain.Address]Sent{}
	asked := make([][]byte, len(accounts))
	for i, a := range accounts {
		asked[i] = a[:]
	}
	err := db.read(ctx, func(ctx context.Context, tx pgx.Tx) error {
		generation, err := activeGeneration(ctx, tx)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx, listSenders.in(generation), asked, since.UnixMilli(), most)
		if err != nil {
			return err
		}
		var account []byte
		var s Sent
		var last int64
		_, err = pgx.ForEachRow(rows, []any{&account, &s.Transactions, &s.OK, &last}, func() error {
			s.Last = time.Time{}
			if last > 0 {
				s.Last = time.UnixMilli(last)
			}
			sent[addressOf(account)] = s
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("counting what accounts have sent: %w", err)
	}
	return sent, nil
}
