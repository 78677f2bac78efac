package txstore_test

import (
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/txm"
)

// What the venue has paid for a signer's own transactions in a day is counted for the lane of their jobs. Fees of
// before, of others, and of transactions that this keeper did not send are not.
func TestEarnedIsWhatWasBookedForTheLane(t *testing.T) {
	d := newHolder(t, 2)
	ours, old := d.MustClaim(t, d.Intents[0], 0, 0), d.MustClaim(t, d.Intents[1], 1, 1)
	other := chain.Address{0xbb}
	conn := connect(t, d.Address)
	for i, c := range []struct {
		signer chain.Address
		tx     chain.Hash
		bnb    string
		age    time.Duration
	}{
		{d.Fence.Signer, ours.Hash, "0.5", time.Hour}, {d.Fence.Signer, ours.Hash, "12.25", time.Minute},
		{d.Fence.Signer, old.Hash, "1", 25 * time.Hour}, {other, ours.Hash, "2", time.Minute},
		{d.Fence.Signer, chain.Hash{9}, "4", time.Minute},
	} {
		if _, err := conn.Exec(t.Context(), `INSERT INTO keeper.commission
			(chain_id, block_hash, log_index, block, tx_hash, signer, agent, amount, earned_at)
			VALUES (56, sha256('block'), $1, 1, $2, $3, 'agent', $4::numeric, clock_timestamp() - $5::bigint * interval '1 second')`,
			i, c.tx[:], c.signer[:], txm.MustBNB(c.bnb).Wei().String(), int64(c.age.Seconds())); err != nil {
			t.Fatal(err)
		}
	}
	earned, err := txstore.NewIntents(d.DB).Earned(t.Context(), d.Fence.Signer)
	if want := txm.MustBNB("12.75").Wei(); err != nil || len(earned) != 1 || earned[job.OrderLane] != want {
		t.Errorf("earned %v, %v; want %s for orders", earned, err, want)
	}
}
