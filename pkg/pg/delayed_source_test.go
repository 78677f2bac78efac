package pg_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg/pgtest"
)

func feed(t *testing.T, s delayed.Source, want int) {
	t.Helper()
	if n, err := s.Feed(t.Context()); err != nil || n != want {
		t.Errorf("%s: added %d, %v; want %d", s.Name, n, err, want)
	}
}

// DLY-10: what is open and expires is noticed once, with the venue's own patience, and looked at when it is over.
func TestExpiries(t *testing.T) {
	db := pgtest.DB(t)
	now := uint64(time.Now().Unix())
	key := perp.DataStoreKey("REQUEST_EXPIRATION_TIME")
	open := func(n uint64, kind perp.OrderType, status perp.Status, updated uint64) perp.Order {
		o := order(n, status)
		o.OrderType, o.UpdatedAtTime, o.Birth = kind, chain.U64(updated), perp.Stamp{TxHash: number(1000 + n)}
		return o
	}
	request := perp.Request{Kind: perp.Deposit, Key: number(9), Account: chain.Address{9},
		UpdatedAtTime: chain.U64(now - 200), Status: perp.Created}
	done := request
	done.Key, done.Status = number(10), perp.Executed
	p := claim(t, db, 0, 1)
	first := follow(ground, open(1, perp.MarketIncrease, perp.Created, now-250),
		open(2, perp.LimitIncrease, perp.Created, 0),
		open(3, perp.MarketSwap, perp.Executed, 0), request, done,
		perp.Parameter{Key: key, Value: chain.U64(240).Bytes32()})
	commit(t, p, first)
	s := db.Delayed()
	feed(t, s.Expiries(), 2)
	feed(t, s.Expiries(), 0)
	jobs := everyJob(t, s)
	byWhat := map[string]delayed.Job{}
	for _, j := range jobs {
		var e delayed.Expiring
		must(t, j.Read(&e))
		byWhat[e.What] = j
	}
	if got := byWhat["order"]; !got.DueAt.Equal(time.Unix(int64(now-10), 0)) || got.Key != number(1).
		Hex()+"@"+number(1001).Hex() {
		t.Errorf("the order's expiry is %+v", got)
	}
	if got := byWhat["deposit"]; !got.DueAt.Equal(time.Unix(int64(now+40), 0)) {
		t.Errorf("the deposit's expiry is %+v", got)
	}
	scanOnce(t, scannerOf(db, delayed.DefaultConfig(), delayed.Expiries{Log: zerolog.Nop()}))
	j, _, err := s.Job(t.Context(), byWhat["order"].ID)
	must(t, err)
	if j.Status != delayed.Done || !strings.Contains(string(j.Result), `"expired"`) {
		t.Errorf("looked at: %+v", j)
	}
}

// DLY-10: a database whose clock was ahead, and is right again, goes on as if it had never been: no report of a day to
// come, none of a day that was not over, and nothing that failed waits for the time of that clock.
func TestReportsGoOnAfterTheClockWasAhead(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	s := db.Delayed()
	feed(t, s.Reports(), 1)
	today := everyJob(t, s)[0].Key
	execute(t, url, `UPDATE keeper.delayed_job SET key = to_char(key::date - 2, 'YYYY-MM-DD')`)
	feed(t, s.Reports(), 2)
	execute(t, url, `INSERT INTO keeper.delayed_job (kind, key, payload, due_at, next_at, attempts)
		VALUES ('commission_release', 'a', '{}', clock_timestamp(), clock_timestamp() + interval '30 days', 1)`)
	// 30 days ahead: yesterday was reported right, today too early, the days after it as if they were over
	execute(t, url, `UPDATE keeper.delayed_job SET status = 'done', finished_at = clock_timestamp() + interval '30 days'
		WHERE key = $1`, today)
	execute(t, url, `INSERT INTO keeper.delayed_job (kind, key, payload, due_at, next_at, status, finished_at)
		SELECT kind, to_char(key::date + n, 'YYYY-MM-DD'), '{}', due_at, next_at, 'done', clock_timestamp()
		FROM keeper.delayed_job, generate_series(1, 30) n WHERE key = $1`, today)
	feed(t, s.Reports(), 0)
	for _, j := range everyJob(t, s) {
		if j.Key > today && j.Kind == delayed.DailyReport || j.Status != delayed.Pending || j.NextAt != j.DueAt {
			t.Errorf("left over: %s of %s, %s, due %s, again %s", j.Kind, j.Key, j.Status, j.DueAt, j.NextAt)
		}
	}
	execute(t, url, `DELETE FROM keeper.delayed_job WHERE key = $1`, today)
	feed(t, s.Reports(), 1)
}

// DLY-10: every day has a report, also those without a planner.
func TestDailyReports(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	s := db.Delayed()
	feed(t, s.Reports(), 1)
	feed(t, s.Reports(), 0)
	today := time.Now().UTC().Truncate(24 * time.Hour)
	j := everyJob(t, s)[0]
	if j.Key != today.Format(time.DateOnly) || !j.DueAt.Equal(today.Add(24*time.Hour)) {
		t.Fatalf("today's report is %+v", j)
	}
	execute(t, url, `UPDATE keeper.delayed_job SET key = to_char(key::date - 3, 'YYYY-MM-DD')`)
	feed(t, s.Reports(), 3)
	if jobs := everyJob(t, s); len(jobs) != 4 || jobs[3].Key != today.Format(time.DateOnly) {
		t.Errorf("%d reports, the last one %+v", len(jobs), jobs[len(jobs)-1])
	}

	blocks, p := paid(t, db, 1)
	finalize(t, p, blocks[0])
	book(t, db, 3)
	execute(t, url, `UPDATE keeper.delayed_job SET next_at = clock_timestamp() - interval '1 hour' WHERE key = $1`,
		today.Format(time.DateOnly))
	scanOnce(t, scannerOf(db, delayed.DefaultConfig(), delayed.Reports{Log: zerolog.Nop()}))
	for _, j := range everyJob(t, s) {
		if j.Key != today.Format(time.DateOnly) {
			continue
		}
		var day delayed.Day
		must(t, json.Unmarshal(j.Result, &day))
		if fees := day.Fees["ann"]; day.Day != j.Key || fees.Count != 2 || fees.Wei != chain.U64(300) {
			t.Errorf("today brought %+v", day)
		}
	}
}
