package txstore

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/operator/pnl"
	"perpkeeper/pkg/pg"
)

// The transactions of the signers $1 after a time: those with logs of the exchange by their blocks' time, as every
// keeper has it, and what else this keeper sent by when it saw them mined. What another database sent and left no log
// is nowhere.
const ownTransactions = `SELECT t.key AS tx, t.tx_from AS signer, t.tx_ok AS ok, t.tx_nonce AS nonce,
			t.tx_block AS block, t.stamp_time_ms AS at, t.tx_gas_used * t.tx_gas_price AS gas
		FROM {state}.transaction t
		WHERE t.tx_from = ANY ($1) AND t.stamp_time_ms > $2::numeric AND t.deleted_at IS NULL
		UNION ALL
		SELECT r.tx_hash, r.signer, r.ok, a.nonce, r.block, ceil(extract(epoch FROM r.seen_at) * 1000),
			r.gas_used::numeric * r.gas_price
		FROM keeper.every_receipt r JOIN keeper.every_signed_tx a ON a.hash = r.tx_hash
		WHERE r.signer = ANY ($1) AND r.seen_at > to_timestamp($2::float8 / 1000) AND r.final
			AND NOT EXISTS (SELECT FROM {state}.transaction t WHERE t.key = r.tx_hash AND t.deleted_at IS NULL)`

// pnlLines are the transactions and fees of the signers $1 after the time $2, as rows of "entry", for which of them a
// condition on line l says. Of which kind the job was, this keeper's own transactions tell. The fees of a transaction
// stand beside its gas under the transaction's purpose.
func pnlLines(within string) string {
	return `line AS (
			SELECT o.tx, o.signer, CASE WHEN o.ok THEN 'executed' ELSE 'lost' END AS purpose, o.block, o.at, 1 AS n,
				0::numeric AS fee, o.gas
			FROM (` + ownTransactions + `) o
			UNION ALL
			SELECT t.stamp_tx_hash, t.keeper, 'executed', t.stamp_block, t.stamp_time_ms, 0, t.amount, 0
			FROM {state}.keeper_fee t
			WHERE t.keeper = ANY ($1) AND t.stamp_time_ms > $2::numeric AND t.deleted_at IS NULL
		), entry AS (
			SELECT l.at, l.signer, coalesce(i.kind, '') AS kind, coalesce(i.job ->> 'market', '') AS market,
				CASE WHEN a.kind <> 'EXEC' THEN 'freed' ELSE l.purpose END AS purpose, l.n, l.fee, l.gas
			FROM line l LEFT JOIN keeper.every_signed_tx a ON a.hash = l.tx
				LEFT JOIN keeper.every_intent i ON i.id = a.intent
			WHERE ` + within + `
		)`
}

var (
	selectSigners = pg.Register("signers of this keeper", `SELECT signer FROM keeper.signer ORDER BY signer`)
	// Of the days that are summed up only the sums know what the transactions were for. They begin with the first whole
	// day of the range, $4, and end where the marked day does, $5.
	sumEntries = pg.Register("profit and loss", `WITH `+pnlLines(`(l.at <= $4::numeric OR l.at > $5::numeric) AND l.block <= $3::numeric`)+`
		SELECT signer, kind, market, purpose, sum(n), sum(fee)::text, sum(gas)::text FROM (
			SELECT signer, kind, market, purpose, n, fee, gas FROM entry
			UNION ALL
			SELECT signer, kind, market, purpose, transactions, fees, gas FROM keeper.pnl_day
			WHERE signer = ANY ($1) AND extract(epoch FROM day) * 1000 >= $4::numeric
				AND extract(epoch FROM day) * 1000 < $5::numeric) every
		GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4`)
	sumAccounts = pg.Register("signers in profit and loss", `WITH own AS (SELECT o.signer, o.nonce FROM (`+ownTransactions+`) o
			WHERE o.block <= $3::numeric)
		SELECT s.signer, coalesce((SELECT max(o.nonce) - min(o.nonce) + 1 - count(*) FROM own o
				WHERE o.signer = s.signer), 0)::bigint,
			coalesce((SELECT sum(c.amount) FROM keeper.commission c WHERE c.signer = s.signer
				AND c.earned_at > to_timestamp($2::float8 / 1000) AND c.block <= $3::bigint), 0)::text
		FROM unnest($1::bytea[]) AS s (signer) ORDER BY s.signer`)
	selectFirst = pg.Register("first block of profit and loss", `SELECT least(
			(SELECT min(block) FROM (`+ownTransactions+`) own WHERE block <= $3::numeric),
			(SELECT min(f.stamp_block) FROM {state}.keeper_fee f
				WHERE f.keeper = ANY ($1) AND f.stamp_time_ms > $2::numeric AND f.stamp_block <= $3::numeric
					AND f.deleted_at IS NULL))::bigint`)
)

// ProfitAndLoss reads what this keeper's signers earned and spent in the last while before the newest block that is
// final and that every partition has applied, by the chain's clock. It fails where there is no such block.
func (a Archive) ProfitAndLoss(ctx context.Context, last time.Duration) (s pnl.Statement, err error) {
	err = a.db.Read(ctx, "reading profit and loss", func(ctx context.Context, tx pgx.Tx) error {
		status, err := pg.ActiveProgress(ctx, tx)
		if err != nil {
			return err
		}
		s.Generation, s.UntilMs = status.Generation, status.Finalized().TimeMs
		if s.Last = pg.FinalApplied(status); s.Last == 0 {
			return fmt.Errorf("no block of the state is final yet, or the state is halted (%q)", status.Halted)
		}
		signers, err := signersOf(ctx, tx)
		if err != nil {
			return err
		}
		s.SinceMs = s.UntilMs - min(s.UntilMs, uint64(last.Milliseconds()))
		return readStatement(ctx, tx, &s, signers)
	})
	return s, err
}

func signersOf(ctx context.Context, tx pgx.Tx) ([][]byte, error) {
	return pg.Select(ctx, tx, pgx.RowTo[[]byte], selectSigners.SQL())
}

// readStatement reads what came after the beginning of a statement's range, up to its last block.
func readStatement(ctx context.Context, tx pgx.Tx, s *pnl.Statement, signers [][]byte) error {
	since, last := int64(s.SinceMs), int64(s.Last)
	whole, summed, err := summedDays(ctx, tx, *s)
	if err != nil {
		return err
	}
	s.Entries, err = pg.Select(ctx, tx, scanEntry, sumEntries.In(s.Generation), signers, since, last, whole, summed)
	if err != nil {
		return err
	}
	s.Accounts, err = pg.Select(ctx, tx, pg.Columns(func(a *pnl.Account) []any {
		return []any{pg.Fixed(a.Signer[:]), &a.Missing, pg.Amount(&a.Booked)}
	}), sumAccounts.In(s.Generation), signers, since, last)
	if err != nil || len(s.Entries) == 0 {
		return err
	}
	return tx.QueryRow(ctx, selectFirst.In(s.Generation), signers, since, last).Scan(&s.First)
}

// summedDays are the bounds of the whole days of a statement that are sums (see [Archive.Expire]), in ms: the first
// begins after whole, the last ends with summed. They are equal where there is none.
func summedDays(ctx context.Context, tx pgx.Tx, s pnl.Statement) (whole, summed int64, err error) {
	const day = int64(24 * time.Hour / time.Millisecond)
	if err := tx.QueryRow(ctx, selectMark.SQL()).Scan(&summed); err != nil {
		return 0, 0, err
	}
	since, until := int64(s.SinceMs), int64(s.UntilMs)
	summed = max(min(summed, until/day*day), since)
	whole = min((since+day-1)/day*day, summed)
	return whole, summed, nil
}

func scanEntry(row pgx.CollectableRow) (e pnl.Entry, err error) {
	var market string
	if err := row.Scan(pg.Fixed(e.Signer[:]), &e.Kind, &market, &e.Purpose, &e.Transactions, pg.Amount(&e.Fees),
		pg.Amount(&e.Gas)); err != nil {
		return e, err
	}
	if market != "" {
		e.Market, err = chain.ParseAddress(market)
	}
	return e, err
}
