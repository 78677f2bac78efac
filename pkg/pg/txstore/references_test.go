package txstore_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/pg/txstore/txstoretest"
	"perpkeeper/pkg/txmgr/txm"
)

// strayRows counts the rows that refer to nothing, where no foreign key looks (migration 00007).
const strayRows = `SELECT
	(SELECT count(*) FROM keeper.signer_nonce_allocation a WHERE NOT EXISTS (SELECT FROM keeper.signer_lease l
		WHERE l.signer = a.signer)
		OR NOT EXISTS (SELECT FROM keeper.tx_intent t WHERE t.id = a.intent AND t.signer = a.signer)) +
	(SELECT count(*) FROM keeper.signed_tx m WHERE NOT EXISTS (SELECT FROM keeper.tx_intent t WHERE t.id = m.intent
		AND t.nonce = m.nonce)
		OR NOT EXISTS (SELECT FROM keeper.signer_nonce_allocation a WHERE a.signer = m.signer AND a.nonce = m.nonce)) +
	(SELECT count(*) FROM keeper.tx_intent t WHERE t.nonce IS NOT NULL
		AND NOT EXISTS (SELECT FROM keeper.signer_nonce_allocation a WHERE a.signer = t.signer AND a.nonce = t.nonce))`

// noStrays makes a test fail that leaves rows behind which refer to nothing.
func noStrays(t *testing.T, url string) {
	t.Helper()
	t.Cleanup(func() {
		ctx := context.Background() // the test's has ended
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(ctx) }()
		var strays int
		if err := conn.QueryRow(ctx, strayRows).Scan(&strays); err != nil || strays != 0 {
			t.Errorf("%d rows refer to nothing, %v", strays, err)
		}
	})
}

// NON-7: a claim of what is not there, or is another signer's, changes nothing, alone or in a batch with one that could
// be claimed.
func TestClaimRefersToWhatIsThere(t *testing.T) {
	d := newHolder(t, 1)
	noStrays(t, d.Address)
	other := chain.Address{0xbb}
	if err := txstore.NewLeases(d.DB).Register(t.Context(), other, txstoretest.ChainID); err != nil {
		t.Fatal(err)
	}
	key := chain.Hash{0xee}
	theirs := job.Job{ID: job.OrderID(key, 1), Kind: job.Order, Key: key, Class: job.ClassMarketOrder, Signer: other}
	if _, err := txstore.NewIntents(d.DB).Enqueue(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	heads, err := txstore.NewIntents(d.DB).Heads(t.Context(), other, txm.Pick{Limit: 1})
	if err != nil || len(heads) != 1 {
		t.Fatal(heads, err)
	}
	const nobody = 1 << 40
	for what, intents := range map[string][]int64{
		"nobody's": {nobody}, "another signer's": {heads[0].ID},
		"one of two is nobody's": {d.Intents[0], nobody}, "one of two is another's": {heads[0].ID, d.Intents[0]},
	} {
		var b txm.Batch
		for n, id := range intents {
			one := d.Claim(id, uint64(n), 0)
			b.Claims, b.Limits = append(b.Claims, one.Claims...), one.Limits
		}
		if err := txstore.NewIntents(d.DB).Claim(t.Context(), d.Fence, b); txm.Refused(err) != txm.Moved {
			t.Errorf("%s: %v, want to be refused", what, err)
		}
		next := query[int64](t, d.Address, `SELECT next_nonce FROM keeper.signer_lease WHERE signer = $1`,
			d.Fence.Signer[:])
		if next != 0 {
			t.Errorf("%s: the cursor went to %d", what, next)
		}
	}
	d.MustClaim(t, d.Intents[0], 0, 0)
}

// What intents and numbers came to is never deleted, so that nothing that refers to them is left without.
func TestNothingReferredToIsDeleted(t *testing.T) {
	d := newHolder(t, 1)
	d.MustClaim(t, d.Intents[0], 0, 0)
	conn := connect(t, d.Address)
	for _, table := range []string{"signer_lease", "tx_intent", "signer_nonce_allocation"} {
		for _, sql := range []string{"DELETE FROM keeper." + table, "TRUNCATE keeper." + table + " CASCADE"} {
			if _, err := conn.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "never deleted") {
				t.Errorf("%s: %v, want to be refused", sql, err)
			}
		}
	}
}
