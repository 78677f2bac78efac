package txstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/pg/txstore/txstoretest"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// goBack is what a database's clock that goes back by an hour makes of the leases.
func goBack(t *testing.T, address string) {
	t.Helper()
	_, err := connect(t, address).Exec(t.Context(), `UPDATE keeper.signer_lease SET
		acquired_at = acquired_at + interval '1 hour', expires_at = expires_at + interval '1 hour',
		updated_at = updated_at + interval '1 hour'`)
	if err != nil {
		t.Fatal(err)
	}
}

// NON-5: a lease is judged by the database's clock. Where that has gone back, whoever waits for the lease is told, and
// a holder that lives ends it with its next renewal.
func TestClockThatWentBackIsTold(t *testing.T) {
	address := pgtest.URL(t)
	db := txstoretest.Open(t, address, "sender")
	signer := txstoretest.Register(t, db)
	f := txstoretest.Acquire(t, db, signer, time.Minute)
	waiting := func() *lease.HeldError {
		t.Helper()
		_, err := txstore.NewLeases(db).Acquire(t.Context(), signer, lease.NewOwner("heir"), time.Minute)
		held, is := errors.AsType[*lease.HeldError](err)
		if !is {
			t.Fatalf("got %v", err)
		}
		return held
	}
	if held := waiting(); held.ClockWentBack() || strings.Contains(held.Error(), "clock") {
		t.Errorf("nothing has happened: %v", held)
	}
	goBack(t, address)
	if held := waiting(); !held.ClockWentBack() || held.Ahead > time.Hour || held.Ahead < time.Hour-time.Minute ||
		!strings.Contains(held.Error(), "keeperctl lease break "+signer.Hex()) {
		t.Errorf("ahead by %s: %v", held.Ahead, held)
	}
	if all, err := txstore.NewSigners(db).List(t.Context()); err != nil || !lease.ClockWentBack(all[0].LeaseAhead) {
		t.Errorf("operators see %+v, %v", all, err)
	}
	if err := txstore.NewLeases(db).Renew(t.Context(), f, time.Minute); err != nil {
		t.Fatal(err)
	}
	if held := waiting(); held.ClockWentBack() {
		t.Errorf("after a renewal: %v", held)
	}
}

// NON-7: a broken lease is free at once, and its former holder, which has not noticed, writes nothing.
func TestBrokenLeaseFencesItsHolder(t *testing.T) {
	address := pgtest.URL(t)
	db := txstoretest.Open(t, address, "sender")
	signer := txstoretest.Register(t, db)
	f := txstoretest.Acquire(t, db, signer, time.Minute)
	queue, leases := txstore.NewIntents(db), txstore.NewLeases(db)
	if _, err := leases.TakeOver(t.Context(), f, 5); err != nil {
		t.Fatal(err)
	}
	goBack(t, address)
	seen, err := leases.Status(t.Context(), signer)
	if err != nil || seen.Token != f.Token || seen.Owner != f.Owner || seen.Left < 59*time.Minute ||
		!lease.ClockWentBack(-seen.Written) {
		t.Fatalf("%+v, %v", seen, err)
	}
	token, err := leases.Break(t.Context(), seen, "ann")
	if err != nil || token != f.Token+1 {
		t.Fatalf("token %d, %v", token, err)
	}
	_, takes := leases.TakeOver(t.Context(), f, 5)
	for what, err := range map[string]error{
		"renew": leases.Renew(t.Context(), f, time.Minute), "take over": takes,
		"skip": queue.Skip(t.Context(), f, 1, txm.Ending{}), "mined": queue.MinedBelow(t.Context(), f, 5),
		"note": queue.Noted(t.Context(), f, chain.Hash{1}, "accepted", true), "pause": queue.Pause(t.Context(), f, "x"),
	} {
		if !lease.Lost(err) {
			t.Errorf("%s under the broken lease: %v", what, err)
		}
	}
	if _, err := leases.Break(t.Context(), seen, "ann"); !pg.Refused(err) {
		t.Errorf("broken twice: %v", err)
	}
	if heir := txstoretest.Acquire(t, db, signer, time.Minute); heir.Token != token+1 {
		t.Errorf("the heir has token %d", heir.Token)
	}
	if _, err := leases.Break(t.Context(), seen, "ann"); !pg.Refused(err) {
		t.Errorf("an heir's lease was broken for the one before: %v", err)
	}
	var detail string
	err = connect(t, address).QueryRow(t.Context(), `SELECT detail FROM keeper.signer_event
		WHERE what = 'lease_broken' AND token = $1`, token).Scan(&detail)
	if err != nil || !strings.Contains(detail, "by ann") {
		t.Errorf("recorded is %q, %v", detail, err)
	}
}
