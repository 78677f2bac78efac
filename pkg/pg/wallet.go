package pg

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
)

// Wallets is the commission ledger.
type Wallets struct {
	db      *DB
	stretch int           // how many fees one transaction looks at
	look    time.Duration // after which a booking begins no further one
}

// Wallets returns the ledger of agents.
func (db *DB) Wallets() Wallets { return Wallets{db: db, stretch: feesOfStretch, look: longestLook} }

const (
	// feesOfStretch is how many fees one booking transaction looks at, in whole blocks: well within the limit of a
	// statement, on a slow disk too.
	feesOfStretch = 2000
	// longestLook is for how long a booking goes on: what else waits for the caller waits for so long at most.
	longestLook = 10 * time.Second
)

// selectStretch finds the end of a stretch of so many fees, and how many there are in it. The index alone answers.
var selectStretch = Register("stretch of fees", `SELECT coalesce(max(stamp_block), 0), count(*) FROM (
		SELECT stamp_block FROM {state}.keeper_fee WHERE stamp_block >= $1 AND stamp_block <= $2
			ORDER BY stamp_block LIMIT $3) s`)

// The fee's block hash comes from the record of its transaction: logs are identified by it, and rows of state know
// blocks by number. Whether a fee was booked is asked of the primary key for each by itself (SELECT NOT EXISTS): as a
// join, without statistics, it would compare all fees of a block with each other.
var bookFees = Register("book fees", `WITH owner AS (
		SELECT * FROM unnest($1::bytea[], $2::text[]) AS o (signer, agent)
	), fee AS (
		SELECT t.tx_block_hash, f.stamp_log, f.stamp_block, f.stamp_tx_hash, f.keeper, owner.agent, f.amount,
			to_timestamp(f.stamp_time_ms::float8 / 1000) AS earned_at
		FROM {state}.keeper_fee f JOIN owner ON owner.signer = f.keeper
			JOIN {state}.transaction t ON t.key = f.stamp_tx_hash AND t.tx_block = f.stamp_block
				AND t.deleted_at IS NULL
		WHERE f.stamp_block >= $4 AND f.stamp_block <= $5 AND f.deleted_at IS NULL AND f.amount > 0
			AND (SELECT NOT EXISTS (
				SELECT FROM keeper.commission c WHERE c.chain_id = $3 AND c.block_hash = t.tx_block_hash
					AND c.log_index = f.stamp_log))
	), booked AS (
		INSERT INTO keeper.commission (chain_id, block_hash, log_index, block, tx_hash, signer, agent, amount,
			earned_at)
		SELECT $3, tx_block_hash, stamp_log, stamp_block, stamp_tx_hash, keeper, agent, amount, earned_at FROM fee
			ORDER BY stamp_block, stamp_log
		ON CONFLICT DO NOTHING
		RETURNING block, agent, amount, booked_at,
			chain_id || ':0x' || encode(block_hash, 'hex') || ':' || log_index AS source
	), frozen AS (
		INSERT INTO keeper.wallet AS w (agent, frozen_balance) SELECT agent, sum(amount) FROM booked GROUP BY agent
			ORDER BY agent
		ON CONFLICT (agent) DO UPDATE SET frozen_balance = w.frozen_balance + excluded.frozen_balance, version =
			w.version + 1, updated_at = clock_timestamp()
	), entered AS (
		INSERT INTO keeper.wallet_entry (agent, what, source, balance_delta, frozen_delta)
			SELECT agent, 'commission', source, 0, amount FROM booked
	), delayed AS (
		INSERT INTO keeper.delayed_job (kind, key, payload, due_at, next_at)
		SELECT $6, source, jsonb_build_object('agent', agent, 'amount', amount::text), due, due
		FROM (SELECT *, booked_at + $7::bigint * interval '1 microsecond' AS due FROM booked) b
	)
	SELECT count(*) FROM booked`)

// Book implements delayed.Books: it freezes the fees of final blocks of the active generation that were not
// booked before, and orders their release, each fee with one entry and one delayed job. It goes through them in
// stretches, each in one transaction, for some seconds: there may be millions, and whoever goes on from where it ended
// reaches the last of them.
func (w Wallets) Book(ctx context.Context, b delayed.Booking) (booked delayed.Booked, err error) {
	for began := time.Now(); ; {
		part, err := w.bookStretch(ctx, b)
		if err != nil {
			return booked, err
		}
		part.Fees += booked.Fees
		booked = part
		if !booked.More || time.Since(began) >= w.look {
			return booked, nil
		}
		b.Generation, b.From = booked.Generation, booked.Final+1
	}
}

// bookStretch books the next fees in the order of the chain.
func (w Wallets) bookStretch(ctx context.Context, b delayed.Booking) (part delayed.Booked, err error) {
	signers, agents := make([][]byte, 0, len(b.Owners)), make([]string, 0, len(b.Owners))
	for signer, agent := range b.Owners {
		signers, agents = append(signers, signer[:]), append(agents, agent)
	}
	err = w.db.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		s, err := ActiveProgress(ctx, tx)
		if err != nil {
			return err
		}
		part = delayed.Booked{Generation: s.Generation, Final: FinalApplied(s)}
		if part.Final == 0 {
			return nil
		}
		from := b.From
		if part.Generation != b.Generation {
			from = 0
		}
		var end uint64
		var fees int
		if err := tx.QueryRow(ctx, selectStretch.In(s.Generation), from, part.Final, w.stretch).Scan(&end,
			&fees); err != nil {
			return err
		}
		if part.More = fees == w.stretch && end < part.Final; part.More {
			part.Final = end
		}
		return tx.QueryRow(ctx, bookFees.In(s.Generation), signers, agents, b.ChainID, from, part.Final,
			delayed.CommissionRelease, b.Hold.Microseconds()).Scan(&part.Fees)
	})
	return part, err
}

// FinalApplied is the highest block that is final and that every partition has applied; 0 while there is none, and
// while nobody may act on the state.
func FinalApplied(s Progress) uint64 {
	final := s.Finalized()
	if final.Hash.IsZero() || s.Halted != "" {
		return 0
	}
	for _, o := range s.Offsets {
		final.Number = min(final.Number, o.Tip.Number)
	}
	return final.Number
}

// Every wallet and every agent with entries or fees: what is stored, the sums of the entries, what was earned, and
// what was not yet released.
var verifyWallets = Register("verify wallets", `WITH entry AS (
		SELECT agent, sum(balance_delta) AS balance, sum(frozen_delta) AS frozen FROM keeper.wallet_entry
			GROUP BY agent
	), fee AS (
		SELECT c.agent, sum(c.amount) AS earned, coalesce(sum(c.amount) FILTER (WHERE r.id IS NULL), 0) AS held
		FROM keeper.commission c LEFT JOIN keeper.wallet_entry r
			ON r.what = 'release' AND r.source = c.chain_id || ':0x' || encode(c.block_hash, 'hex') || ':' ||
				c.log_index
		GROUP BY c.agent
	)
	SELECT agent, coalesce(w.balance, 0)::text, coalesce(w.frozen_balance, 0)::text, coalesce(entry.balance,
		0)::text, coalesce(entry.frozen, 0)::text,
		coalesce(fee.earned, 0)::text, coalesce(fee.held, 0)::text
	FROM keeper.wallet w FULL JOIN entry USING (agent) FULL JOIN fee USING (agent) ORDER BY agent`)

// Audit is a wallet checked against its entries and its fees, in wei.
type Audit struct {
	Agent                     string
	Balance, Frozen           chain.Int // as stored
	EntryBalance, EntryFrozen chain.Int // sums of the entries
	Earned, Held              chain.Int // sum of the fees booked, and of those not released
}

// Sound reports whether the balances are the sums of the entries, and those what the fees say.
func (a Audit) Sound() bool {
	return a.Balance == a.EntryBalance && a.Frozen == a.EntryFrozen && a.Frozen == a.Held &&
		a.Balance == a.Earned.Sub(a.Held)
}

// Verify holds every wallet against its entries and fees, in one statement and so in one snapshot.
func (w Wallets) Verify(ctx context.Context) ([]Audit, error) {
	return List(ctx, w.db, "verifying the wallets", Columns(func(a *Audit) []any {
		return []any{&a.Agent, Amount(&a.Balance), Amount(&a.Frozen), Amount(&a.EntryBalance),
			Amount(&a.EntryFrozen), Amount(&a.Earned), Amount(&a.Held)}
	}), verifyWallets.SQL())
}
