// Package delayedtest is the test suite that every store of delayed jobs must pass.
//
//nolint:thelper // what it runs are tests: the line that failed is to be theirs; the helpers among them do call Helper
package delayedtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"perpkeeper/pkg/delayed"
)

// Fixture is a store without rows, and the access that a test needs beyond its interface.
type Fixture struct {
	Store delayed.Store
	// Add stores jobs that are not there yet and returns how many were new.
	Add func(ctx context.Context, appointments ...delayed.Appointment) (int, error)
	// Jobs returns every row by id.
	Jobs func(t *testing.T) []delayed.Job
	// Cancel calls a job off, Retry takes it up again, as an operator does.
	Cancel, Retry func(ctx context.Context, id int64) (bool, error)
}

// Run puts a store through the suite.
func Run(t *testing.T, setup func(t *testing.T) Fixture) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Fixture){
		"a key is one job":                      oneKey,
		"what is due comes oldest first":        order,
		"done is done":                          done,
		"a failure is kept and waits":           failure,
		"parked until somebody acts":            parked,
		"an old sighting is not taken":          moved,
		"a locked row is left alone":            locked,
		"a crowd does every row once":           crowd,
		"an attempt that is cut leaves no mark": cut,
		"the outlook":                           outlook,
	} {
		t.Run(name, func(t *testing.T) { test(t, setup(t)) })
	}
}

var errBroken = errors.New("broken \x00 in \\ the middle")

const kind = "test"

// now is the store's time.
func (b Fixture) now(t *testing.T) time.Time {
	t.Helper()
	page, err := b.Store.Due(t.Context(), time.Time{}, delayed.Place{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	return page.Until
}

// add stores one job for each delay, counted from now; negative ones are overdue.
func (b Fixture) add(t *testing.T, delays ...time.Duration) {
	t.Helper()
	now := b.now(t)
	appointments := make([]delayed.Appointment, len(delays))
	for i, d := range delays {
		appointments[i] = delayed.Appointment{Kind: kind, Key: fmt.Sprint(i), Payload: map[string]int{"n": i},
			DueAt: now.Add(d)}
	}
	if n, err := b.Add(t.Context(), appointments...); err != nil || n != len(delays) {
		t.Fatalf("added %d of %d: %v", n, len(delays), err)
	}
}

// due lists everything in pages of two.
func (b Fixture) due(t *testing.T) (all []delayed.Place) {
	t.Helper()
	var until time.Time
	var after delayed.Place
	for {
		page, err := b.Store.Due(t.Context(), until, after, 2)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.Rows) == 0 {
			return all
		}
		if len(page.Rows) > 2 || !until.IsZero() && !page.Until.Equal(until) {
			t.Fatalf("asked for 2 rows until %s, got %+v", until, page)
		}
		all = append(all, page.Rows...)
		until, after = page.Until, page.Rows[len(page.Rows)-1]
	}
}

func (b Fixture) work(t *testing.T, row delayed.Place, r delayed.Ruling) (taken bool) {
	t.Helper()
	taken, err := b.Store.Work(t.Context(), row,
		func(context.Context, delayed.Tx, delayed.Job) delayed.Ruling { return r })
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

func oneKey(t *testing.T, b Fixture) {
	b.add(t, -time.Hour)
	o := delayed.Appointment{Kind: kind, Key: "0", Payload: "other", DueAt: time.Now()}
	if n, err := b.Add(t.Context(), o); n != 0 || err != nil {
		t.Errorf("added %d, %v", n, err)
	}
	o.Kind = "other"
	if n, err := b.Add(t.Context(), o); n != 1 || err != nil {
		t.Errorf("the same key of another kind: added %d, %v", n, err)
	}
	if jobs := b.Jobs(t); len(jobs) != 2 || string(jobs[0].Payload) == `"other"` {
		t.Errorf("stored %+v", jobs)
	}
}

// DLY-3.
func order(t *testing.T, b Fixture) {
	b.add(t, -3*time.Hour, time.Hour, -24*time.Hour, -time.Hour, -3*time.Hour, -2*time.Hour)
	if called, err := b.Cancel(t.Context(), b.Jobs(t)[3].ID); !called || err != nil {
		t.Fatalf("calling off: %t, %v", called, err)
	}
	var keys []string
	jobs := b.Jobs(t)
	for _, row := range b.due(t) {
		i := slices.IndexFunc(jobs, func(j delayed.Job) bool { return j.ID == row.ID })
		keys = append(keys, jobs[i].Key)
	}
	if want := []string{"2", "0", "4", "5"}; !slices.Equal(keys, want) {
		t.Errorf("due %v, want %v", keys, want)
	}
}

func done(t *testing.T, b Fixture) {
	b.add(t, -time.Hour)
	row := b.due(t)[0]
	taken, err := b.Store.Work(t.Context(), row, func(_ context.Context, tx delayed.Tx, j delayed.Job) delayed.Ruling {
		var payload struct{ N int }
		if err := j.Read(&payload); err != nil || tx == nil || j.Kind != kind || j.Key != "0" ||
			j.Status != delayed.Pending || j.Attempts != 0 {
			t.Errorf("handed %+v, %v", j, err)
		}
		if late := j.ReadAt.Sub(j.DueAt); late < time.Hour || late > 2*time.Hour || !j.DueAt.Equal(j.NextAt) {
			t.Errorf("handed %s after its time: %+v", late, j)
		}
		return delayed.Ruling{Status: delayed.Done, Result: json.RawMessage(`{"a": 1}`)}
	})
	if !taken || err != nil {
		t.Fatalf("taken %t, %v", taken, err)
	}
	if j := b.Jobs(t)[0]; j.Status != delayed.Done || j.FinishedAt.IsZero() || string(j.Result) != `{"a": 1}` ||
		j.LastError != "" || j.Version != row.Version+1 {
		t.Errorf("left %+v", j)
	}
	if b.work(t, row, delayed.Ruling{Status: delayed.Done}) || len(b.due(t)) != 0 {
		t.Error("it can be done again")
	}
	if taken, err := b.Retry(t.Context(), row.ID); taken || err != nil {
		t.Errorf("an operator did it again: %t, %v", taken, err)
	}
}

// DLY-6.
func failure(t *testing.T, b Fixture) {
	b.add(t, -time.Hour)
	row := b.due(t)[0]
	if !b.work(t, row, delayed.Ruling{Status: delayed.Pending, Err: errBroken, Again: time.Hour}) {
		t.Fatal("not taken")
	}
	j := b.Jobs(t)[0]
	if j.Status != delayed.Pending || j.Attempts != 1 || j.LastError == "" || !j.FinishedAt.IsZero() ||
		!j.DueAt.Equal(row.NextAt) {
		t.Errorf("left %+v", j)
	}
	if wait := j.NextAt.Sub(b.now(t)); wait < 50*time.Minute || wait > time.Hour || len(b.due(t)) != 0 {
		t.Errorf("tried again in %s", wait)
	}
	if b.work(t, delayed.Place{ID: j.ID, Version: j.Version, NextAt: j.NextAt}, delayed.Ruling{Status: delayed.Done}) {
		t.Error("taken before its time")
	}
}

// DLY-6, DLY-7.
func parked(t *testing.T, b Fixture) {
	b.add(t, -time.Hour)
	b.work(t, b.due(t)[0], delayed.Ruling{Status: delayed.Parked, Err: errBroken})
	if j := b.Jobs(t)[0]; j.Status != delayed.Parked || j.FinishedAt.IsZero() || j.LastError == "" ||
		len(b.due(t)) != 0 {
		t.Errorf("left %+v", j)
	}
	if taken, err := b.Retry(t.Context(), b.Jobs(t)[0].ID); !taken || err != nil {
		t.Fatalf("taking it up: %t, %v", taken, err)
	}
	if j := b.Jobs(t)[0]; j.Status != delayed.Pending || j.Attempts != 0 || j.LastError == "" || len(b.due(t)) != 1 {
		t.Errorf("taken up as %+v", j)
	}
}

// DLY-5: version, status and due time are compared again.
func moved(t *testing.T, b Fixture) {
	b.add(t, -time.Hour)
	old := b.due(t)[0]
	if taken, err := b.Retry(t.Context(), old.ID); !taken || err != nil {
		t.Fatal(err)
	}
	if b.work(t, old, delayed.Ruling{Status: delayed.Done}) {
		t.Error("taken under an old version")
	}
	fresh := b.due(t)[0]
	if called, err := b.Cancel(t.Context(), old.ID); !called || err != nil {
		t.Fatal(err)
	}
	if b.work(t, fresh, delayed.Ruling{Status: delayed.Done}) || b.Jobs(t)[0].Status != delayed.Pending {
		t.Error("taken though it was called off")
	}
}

func locked(t *testing.T, b Fixture) {
	b.add(t, -time.Hour)
	row := b.due(t)[0]
	_, err := b.Store.Work(t.Context(), row, func(context.Context, delayed.Tx, delayed.Job) delayed.Ruling {
		if b.work(t, row, delayed.Ruling{Status: delayed.Done}) {
			t.Error("two work on one row")
		}
		return delayed.Ruling{Status: delayed.Done, Result: json.RawMessage(`1`)}
	})
	if err != nil || string(b.Jobs(t)[0].Result) != "1" {
		t.Errorf("%v, left %+v", err, b.Jobs(t)[0])
	}
}

func crowd(t *testing.T, b Fixture) {
	const rows, workers = 60, 6
	delays := make([]time.Duration, rows)
	for i := range delays {
		delays[i] = -time.Hour
	}
	b.add(t, delays...)
	places := b.due(t)
	var mu sync.Mutex
	times := map[int64]int{}
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for _, row := range places {
				taken, err := b.Store.Work(t.Context(), row,
					func(context.Context, delayed.Tx, delayed.Job) delayed.Ruling {
						mu.Lock()
						defer mu.Unlock()
						times[row.ID]++
						return delayed.Ruling{Status: delayed.Done}
					})
				if err != nil {
					t.Errorf("row %d: taken %t, %v", row.ID, taken, err)
				}
			}
		})
	}
	all.Wait()
	for _, row := range places {
		if times[row.ID] != 1 {
			t.Errorf("row %d was done %d times", row.ID, times[row.ID])
		}
	}
}

func cut(t *testing.T, b Fixture) {
	b.add(t, -time.Hour)
	before := b.Jobs(t)[0]
	ctx, cancel := context.WithCancel(t.Context())
	taken, err := b.Store.Work(ctx, b.due(t)[0], func(ctx context.Context, _ delayed.Tx, _ delayed.Job) delayed.Ruling {
		cancel()
		return delayed.Ruling{Status: delayed.Pending, Err: ctx.Err(), Again: time.Hour}
	})
	if taken || err == nil {
		t.Errorf("taken %t, %v", taken, err)
	}
	after := b.Jobs(t)[0]
	after.ReadAt = before.ReadAt
	if fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%+v became %+v", before, after)
	}
}

// DLY-9.
func outlook(t *testing.T, b Fixture) {
	end := func() delayed.Outlook {
		t.Helper()
		o, err := b.Store.Close(t.Context(), "tester", delayed.Summary{Err: errBroken})
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	if o := end(); o.Next >= 0 || o.Late != 0 || len(o.Parked) != 0 {
		t.Errorf("of nothing: %+v", o)
	}
	b.add(t, time.Hour, 2*time.Hour)
	if o := end(); o.Next < 50*time.Minute || o.Next > time.Hour || o.Late != 0 {
		t.Errorf("of what comes in an hour: %+v", o)
	}
	now := b.now(t)
	for _, key := range []string{"x", "y"} {
		if _, err := b.Add(t.Context(), delayed.Appointment{Kind: kind, Key: key, Payload: nil,
			DueAt: now.Add(-time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	b.work(t, b.due(t)[0], delayed.Ruling{Status: delayed.Parked, Err: errBroken})
	if o := end(); o.Next != 0 || o.Late < time.Hour || o.Late > 2*time.Hour || o.Parked[kind] != 1 {
		t.Errorf("of one that is late and one that is parked: %+v", o)
	}
}
