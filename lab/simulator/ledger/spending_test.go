package ledger_test

import (
	"testing"
	"time"

	"perpkeeper/lab/simulator/ledger"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

func anOrder(signer chain.Address, n byte) job.Job {
	key := chain.Hash{n}
	return job.Job{ID: job.OrderID(key, 1), Kind: job.Order, Key: key, Class: job.ClassMarketOrder, Signer: signer}
}

// What was burnt counts for a day of the store's clock.
func TestSpendingIsForgotten(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	l := ledger.New(func() time.Time { return now })
	signer := chain.Address{0xaa}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(l.Register(t.Context(), signer, testChain))
	spent := func(want uint64) {
		t.Helper()
		if wei, err := l.Spent(t.Context(), signer); err != nil || wei.Sum() != chain.U64(want) {
			t.Errorf("spent %v, %v; want %d", wei, err, want)
		}
	}
	for n := range uint64(3) {
		fence, err := l.Acquire(t.Context(), signer, lease.Owner{}, time.Hour)
		must(err)
		_, err = l.Enqueue(t.Context(), anOrder(signer, byte(n)))
		must(err)
		heads, err := l.Heads(t.Context(), signer, txm.Pick{Limit: 1})
		must(err)
		tx := txm.SignedTx{Nonce: n, Gas: 21_000, Tip: 1, Cap: 1, Hash: chain.Hash{byte(n + 1)}}
		must(l.Claim(t.Context(), fence, txm.Batch{
			Claims: []txm.Claim{{Intent: heads[0].ID, Kind: heads[0].Job.Kind, Tx: tx}}, Cursor: n,
			Limits: txm.Limits{Signer: 9},
		}))
		r := txm.Receipt{TxHash: tx.Hash, Block: chain.BlockRef{Hash: chain.Hash{1}}, OK: true, GasUsed: 10,
			GasPrice: 100, Outcome: job.Done}
		elsewhere := r // the branch changes twice
		elsewhere.Block.Hash, elsewhere.GasUsed = chain.Hash{2}, 77
		must(l.Record(t.Context(), fence, elsewhere))
		must(l.Unmine(t.Context(), fence, elsewhere))
		must(l.Record(t.Context(), fence, elsewhere))
		must(l.Record(t.Context(), fence, r))
		must(l.Finish(t.Context(), fence, txm.FinalReceipt{Receipt: r, Rest: txm.Rest{}}))
		spent(1000 * min(n+1, 2))
		now = now.Add(12 * time.Hour)
	}
	spent(1000)
	now = now.Add(12 * time.Hour)
	spent(0)
}
