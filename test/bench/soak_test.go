package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	// soakSamples is how many samples a soak takes, in even distances.
	soakSamples = 240
	// soakWarm is the share of it that is not judged: an hour of eight.
	soakWarm = 1.0 / 8
	// soakLate is how many times as long a soak takes at most as it would if the machine kept up. It ends then with the
	// blocks there are, and fails if they are less than soakLeast of what was planned.
	soakLate, soakLeast = 1.125, 0.75
)

// A whole keeper as processes under a multiple of the demo's trades, for as many blocks as a chain makes in the time
// that KEEPER_SOAK says. KEEPER_SOAK_SPEED has them made that many times as often. What grows after the warm-up fails
// it, unless a setting keeps it: that has to grow no faster in the second half than in the first. KEEPER_RESULTS names
// a directory for all samples.
func TestSoak(t *testing.T) {
	plan := soakPlanned(t)
	s := startSoak(t, plan)
	log := newSamples()
	log.bounded = plan.speed > 1
	began, first, made := time.Now(), soakHead(t, s), uint64(0)
	late := began.Add(time.Duration(float64(plan.clock()) * soakLate))
	for n := uint64(0); n <= soakSamples && time.Now().Before(late); n++ {
		made = s.awaitBlock(t, first+n*plan.blocks()/soakSamples, late) - first
		log.begin(time.Duration(made) * blockTime)
		takeSamples(t, log, s, time.Since(began))
		if n > 0 && n%(soakSamples/12) == 0 {
			t.Log(log.landed(s.demand))
		}
	}
	t.Logf("%d blocks of %d, %s of %s: %s", made, plan.blocks(), log.at.Round(time.Minute), plan.length,
		log.landed(s.demand))
	if float64(made) < soakLeast*float64(plan.blocks()) {
		t.Errorf("%d blocks of %d were made in time", made, plan.blocks())
	}
	if dir := os.Getenv("KEEPER_RESULTS"); dir != "" {
		writeCSV(t, filepath.Join(dir, "soak.csv"), log.rows())
	}
	for _, p := range s.Keepers[0].Processes {
		if p.Restarts() > 0 {
			t.Errorf("%s ended %d times", p.Name, p.Restarts())
		}
	}
	for _, v := range log.judge(plan.warm()) {
		if t.Log(v.text); v.bad {
			t.Errorf("%s %s grows", v.what.name, v.what.measure)
		}
	}
}

// takeSamples samples the processes, the topics, the tables and the work.
func takeSamples(t *testing.T, log *samples, s *soak, took time.Duration) {
	t.Helper()
	for _, p := range s.Keepers[0].Processes {
		m := p.Metrics(t.Context())
		if m == nil {
			t.Fatalf("%s does not show its metrics: %s", p.Name, p.Tail(3))
		}
		log.add("process", p.Name, "resident_bytes", m["process_resident_memory_bytes"])
		log.add("process", p.Name, "goroutines", m["go_goroutines"])
		log.add("process", p.Name, "descriptors", m["process_open_fds"])
		s.work(log, p.Name, m)
	}
	log.add("work", "clock", "seconds", took.Seconds())
	private, servers := databaseMemory()
	log.add("process", "postgres", "private_bytes", float64(private))
	log.add("process", "postgres", "servers", float64(servers))
	s.broker.DropExpired()
	topics, err := topicSizes(s.topics)
	if err != nil {
		t.Fatal(err)
	}
	for topic, size := range topics {
		log.add("topic", topic, "bytes", float64(size))
	}
	if err := tableSizes(t.Context(), s.db, log); err != nil {
		t.Fatal(err)
	}
}

// work samples what was done, by the metrics of a process.
func (s *soak) work(log *samples, process string, m map[string]float64) {
	for _, one := range []struct{ process, metric, name, measure string }{
		{"scanner", "scanner_head_number", "chain", "head"},
		{"statevm", "statevm_events_total", "events", "applied"},
		{"planner", "planner_block", "planner", "block"},
		{"planner", "planner_open", "planner", "open"}, // positions, orders and requests: what it has to remember
		{"sender", "sender_jobs_total", "jobs", "ended"},
		{"sender", "retention_failures_total", "archive", "failures"},
	} {
		if one.process == process {
			log.add("work", one.name, one.measure, m[one.metric])
		}
	}
}

// tableSizes samples the tables with their indexes, and how far the state is.
func tableSizes(ctx context.Context, db *pgx.Conn, log *samples) error {
	rows, err := db.Query(ctx, `SELECT s.schemaname || '.' || s.relname, pg_total_relation_size(s.relid)
		FROM pg_stat_user_tables s WHERE s.schemaname = 'keeper' OR s.schemaname LIKE 'state_g%'`)
	if err != nil {
		return fmt.Errorf("asking for the tables' sizes: %w", err)
	}
	var name string
	var size int64
	if _, err := pgx.ForEachRow(rows, []any{&name, &size}, func() error {
		log.add("table", name, "bytes", float64(size))
		return nil
	}); err != nil {
		return fmt.Errorf("asking for the tables' sizes: %w", err)
	}
	var block int64
	if err := db.QueryRow(ctx, `SELECT coalesce(max(block), 0) FROM state_g1.kept_block`).Scan(&block); err != nil {
		return fmt.Errorf("asking how far the state is: %w", err)
	}
	log.add("work", "state", "block", float64(block))
	return nil
}

// awaitBlock waits until the chain has a block, or it is late, and returns the newest one.
func (s *soak) awaitBlock(t *testing.T, block uint64, late time.Time) (head uint64) {
	t.Helper()
	for {
		if head = soakHead(t, s); head >= block || time.Now().After(late) {
			return head
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case err := <-s.Failed():
			t.Fatal(err)
		}
	}
}

// soakHead is the newest block that the scanner knows of.
func soakHead(t *testing.T, s *soak) uint64 {
	t.Helper()
	p := s.Keepers[0].Process("scanner")
	m := p.Metrics(t.Context())
	if m == nil {
		t.Fatalf("the scanner does not show its metrics: %s", p.Tail(3))
	}
	return uint64(m["scanner_head_number"])
}
