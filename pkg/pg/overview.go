package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

var (
	countWaiting = Register("count of attempts by class",
		`SELECT class, count(*) FILTER (WHERE state = 'QUEUED'), count(*) FILTER (WHERE state <> 'QUEUED')
		FROM keeper.tx_intent WHERE state IN ('QUEUED', 'SIGNED', 'SENT', 'MINED') GROUP BY class ORDER BY class`)
	countEnded = Register("count of ended attempts", `SELECT outcome, count(*) FROM keeper.tx_intent
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
	// Queued and InFlight count the attempts of jobs that wait for their nonce, and those whose fate is open.
	Queued, InFlight map[job.Class]int
	// Ended counts the attempts that have ended, by outcome.
	Ended map[job.Outcome]int
	// Spent is what the chain took for transactions, and Earned what the venue paid this keeper's signers, in wei.
	// Neither waits for finality.
	Spent, Earned chain.Uint
}

// Recent counts in one snapshot. What has ended, was spent and earned is that of the last while, by the database's
// clock.
func (db *DB) Recent(ctx context.Context, last time.Duration) (r Recent, err error) {
	r = Recent{Queued: map[job.Class]int{}, InFlight: map[job.Class]int{}, Ended: map[job.Outcome]int{}}
	err = db.ReadActive(ctx, "counting what was done lately", func(ctx context.Context, tx pgx.Tx, g int) error {
		if err := r.count(ctx, tx, last); err != nil {
			return err
		}
		if r.Spent, err = SumOf(tx.QueryRow(ctx, sumSpent.SQL(), last)); err != nil {
			return err
		}
		r.Earned, err = SumOf(tx.QueryRow(ctx, sumEarned.In(g), last))
		return err
	})
	return r, err
}

func (r Recent) count(ctx context.Context, tx pgx.Tx, last time.Duration) error {
	var class job.Class
	var outcome job.Outcome
	var queued, inFlight, ended int
	err := Each(ctx, tx, []any{&class, &queued, &inFlight}, func() error {
		r.Queued[class], r.InFlight[class] = queued, inFlight
		return nil
	}, countWaiting.SQL())
	if err != nil {
		return err
	}
	return Each(ctx, tx, []any{&outcome, &ended}, func() error { r.Ended[outcome] = ended; return nil },
		countEnded.SQL(), last)
}

// The newest receipts of this keeper's signers, by the index that their spending is summed up with.
var listLanded = Register("transactions that landed lately", `SELECT r.signer, r.kind, r.outcome, i.due_since_ms,
	(extract(epoch FROM i.queued_at) * 1000)::bigint, (extract(epoch FROM r.seen_at) * 1000)::bigint,
	r.gas_used, r.gas_price
	FROM keeper.signer s CROSS JOIN LATERAL (SELECT t.intent, t.signer, t.kind, t.outcome,
		t.seen_at, t.gas_used, t.gas_price FROM keeper.tx_receipt t WHERE t.signer = s.signer
		AND t.seen_at > clock_timestamp() - $1::interval ORDER BY t.seen_at DESC LIMIT $2) r
	CROSS JOIN LATERAL (SELECT t.due_since_ms, t.queued_at FROM keeper.tx_intent t WHERE t.id = r.intent LIMIT 1) i
	ORDER BY r.seen_at DESC LIMIT $2`)

// Landed is a transaction of this keeper's that a block has. Times are ms of the Unix epoch: the job's due time by the
// chain's clock, when it was stored and when the block was seen by the database's.
type Landed struct {
	Signer                       chain.Address
	Kind                         job.Kind
	Outcome                      job.Outcome
	DueSinceMs, QueuedMs, SeenMs uint64
	GasUsed, GasPrice            uint64 // the price in wei
}

// Landed lists what was seen in blocks in the last while, the newest first, at most so many.
func (db *DB) Landed(ctx context.Context, last time.Duration, most int) ([]Landed, error) {
	return List(ctx, db, "listing what landed lately", Columns(func(l *Landed) []any {
		return []any{Fixed(l.Signer[:]), &l.Kind, &l.Outcome, &l.DueSinceMs, &l.QueuedMs, &l.SeenMs, &l.GasUsed,
			&l.GasPrice}
	}), listLanded.SQL(), last, most)
}

var selectStateBytes = Register("bytes of the state", `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
	WHERE c.relkind = 'r' AND n.nspname ~ '^state_g[0-9]+$'`)

// StateBytes is how much of the disk all generations take, with their indexes.
func (db *DB) StateBytes(ctx context.Context) (uint64, error) {
	return One(ctx, db, "asking for the size of the state", pgx.RowTo[uint64], selectStateBytes.SQL())
}

// The newest transactions of each account, by the index of senders.
var listSenders = Register("newest transactions of accounts", `SELECT a.account, count(t.key), coalesce(max(t.stamp_time_ms), 0)::bigint
	FROM unnest($1::bytea[]) AS a (account) LEFT JOIN LATERAL (
		SELECT n.key, n.stamp_time_ms FROM {state}.transaction n
		WHERE n.tx_from = a.account AND n.deleted_at IS NULL
		ORDER BY n.tx_nonce DESC LIMIT $3) t ON t.stamp_time_ms >= $2
	GROUP BY a.account`)

// Sent counts the transactions of an account that left logs of the exchange. What reverted is not among them.
type Sent struct {
	Transactions int
	Last         time.Time // by the chain; zero where there is none
}

// SentSince counts the transactions of accounts since a time of the chain, in the active generation; of each account
// the newest are looked at, at most so many.
func (db *DB) SentSince(ctx context.Context, accounts []chain.Address, since time.Time,
	most int) (map[chain.Address]Sent, error) {
	sent := map[chain.Address]Sent{}
	err := db.ReadActive(ctx, "counting what accounts have sent", func(ctx context.Context, tx pgx.Tx, g int) error {
		var account chain.Address
		var s Sent
		var last int64
		return Each(ctx, tx, []any{Fixed(account[:]), &s.Transactions, &last}, func() error {
			s.Last = time.Time{}
			if last > 0 {
				s.Last = time.UnixMilli(last)
			}
			sent[account] = s
			return nil
		}, listSenders.In(g), addresses(accounts), since.UnixMilli(), most)
	})
	return sent, err
}

// The derived state does not show what a keeper intends: a position that is being liquidated is Active in it until
// the chain closes it.
var selectLiquidations = Register("liquidations", `SELECT v.key, v.account, v.job_id, v.attempt, v.status,
	coalesce(v.outcome, ''), coalesce(v.reason, ''), v.ended_at
	FROM keeper.liquidation v JOIN {state}.position p ON p.key = v.key
	WHERE v.status IS NOT NULL AND p.status = 'Active' AND p.deleted_at IS NULL ORDER BY v.key`)

// LiquidationStatus is what a keeper is doing about an active position (LIQ-8).
type LiquidationStatus string

// The statuses.
const (
	Liquidating LiquidationStatus = "LIQUIDATING" // a transaction is in flight; it may still fail
	// LiquidationFailed: the last retry failed; the next attempt begins by itself if the condition still holds.
	LiquidationFailed LiquidationStatus = "LIQUIDATION_FAILED"
)

// Liquidation is a position of the active generation that is being liquidated, or could not be.
type Liquidation struct {
	Position chain.Hash
	Account  chain.Address
	JobID    string
	Attempt  uint32
	Status   LiquidationStatus
	// Outcome, Reason and EndedAt are those of the last attempt, where it has failed.
	Outcome job.Outcome
	Reason  string
	EndedAt time.Time
}

// Liquidations lists the active positions that are being liquidated or could not be, by key, in one snapshot.
func (db *DB) Liquidations(ctx context.Context) (found []Liquidation, err error) {
	err = db.ReadActive(ctx, "listing liquidations", func(ctx context.Context, tx pgx.Tx, generation int) error {
		found, err = Select(ctx, tx, scanLiquidation, selectLiquidations.In(generation))
		return err
	})
	return found, err
}

var scanLiquidation = Columns(func(l *Liquidation) []any {
	return []any{Fixed(l.Position[:]), Fixed(l.Account[:]), Text(&l.JobID), &l.Attempt, &l.Status, &l.Outcome,
		Text(&l.Reason), Moment(&l.EndedAt)}
})
