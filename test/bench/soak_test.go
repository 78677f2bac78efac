package bench

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"perpkeeper/services/demo"
	"perpkeeper/test/programs"
)

const (
	// soakLoad is how many times the demo's trades a soak has, unless KEEPER_SOAK_LOAD says otherwise.
	soakLoad = 20
	// soakSamples is how many samples it takes, in even distances.
	soakSamples = 240
	// soakWarm is the share of it that is not judged: an hour of eight.
	soakWarm = 1.0 / 8
	// leastWarm is how long is not judged at least: a planner keeps prices of five minutes, and statevm undo rows of a
	// thousand blocks.
	leastWarm = 8 * time.Minute
)

// A whole keeper as processes under twenty times the demo's load, for as long as KEEPER_SOAK says: the
// hours are those of a clock, nothing is played faster. What grows after the warm-up fails it, unless a setting keeps
// it: that has to grow no faster in the second half than in the first. KEEPER_RESULTS names a directory for all
// samples.
func TestSoak(t *testing.T) {
	length, err := time.ParseDuration(os.Getenv("KEEPER_SOAK"))
	if os.Getenv("KEEPER_SOAK") == "" {
		t.Skip("takes hours: make soak, or set KEEPER_SOAK to its length, as 8h")
	}
	if err != nil || length < 2*leastWarm {
		t.Fatalf("KEEPER_SOAK: %q is no duration of %s or more", os.Getenv("KEEPER_SOAK"), 2*leastWarm)
	}
	load := soakLoad
	if n, err := strconv.Atoi(os.Getenv("KEEPER_SOAK_LOAD")); err == nil {
		load = n
	}
	s := soakStack(t, load)
	db, err := pgx.Connect(t.Context(), s.Keepers[0].Postgres)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })

	log := newSamples()
	began := time.Now()
	warm := max(leastWarm, time.Duration(float64(length)*soakWarm))
	for n := range soakSamples + 1 {
		at := time.Duration(n) * length / soakSamples
		select {
		case <-time.After(time.Until(began.Add(at))):
		case err := <-s.Failed():
			t.Fatal(err)
		}
		log.begin(time.Since(began))
		takeSamples(t, log, s, db)
		if n%(soakSamples/12) == 0 {
			t.Log(log.line())
		}
	}
	if dir := os.Getenv("KEEPER_RESULTS"); dir != "" {
		writeCSV(t, filepath.Join(dir, "soak.csv"), log.rows())
	}
	for _, p := range s.Keepers[0].Processes {
		if p.Restarts() > 0 {
			t.Errorf("%s ended %d times", p.Name, p.Restarts())
		}
	}
	for _, v := range log.judge(warm) {
		if t.Log(v.text); v.bad {
			t.Errorf("%s %s grows", v.what.name, v.what.measure)
		}
	}
}

// soakStack is a keeper alone on the embedded parts, with that many times the demo's trades.
func soakStack(t *testing.T, load int) *demo.Stack {
	t.Helper()
	t.Setenv("GOGC", "") // as an operator runs it, whatever this test runs with
	folder, err := programs.Folder()
	if err != nil {
		t.Fatal(err)
	}
	settings := demo.DefaultConfig().Demo
	settings.Binaries, settings.Keepers, settings.Rate, settings.Dir = folder, 1, load*settings.Rate, t.TempDir()
	s := demo.New(settings, zerolog.New(zerolog.NewTestWriter(t)))
	s.Console = true
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	if err := s.Start(context.Background(), func(step string) { t.Log(step) }); err != nil {
		t.Fatal(err)
	}
	if err := s.AwaitReady(t.Context(), s.Keepers...); err != nil {
		t.Fatal(err)
	}
	return s
}

// takeSamples samples the processes, the topics and the tables.
func takeSamples(t *testing.T, log *samples, s *demo.Stack, db *pgx.Conn) {
	t.Helper()
	k := s.Keepers[0]
	for _, p := range k.Processes {
		m := p.Metrics(t.Context())
		if m == nil {
			t.Fatalf("%s does not show its metrics: %s", p.Name, p.Tail(3))
		}
		log.add("process", p.Name, "resident_bytes", m["process_resident_memory_bytes"])
		log.add("process", p.Name, "goroutines", m["go_goroutines"])
		log.add("process", p.Name, "descriptors", m["process_open_fds"])
	}
	private, servers := databaseMemory()
	log.add("process", "postgres", "private_bytes", float64(private))
	log.add("process", "postgres", "servers", float64(servers))
	topics, err := topicSizes(filepath.Join(s.Dir(), k.Name(), "kafka"))
	if err != nil {
		t.Fatal(err)
	}
	for topic, size := range topics {
		log.add("topic", topic, "bytes", float64(size))
	}
	if err := tableSizes(t.Context(), db, log); err != nil {
		t.Fatal(err)
	}
}

// tableSizes samples the tables with their indexes, and how much work was done.
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
	var mined, block int64
	if err := db.QueryRow(ctx, `SELECT (SELECT count(*) FROM keeper.tx_receipt),
		(SELECT coalesce(max(block), 0) FROM state_g1.kept_block)`).Scan(&mined, &block); err != nil {
		return fmt.Errorf("asking what was done: %w", err)
	}
	log.add("work", "transactions", "mined", float64(mined))
	log.add("work", "chain", "block", float64(block))
	return nil
}
