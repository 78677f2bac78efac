package pg_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg/pgtest"
)

// What was done long ago is deleted; not what waits, is parked or was done lately, no report, and not the expiry of
// what is still open, which would be noticed once more.
func TestForgetsWhatWasDoneLongAgo(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	s := db.Delayed()
	commit(t, claim(t, db, 0, 1), follow(ground, perp.Request{Kind: perp.Deposit, Key: number(9),
		Account: chain.Address{9}, UpdatedAtTime: chain.U64(1), Status: perp.Created}))
	feed(t, s.Expiries(), 1)
	stillOpen := everyJob(t, s)[0].Key
	stays := map[string]bool{stillOpen: true}
	for _, a := range []struct {
		appointment delayed.Appointment
		status      string
		ago         string
		stays       bool
	}{
		{delayed.Appointment{Kind: delayed.CommissionRelease, Key: "a"}, "done", "91 days", false},
		{delayed.Appointment{Kind: delayed.CommissionRelease, Key: "b"}, "done", "89 days", true},
		{delayed.Appointment{Kind: delayed.CommissionRelease, Key: "c"}, "pending", "", true},
		{delayed.Appointment{Kind: delayed.CommissionRelease, Key: "d"}, "parked", "91 days", true},
		{delayed.Appointment{Kind: delayed.Expiry, Key: "e", Payload: delayed.Expiring{Key: number(10)}}, "done",
			"91 days", false},
		{delayed.Appointment{Kind: delayed.DailyReport, Key: "2020-01-02"}, "done", "91 days", true},
	} {
		a.appointment.DueAt = time.Now()
		_, err := s.Add(t.Context(), a.appointment)
		must(t, err)
		execute(t, url, `UPDATE keeper.delayed_job SET status = $2, last_error = 'for the test',
			finished_at = clock_timestamp() - nullif($3, '')::interval WHERE key = $1`, a.appointment.Key, a.status,
			a.ago)
		if a.stays {
			stays[a.appointment.Key] = true
		}
	}
	execute(t, url, `UPDATE keeper.delayed_job SET status = 'done', finished_at = clock_timestamp() - interval '91 days'
		WHERE key = $1`, stillOpen)
	for _, want := range []int{2, 0} {
		if n, err := s.Forget(t.Context(), 90*24*time.Hour); n != want || err != nil {
			t.Errorf("deleted %d, %v; want %d", n, err, want)
		}
	}
	var left []string
	for _, j := range everyJob(t, s) {
		left = append(left, j.Key)
	}
	if want := slices.Sorted(maps.Keys(stays)); !slices.Equal(slices.Sorted(slices.Values(left)), want) {
		t.Errorf("left %v, want %v", left, want)
	}
	feed(t, s.Expiries(), 0)
}
