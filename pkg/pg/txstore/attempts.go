package txstore

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/txm"
)

var (
	selectAttempts = pg.Register("attempts of jobs", `SELECT `+intentColumns+`, `+receiptColumns+`, i.queued_at,
			i.ended_at, i.reported_at, r.seen_at, coalesce(r.final, false), i.archived
		FROM keeper.every_intent i LEFT JOIN keeper.every_receipt r ON r.intent = i.id
		WHERE i.job_id = $1 OR i.key = $2 OR i.account = $3
			OR i.id = ANY (ARRAY(SELECT a.intent FROM keeper.every_signed_tx a WHERE a.hash = $2))
		ORDER BY i.id DESC LIMIT $4`)
	selectSigned = pg.Register("transactions of attempts",
		`SELECT t.id, a.hash, a.nonce, a.seq, a.kind, a.tip, a.cap, a.gas, a.token, a.sends,
			coalesce(a.last_class, ''), a.created_at, a.first_sent_at, a.last_sent_at
		FROM keeper.every_intent t JOIN keeper.every_signed_tx a ON `+txsOf("t")+`
		WHERE t.id = ANY ($1) ORDER BY t.id, a.seq`)
	selectFeesOfTx = pg.Register("fees of a transaction",
		`SELECT coalesce(sum(f.amount), 0)::text FROM {state}.keeper_fee f
		WHERE f.stamp_tx_hash = $1 AND f.deleted_at IS NULL`)
)

// Attempt is one attempt of a job as it is stored, with all that was signed for it.
type Attempt struct {
	Intent    txm.Intent
	Mined     *txm.Receipt // where it was last seen on the chain; nil where it was not
	Txs       []Signed     // in the order they were made
	QueuedAt  time.Time
	EndedAt   *time.Time
	Reported  *time.Time // when its result was published
	SeenAt    *time.Time // of Mined
	Final     bool       // of Mined
	FeeEarned chain.Uint // wei that the exchange paid for Mined
	Archived  bool       // it has left the tables that senders work with
}

// Signed is one transaction that was signed for an attempt, and what was noted of its broadcasts.
type Signed struct {
	Hash          chain.Hash
	Nonce         uint64
	Seq           uint32
	Kind          string
	Tip, Cap, Gas uint64 // wei per gas; gas
	Token         int64  // of the lease term that signed it
	Sends         int
	LastClass     string // what the last broadcast was answered with
	At            time.Time
	First, Last   *time.Time // broadcasts
}

// Wanted chooses attempts by any of its fields; zero fields choose none.
type Wanted struct {
	JobID   string
	Key     chain.Hash // of the position, order or request; or the hash of a transaction
	Account chain.Address
}

// Attempts returns what is stored of the chosen attempts, oldest first; of more than limit the newest. It is for
// people: there is no index for keys and accounts of attempts that have ended and are not archived yet. What the
// archive has dropped is not found.
func (s Intents) Attempts(ctx context.Context, w Wanted, limit int) (attempts []Attempt, err error) {
	err = s.db.ReadActive(ctx, "reading the attempts of jobs", func(ctx context.Context, tx pgx.Tx, g int) error {
		var key, account []byte
		if !w.Key.IsZero() {
			key = w.Key[:]
		}
		if !w.Account.IsZero() {
			account = w.Account[:]
		}
		attempts, err = pg.Select(ctx, tx, scanAttempt, selectAttempts.SQL(), pg.Escape(w.JobID), key, account, limit)
		if err != nil {
			return err
		}
		return withTxs(ctx, tx, g, attempts)
	})
	return attempts, err
}

func scanAttempt(row pgx.CollectableRow) (a Attempt, err error) {
	var i intentRow
	var r receiptRow
	if err := row.Scan(append(append(i.fields(), r.fields()...), &a.QueuedAt, &a.EndedAt, &a.Reported, &a.SeenAt,
		&a.Final, &a.Archived)...); err != nil {
		return a, err
	}
	if a.Intent, err = i.intent(); err != nil {
		return a, err
	}
	a.Mined, err = r.receipt()
	return a, err
}

// withTxs puts the attempts in order, and adds what was signed and earned.
func withTxs(ctx context.Context, tx pgx.Tx, generation int, attempts []Attempt) error {
	slices.Reverse(attempts)
	ids, byID := make([]int64, len(attempts)), map[int64]*Attempt{}
	for i := range attempts {
		ids[i] = attempts[i].Intent.ID
		byID[ids[i]] = &attempts[i]
	}
	var id int64
	var s Signed
	err := pg.Each(ctx, tx, []any{&id, pg.Fixed(s.Hash[:]), &s.Nonce, &s.Seq, &s.Kind, &s.Tip, &s.Cap, &s.Gas, &s.Token,
		&s.Sends, &s.LastClass, &s.At, &s.First, &s.Last}, func() error {
		byID[id].Txs = append(byID[id].Txs, s)
		return nil
	}, selectSigned.SQL(), ids)
	if err != nil {
		return err
	}
	for i := range attempts {
		if m := attempts[i].Mined; m != nil {
			if attempts[i].FeeEarned, err = pg.SumOf(tx.QueryRow(ctx, selectFeesOfTx.In(generation),
				m.TxHash[:])); err != nil {
				return err
			}
		}
	}
	return nil
}
