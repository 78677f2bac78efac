package txstore_test

import (
	"slices"
	"testing"
	"time"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/pg/txstore/txstoretest"
	"perpkeeper/pkg/risk/checklog"
)

// What checks have said comes back to the letter, of the attempts that are asked for, until it is old; the sender's
// role may write and drop it.
func TestChecksComeBack(t *testing.T) {
	address := pgtest.URL(t)
	if err := pgtest.Grant(t.Context(), txstoretest.Open(t, address, "owner")); err != nil {
		t.Fatal(err)
	}
	log := txstore.NewCheckLog(pgtest.OpenAs(t, pg.RoleSender, address))
	now := time.Now().Truncate(time.Microsecond)
	all := []checklog.Entry{
		{Intent: 2, At: now, Check: checklog.Call, Verdict: "proceed", Detail: "the call passes", By: "https://a/",
			Block: 9},
		{Intent: 1, At: now, Check: checklog.Pending, Verdict: "waiting", Detail: "a\x00b\x1b[2J\xff", By: "a\x00",
			Block: 8},
		{Intent: 2, At: now, Check: checklog.Gate, Verdict: "closed", Detail: "no head"},
		{Intent: 2, At: now.Add(-time.Hour), Check: checklog.Call, Verdict: "reverted"},
		{Intent: 3, At: now, Check: checklog.Turn, Verdict: "deferred"},
	}
	if err := log.Save(t.Context(), all); err != nil {
		t.Fatal(err)
	}
	same := func(a, b checklog.Entry) bool {
		at := a.At.Equal(b.At)
		a.At, b.At = time.Time{}, time.Time{}
		return at && a == b
	}
	want := []checklog.Entry{all[3], all[2], all[1], all[0]}
	if got, err := log.Of(t.Context(), []int64{1, 2}); err != nil || !slices.EqualFunc(got, want, same) {
		t.Errorf("read %+v, %v; want %+v", got, err, want)
	}
	if err := log.Prune(t.Context(), now.Add(-time.Minute)); err != nil {
		t.Fatal(err)
	}
	if got, err := log.Of(t.Context(), []int64{1, 2}); err != nil || !slices.EqualFunc(got, want[1:], same) {
		t.Errorf("after dropping what is old: %+v, %v", got, err)
	}
}
