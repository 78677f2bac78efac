package pg_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/delayed"
	"perpkeeper/pkg/delayed/delayedtest"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// DLY-1, DLY-3, DLY-5, DLY-6, DLY-7.
func TestDelayedConforms(t *testing.T) {
	delayedtest.Run(t, func(t *testing.T) delayedtest.Fixture {
		s := pgtest.DB(t).Delayed()
		return delayedtest.Fixture{
			Store: s, Add: s.Add, Cancel: s.Cancel, Retry: s.Retry,
			Jobs: func(t *testing.T) []delayed.Job { return everyJob(t, s) },
		}
	})
}

// everyJob reads all rows, those called off included, by id.
func everyJob(t *testing.T, s pg.Delayed) (all []delayed.Job) {
	t.Helper()
	const gap = 5 // a row that was there already costs a number
	for id, missing := int64(1), 0; missing < gap; id++ {
		j, known, err := s.Job(t.Context(), id)
		must(t, err)
		if !known {
			missing++
			continue
		}
		missing = 0
		all = append(all, j)
	}
	return all
}

func tryExecute(t *testing.T, url, sql string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer conn.Close(t.Context())
	_, err = conn.Exec(t.Context(), sql)
	return err
}

// DLY-1, DLY-9: rows that fell due while every process was down for a day are taken by the next scan, oldest first, and
// the delay is the true one.
func TestDownForADay(t *testing.T) {
	const jobs = 300
	url := pgtest.URL(t)
	db := open(t, url)
	var appointments []delayed.Appointment
	now := time.Now()
	for i := range jobs {
		due := now.Add(-24*time.Hour + time.Duration(i*7%jobs)*4*time.Minute)
		appointments = append(appointments, delayed.Appointment{Kind: "test", Key: fmt.Sprint(i), Payload: i,
			DueAt: due})
	}
	_, err := db.Delayed().Add(t.Context(), appointments...)
	must(t, err)
	var seen []time.Time
	var delay time.Duration
	cfg := delayed.DefaultConfig()
	cfg.Concurrency = 1
	registry := prometheus.NewRegistry()
	kinds := []delayed.Kind{kindOf("test", func(_ context.Context, _ delayed.Tx, j delayed.Job) (any, error) {
		seen = append(seen, j.DueAt)
		delay += j.ReadAt.Sub(j.DueAt)
		return nil, nil //nolint:nilnil // nil is the result of work that has none
	})}
	scanOnce(t, delayed.NewScanner(cfg, "tester", db.Delayed(), kinds, nil, delayed.NewMetrics(registry),
		zerolog.Nop()))
	if len(seen) != jobs || !slices.IsSortedFunc(seen, time.Time.Compare) {
		t.Errorf("%d of %d taken, sorted: %t", len(seen), jobs, slices.IsSortedFunc(seen, time.Time.Compare))
	}
	families, err := registry.Gather()
	must(t, err)
	count, sum := uint64(0), 0.0
	for _, f := range families {
		if f.GetName() == "delayed_delay_seconds" {
			count, sum = f.GetMetric()[0].GetHistogram().GetSampleCount(), f.GetMetric()[0].GetHistogram().
				GetSampleSum()
		}
	}
	if diff := sum - delay.Seconds(); count != jobs || diff > 0.001 || diff < -0.001 {
		t.Errorf("measured %d delays of %v s, want %v s", count, sum, delay.Seconds())
	}
	late := query[float64](t, url, "SELECT min(extract(epoch FROM finished_at - due_at)) FROM keeper.delayed_job")
	if mean := sum / jobs; mean < late || mean > 86_500 {
		t.Errorf("the mean delay is %v s, the least one in the table %v s", mean, late)
	}
}

// DLY-8: somebody who asks for a scan wakes whoever waits for one, and hears what came of it.
func TestBell(t *testing.T) {
	db := pgtest.DB(t)
	s := db.Delayed()
	bell := s.Bell()
	defer bell.Close()
	must(t, bell.Wait(t.Context(), time.Minute)) // connects
	rung := make(chan error, 1)
	go func() { rung <- bell.Wait(t.Context(), time.Minute) }()
	at, err := s.Ring(t.Context())
	must(t, err)
	must(t, <-rung)
	if scans, err := s.Scans(t.Context(), at); err != nil || len(scans) != 0 {
		t.Errorf("nobody has scanned: %+v, %v", scans, err)
	}
	scanOnce(t, scannerOf(db, delayed.DefaultConfig()))
	scans, err := s.Scans(t.Context(), at)
	must(t, err)
	if len(scans) != 1 || scans[0].Scanner != "tester" || scans[0].Error != "" {
		t.Errorf("the scan was noted as %+v", scans)
	}
}

func TestList(t *testing.T) {
	s := pgtest.DB(t).Delayed()
	now := time.Now()
	_, err := s.Add(t.Context(), delayed.Appointment{Kind: "a", Key: "1", DueAt: now},
		delayed.Appointment{Kind: "b", Key: "1", DueAt: now.Add(time.Hour)},
		delayed.Appointment{Kind: "a", Key: "2", DueAt: now.Add(2 * time.Hour)})
	must(t, err)
	for _, test := range []struct {
		status delayed.Status
		kind   string
		limit  int
		want   string
	}{
		{"", "", 10, "[a2 b1 a1]"}, {"", "", 1, "[a2]"}, {delayed.Pending, "a", 10, "[a2 a1]"},
		{delayed.Parked, "", 10, "[]"},
	} {
		jobs, err := s.List(t.Context(), test.status, test.kind, test.limit)
		must(t, err)
		got := []string{}
		for _, j := range jobs {
			got = append(got, j.Kind+j.Key)
		}
		if fmt.Sprint(got) != test.want {
			t.Errorf("%+v lists %v", test, got)
		}
	}
}
