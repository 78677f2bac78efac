package txstore_test

import (
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/pg/txstore/txstoretest"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/txm"
)

func (d holder) status(t *testing.T) txstore.SignerStatus {
	t.Helper()
	all, err := txstore.NewSigners(d.DB).List(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("listed %+v, %v", all, err)
	}
	return all[0]
}

func (d holder) heads(t *testing.T) int {
	t.Helper()
	heads, err := txstore.NewIntents(d.DB).Heads(t.Context(), d.Fence.Signer, txm.Pick{Limit: 9})
	if err != nil {
		t.Fatal(err)
	}
	return len(heads)
}

func TestSignersAreShownAsTheyStand(t *testing.T) {
	d := newHolder(t, 3)
	d.MustClaim(t, d.Intents[0], 0, 0)
	got := d.status(t)
	if got.LeaseLeft <= 0 || got.LeaseLeft.Minutes() > 1 {
		t.Errorf("the lease has %s left", got.LeaseLeft)
	}
	got.LeaseLeft = 0
	want := txstore.SignerStatus{Signer: d.Fence.Signer, ChainID: txstoretest.ChainID, Owner: t.Name(), Token: 1,
		NextNonce: 1,
		Queued:    2, InFlight: 1}
	if got != want {
		t.Errorf("listed %+v, want %+v", got, want)
	}
	if err := txstore.NewLeases(d.DB).Release(t.Context(), d.Fence); err != nil {
		t.Fatal(err)
	}
	if left := d.status(t).LeaseLeft; left != 0 {
		t.Errorf("a lease that was given back has %s left", left)
	}
	idle := chain.Address{0xff}
	must(t, txstore.NewLeases(d.DB).Register(t.Context(), idle, txstoretest.ChainID))
	all, err := txstore.NewSigners(d.DB).List(t.Context())
	must(t, err)
	if len(all) != 2 || all[0].Queued != 2 || all[1].Signer != idle || all[1].Queued+all[1].InFlight != 0 {
		t.Errorf("with another that nothing waits for: %+v", all)
	}
}

// What an operator says is kept and recorded; the lease term goes on, and so does what is in flight.
func TestPauseAndResumeByHand(t *testing.T) {
	d := newHolder(t, 2)
	signers := txstore.NewSigners(d.DB)
	tx := d.MustClaim(t, d.Intents[0], 0, 0)
	for i, want := range []string{"", "maintenance"} {
		if already, err := signers.Pause(t.Context(), d.Fence.Signer,
			[]string{"maintenance", "another"}[i]); err != nil || already != want {
			t.Errorf("paused with %q, %v before", already, err)
		}
	}
	if d.heads(t) != 0 || d.status(t).Paused != "maintenance" {
		t.Errorf("a paused signer has something to do: %+v", d.status(t))
	}
	if err := txstore.NewIntents(d.DB).Noted(t.Context(), d.Fence, tx.Hash, "accepted", true); err != nil {
		t.Errorf("what is in flight does not go on: %v", err)
	}
	for _, want := range []string{"maintenance", ""} {
		if was, err := signers.Resume(t.Context(), d.Fence.Signer); err != nil || was != want {
			t.Errorf("resumed from %q, %v", was, err)
		}
	}
	if d.heads(t) != 1 || d.status(t).Paused != "" {
		t.Errorf("a resumed signer has nothing to do: %+v", d.status(t))
	}
	if got := d.events(t); got != "paused maintenance; resumed was paused: maintenance" {
		t.Errorf("recorded %s", got)
	}
	stranger := chain.Address{0xbb}
	if _, err := signers.Pause(t.Context(), stranger, "x"); !pg.Refused(err) {
		t.Errorf("paused an unknown signer: %v", err)
	}
	if _, err := signers.Resume(t.Context(), stranger); !pg.Refused(err) {
		t.Errorf("resumed an unknown signer: %v", err)
	}
}

// Only what is in flight can be called off, and once; who asked is on record.
func TestCallOff(t *testing.T) {
	d := newHolder(t, 2)
	signers := txstore.NewSigners(d.DB)
	tx := d.MustClaim(t, d.Intents[0], 0, 0)
	d.MustClaim(t, d.Intents[1], 1, 1)
	if err := signers.CallOff(t.Context(), d.Fence.Signer, 0, "alice", "a \x00 reason"); err != nil {
		t.Fatal(err)
	}
	inFlight, err := txstore.NewIntents(d.DB).InFlight(t.Context(), d.Fence.Signer)
	if err != nil || inFlight[0].Intent.CalledOff != "called off by alice: a \x00 reason" ||
		inFlight[1].Intent.CalledOff != "" {
		t.Errorf("in flight: %+v, %v", inFlight, err)
	}
	for nonce, want := range map[uint64]string{0: "waiting for its sender already: called off by alice",
		2: "was given to no job"} {
		if err := signers.CallOff(t.Context(), d.Fence.Signer, nonce, "bob", "x"); !pg.Refused(err) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("nonce %d: %v", nonce, err)
		}
	}
	if err := txstore.NewIntents(d.DB).
		Record(t.Context(), d.Fence,
			txm.Receipt{TxHash: tx.Hash, Block: chain.BlockRef{Number: 1, Hash: chain.Hash{1}}}); err != nil {
		t.Fatal(err)
	}
	if err := signers.CallOff(t.Context(), d.Fence.Signer, 0, "bob", "x"); !pg.Refused(err) ||
		!strings.Contains(err.Error(), "is in a block") {
		t.Errorf("called off what was mined: %v", err)
	}
	if got := d.events(t); !strings.HasPrefix(got, "called_off nonce 0, attempt 1 of ") ||
		!strings.Contains(got, ": called off by alice: a ") || strings.Contains(got, "bob") {
		t.Errorf("recorded %s", got)
	}
}

func (d holder) events(t *testing.T) (all string) {
	t.Helper()
	err := connect(t, d.Address).QueryRow(t.Context(),
		`SELECT coalesce(string_agg(what || ' ' || detail, '; ' ORDER BY id), '') FROM keeper.signer_event
			WHERE what IN ('paused', 'resumed', 'called_off')`).Scan(&all)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A pause that only a resync ends is not lifted by a resume: the key is in other hands, or the database is not what it
// was.
func TestResumeIsRefusedWhereOnlyAResyncHelps(t *testing.T) {
	t.Run("a stranger's transaction", func(t *testing.T) {
		d := newHolder(t, 1)
		d.MustClaim(t, d.Intents[0], 0, 0)
		if _, err := txstore.NewSigners(d.DB).Pause(t.Context(), d.Fence.Signer, "an earlier reason"); err != nil {
			t.Fatal(err)
		}
		foreign := txm.Ending{Verdict: txm.Verdict{Outcome: job.Foreign, Reason: "taken"}}
		if err := txstore.NewIntents(d.DB).NonceLost(t.Context(), d.Fence, d.Intents[0], foreign); err != nil {
			t.Fatal(err)
		}
		if _, err := txstore.NewSigners(d.DB).Resume(t.Context(), d.Fence.Signer); !pg.Refused(err) ||
			!strings.Contains(err.Error(), "keeperctl signer resync 0xaa") {
			t.Errorf("resumed: %v", err)
		}
		d.mustResync(t)
	})
	t.Run("a database gone back in time", func(t *testing.T) {
		d := newHolder(t, 0)
		if _, err := txstore.NewSigners(d.DB).Pause(t.Context(), d.Fence.Signer, "restored"); err != nil {
			t.Fatal(err)
		}
		if _, err := connect(t, d.Address).
			Exec(t.Context(), `UPDATE keeper.signer SET timeline = timeline + 1`); err != nil {
			t.Fatal(err)
		}
		if _, err := txstore.NewSigners(d.DB).Resume(t.Context(), d.Fence.Signer); !nonce.Behind(err) {
			t.Errorf("resumed: %v", err)
		}
		d.mustResync(t)
	})
}

// mustResync demands that a resync lifts the pause, and that a later one can then be lifted by hand.
func (d holder) mustResync(t *testing.T) {
	t.Helper()
	if d.status(t).Paused == "" {
		t.Error("the refused resume has lifted the pause")
	}
	if _, err := txstore.NewLeases(d.DB).
		Resync(t.Context(), d.Fence.Signer, nonce.ChainNonces{Finalized: 9, Latest: 9, Pending: 9}); err != nil {
		t.Fatal(err)
	}
	if got := d.status(t); got.Paused != "" || got.NextNonce != 9 {
		t.Errorf("after the resync %+v", got)
	}
	if _, err := txstore.NewSigners(d.DB).Pause(t.Context(), d.Fence.Signer, "later"); err != nil {
		t.Fatal(err)
	}
	if was, err := txstore.NewSigners(d.DB).Resume(t.Context(), d.Fence.Signer); err != nil || was != "later" {
		t.Errorf("resumed from %q, %v", was, err)
	}
}

func TestNumbersAreShownAsTheyStand(t *testing.T) {
	d := newHolder(t, 2)
	d.MustClaim(t, d.Intents[0], 0, 0)
	d.MustClaim(t, d.Intents[1], 1, 1)
	tx := connect(t, d.Address)
	for _, sql := range []string{
		`UPDATE keeper.signer_lease SET next_nonce = 4`,
		`INSERT INTO keeper.signer_nonce_allocation (signer, nonce, state, intent, token)
			SELECT signer, 3, 'RELEASED', id, 1 FROM keeper.tx_intent LIMIT 1`,
		`UPDATE keeper.signed_tx SET last_class = 'accepted' WHERE nonce = 1`,
	} {
		if _, err := tx.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	got, err := txstore.NewSigners(d.DB).Numbers(t.Context(), d.Fence.Signer, 1, 9)
	if err != nil || len(got) != 3 {
		t.Fatalf("listed %+v, %v", got, err)
	}
	for i := range got {
		if got[i].Age <= 0 {
			t.Errorf("nonce %d is %s old", got[i].Nonce, got[i].Age)
		}
		got[i].Age = 0
	}
	want := []txstore.NumberStatus{
		{Nonce: 1, State: nonce.Signed, JobID: job.OrderID(chain.Hash{2}, 1), Intent: txm.Signed, Attempts: 1,
			LastClass: "accepted"},
		{Nonce: 2},
		{Nonce: 3, State: nonce.Released, JobID: job.OrderID(chain.Hash{1}, 1), Intent: txm.Signed},
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("listed %+v, want %+v", got[i], want[i])
		}
	}
	if got, err := txstore.NewSigners(d.DB).Numbers(t.Context(), d.Fence.Signer, 0, 2); err != nil || len(got) != 2 {
		t.Errorf("listed %+v, %v", got, err)
	}
}

// NON-15: a signer is out while it is paused, while its holder says that it cannot sign, and when nobody works it.
func TestSignersAreOut(t *testing.T) {
	d := newHolder(t, 1)
	ctx, intents, signers := t.Context(), txstore.NewIntents(d.DB), txstore.NewSigners(d.DB)
	want := func(why string) {
		t.Helper()
		out, err := d.DB.OutSigners(ctx)
		must(t, err)
		if got := d.status(t).Out(); !strings.HasPrefix(got, why) || (got == "") != (len(out) == 0) {
			t.Errorf("out is %v, as %q; want %q", out, got, why)
		}
	}
	want("")
	must(t, intents.Unable(ctx, d.Fence, "its account is locked", time.Hour))
	want("its account is locked")
	must(t, intents.Unable(ctx, d.Fence, "", time.Hour))
	want("")
	must(t, intents.Unable(ctx, d.Fence, "believed no longer", 0))
	want("")
	_, err := signers.Pause(ctx, d.Fence.Signer, "being moved")
	must(t, err)
	want("paused: being moved")
	_, err = signers.Resume(ctx, d.Fence.Signer)
	must(t, err)
	want("")
	pgtest.Tamper(t, d.Address, `UPDATE keeper.signer_lease SET expires_at = clock_timestamp() + interval '1 minute',
		updated_at = clock_timestamp() - interval '20 seconds'`) // it is renewed at a third of its time
	want("")
	pgtest.Tamper(t, d.Address, `UPDATE keeper.signer_lease SET expires_at = clock_timestamp() + interval '1 minute',
		updated_at = clock_timestamp() - interval '40 seconds'`)
	want("no process that has its key works it, last " + t.Name() + ":")
	must(t, txstore.NewLeases(d.DB).Release(ctx, d.Fence))
	want("") // another one may be about to take it
	pgtest.Tamper(t, d.Address, `UPDATE keeper.signer_lease SET expires_at = '-infinity',
		updated_at = updated_at - interval '4 seconds'`)
	want("no process that has its key works it")
}
