package txstore

import (
	"context"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/txmgr/txm"
)

var (
	selectSpent = pg.Register("spent by signer", `SELECT kind, sum(wei)::text FROM (
		SELECT r.kind, sum(r.gas_used::numeric * r.gas_price) AS wei FROM keeper.tx_receipt r
		WHERE r.signer = $1 AND r.seen_at > clock_timestamp() - interval '24 hours' GROUP BY r.kind
		UNION ALL
		SELECT t.kind, max(a.gas::numeric * a.cap) FROM keeper.tx_intent t JOIN keeper.signed_tx a
			ON `+txsOf("t")+`
		WHERE t.signer = $1 AND t.state IN `+inFlightStates+` AND t.state = ANY ($2) GROUP BY t.id
		) AS cost GROUP BY kind`)
	selectEarned = pg.Register("earned by signer", `SELECT t.kind, sum(c.amount)::text
		FROM keeper.commission c JOIN keeper.signed_tx a ON a.hash = c.tx_hash
		JOIN keeper.tx_intent t ON t.id = a.intent
		WHERE c.signer = $1 AND c.earned_at > clock_timestamp() - interval '24 hours' GROUP BY t.kind`)
)

// Spent implements txm.Money.
func (s Intents) Spent(ctx context.Context, signer chain.Address) (txm.ByLane, error) {
	return s.byLane(ctx, fmt.Sprintf("summing up what signer %s has spent", signer), selectSpent, signer[:],
		replaceable())
}

// Earned implements txm.Money, by the fees that were booked from final blocks; see Wallets.Book.
func (s Intents) Earned(ctx context.Context, signer chain.Address) (txm.ByLane, error) {
	return s.byLane(ctx, fmt.Sprintf("summing up what signer %s has earned", signer), selectEarned, signer[:])
}

// byLane reads sums of wei by kind of job.
func (s Intents) byLane(ctx context.Context, doing string, text *pg.Statement, args ...any) (txm.ByLane, error) {
	lanes := txm.ByLane{}
	sums, err := pg.List(ctx, s.db, doing, pg.Columns(func(sum *struct {
		kind job.Kind
		wei  chain.Uint
	}) []any {
		return []any{&sum.kind, pg.Amount(&sum.wei)}
	}), text.SQL(), args...)
	for _, sum := range sums {
		lanes.Add(sum.kind.Lane(), sum.wei)
	}
	return lanes, err
}
