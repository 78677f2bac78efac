package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/test/rig"
)

// Beside Ponder, from the same node: how many events of a history become rows a second, and what that takes. Ours are
// scanner and statevm, which prove each block against its header and fold its events into the state; Ponder stores each
// event as a row. Both are counted from the start of their processes to the last event's row. `make bench-peers`;
// KEEPER_PONDER names the folder of the installed project.
func TestPonder(t *testing.T) {
	project := os.Getenv("KEEPER_PONDER")
	if project == "" {
		t.Skip("measures for minutes: make bench-peers")
	}
	for _, delay := range []time.Duration{0, 20 * time.Millisecond} {
		t.Run(delay.String(), func(t *testing.T) {
			ours := measureRoad(t, delay)
			theirs := measurePonder(t, delay, project)
			t.Logf("a node that answers after %s      events/s   CPU s per 1000 events   Postgres   node and broker",
				delay)
			for _, r := range []effort{ours, theirs} {
				t.Logf("%-34s %8.0f %23.3f %10.3f %17.3f", r.name, r.rate(), r.per1000(r.own), r.per1000(r.database),
					r.per1000(r.rest))
			}
			t.Logf("ours reads %.1f x as fast with %.2f x the CPU", ours.rate()/theirs.rate(),
				ours.per1000(ours.own)/theirs.per1000(theirs.own))
		})
	}
}

// peerLogs is how many logs the history has, KEEPER_LOGS or 63 000 in 3000 blocks.
func peerLogs() int {
	if n, err := strconv.Atoi(os.Getenv("KEEPER_LOGS")); err == nil {
		return n
	}
	return 63_000
}

// effort is what reading a history took.
type effort struct {
	name                string
	events              int
	took                time.Duration
	own, database, rest time.Duration // CPU of the processes, of Postgres, and of this process
}

func (e effort) rate() float64 { return float64(e.events) / e.took.Seconds() }

func (e effort) per1000(cpu time.Duration) float64 { return cpu.Seconds() * 1000 / float64(e.events) }

// newHistory starts a node that has all its blocks.
func newHistory(t *testing.T, delay time.Duration) *ledger {
	t.Helper()
	node := newLedger(t, peerLogs())
	node.mu.Lock()
	defer node.mu.Unlock()
	node.delay = delay
	node.grow(peerLogs())
	return node
}

// measureRoad reads a history by scanner and statevm.
func measureRoad(t *testing.T, delay time.Duration) effort {
	t.Helper()
	node, database := newHistory(t, delay), pgtest.URL(t)
	env := append(roadEnv(t, node, rig.Broker(t).Addr(), database), "GOGC=") // as an operator runs it
	prepareRoad(t, env)
	return measure(t, "scanner and statevm", node, database,
		fmt.Sprintf("SELECT min(block) >= %d FROM state_g1.stream_offset", node.venue.tip.Number),
		func() crew { return startRoad(t, env) })
}

// measurePonder reads a history by Ponder.
func measurePonder(t *testing.T, delay time.Duration, project string) effort {
	t.Helper()
	node, database := newHistory(t, delay), pgtest.URL(t)
	script := filepath.Join(t.TempDir(), "ponder.sh")
	command := "#!/bin/sh\ncd '" + project +
		"' && exec node node_modules/ponder/dist/esm/bin/ponder.js start --schema peer --port 0\n"
	if err := os.WriteFile(script, []byte(command), 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"DATABASE_URL=" + database, "NODE_URL=" + node.URL, "EMITTER=" + emitter.Hex(),
		"PONDER_TELEMETRY_DISABLED=true"}
	return measure(t, "Ponder", node, database,
		fmt.Sprintf("SELECT count(*) >= %d FROM peer.event", node.venue.logs), func() crew {
			return crew{start(t, filepath.Dir(script), filepath.Base(script), env)}
		})
}

// measure starts processes and waits until a query says that all is there.
func measure(t *testing.T, name string, node *ledger, database, done string, begin func() crew) effort {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	e := effort{name: name, events: node.venue.logs}
	began, rest, databases := time.Now(), ownCPU(), databaseCPU()
	run := begin()
	run.until(func() bool {
		var all bool
		if err := conn.QueryRow(t.Context(), done).Scan(&all); err != nil {
			all = false // its tables are not there yet
		}
		if time.Since(began) > patience {
			t.Fatalf("%s has not read everything after %s", name, patience)
		}
		return all
	})
	e.took, e.own = time.Since(began), run.processorTime(t)
	e.rest, e.database = ownCPU()-rest, databaseCPU()-databases
	for _, m := range run {
		m.Kill()
	}
	return e
}
