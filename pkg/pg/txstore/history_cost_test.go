package txstore_test

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"perpkeeper/lab/embedded/postgres"
	"perpkeeper/pkg/chain"
)

// historyServer is a server whose databases live on when it is started with other settings.
type historyServer struct {
	*postgres.Server
	dir string
}

// serverSetting is how a server is run: with so much shared memory, waiting for its disk at each commit or not.
type serverSetting struct {
	buffers string
	durable bool
}

// Those of the shipped compose file and of PostgreSQL itself; durable only with the longest history.
var historySettings = []serverSetting{{"512MB", false}, {"128MB", false}, {"512MB", true}}

// start runs the server with other settings.
func (h *historyServer) start(t *testing.T, s serverSetting) {
	t.Helper()
	again := func() {
		if h.Server != nil {
			must(t, h.Stop())
		}
		var err error
		h.Server, err = postgres.Start(postgres.Config{DataDir: h.dir, NoSync: !s.durable})
		must(t, err)
	}
	again()
	execute(t, h.URL(""), "ALTER SYSTEM SET shared_buffers = '"+s.buffers+"'")
	execute(t, h.URL(""), "ALTER SYSTEM SET autovacuum = off") // see site.vacuum
	again()
}

// What the statements of the road cost beside histories of 1 day to 1 year, and beside an empty database in the same
// run, one after the other. KEEPER_LONG=1; KEEPER_DAYS has other lengths, separated by commas and rising; KEEPER_ROUNDS
// is how often all is done in each database; KEEPER_KEPT has other days of jobs than retention.keep; KEEPER_RESULTS names
// a directory for the figures. A year takes 17 GB of disk.
func TestCostOfHistory(t *testing.T) {
	if os.Getenv("KEEPER_LONG") == "" {
		t.Skip("fills databases: set KEEPER_LONG=1")
	}
	days := historyDays(t)
	kept, err := strconv.Atoi(cmp.Or(os.Getenv("KEEPER_KEPT"), daysKept))
	must(t, err)
	rounds, err := strconv.Atoi(cmp.Or(os.Getenv("KEEPER_ROUNDS"), "1000"))
	must(t, err)
	//nolint:usetesting // t.TempDir lies in a folder that is closed to the server's user
	dir, err := os.MkdirTemp("", "history-")
	must(t, err)
	server := &historyServer{dir: dir}
	t.Cleanup(func() {
		must(t, server.Stop())
		must(t, os.RemoveAll(dir))
	})
	server.start(t, historySettings[0])
	full := newSite(t, server, "history")
	table := [][]string{{"days", "orders", "jobs_at_hand", "jobs_archived", "database_mb", "shared_buffers", "durable",
		"statement", "empty_us", "empty_tenth_us", "us", "tenth_us"}}
	for _, d := range days {
		began := time.Now()
		server.start(t, historySettings[0])
		full.open(t, server)
		full.grow(t, d, kept)
		empty := newSite(t, server, fmt.Sprintf("empty_%d", d))
		conn := connect(t, server.URL(""))
		t.Logf("%d days are there after %.0f s: timed rounds", d, time.Since(began).Seconds())
		_, err = conn.Exec(t.Context(), "CHECKPOINT")
		must(t, err)
		if full.offset < chain.UndoHorizon {
			full.warmUp(t)
		}
		empty.warmUp(t)
		for _, setting := range historySettings {
			if setting.durable && d != slices.Max(days) {
				continue
			}
			server.start(t, setting)
			full.open(t, server)
			empty.open(t, server)
			alternate(t, rounds, empty, full)
			rows := compared(t, empty, full, d, setting)
			table = append(table, rows...)
			for _, row := range rows {
				t.Log(strings.Join(row, ","))
			}
		}
		if results := os.Getenv("KEEPER_RESULTS"); results != "" {
			leave(t, filepath.Join(results, "history.csv"), table)
		}
		t.Logf("%d days are timed after %.0f s", d, time.Since(began).Seconds())
	}
}

func historyDays(t *testing.T) (days []int) {
	t.Helper()
	for text := range strings.SplitSeq(cmp.Or(os.Getenv("KEEPER_DAYS"), "1,10,36,120,365"), ",") {
		d, err := strconv.Atoi(text)
		must(t, err)
		days = append(days, d)
	}
	return days
}

// alternate runs rounds in each database in turn, so that what else the machine does falls on both. The first tenth,
// in which plans are made and caches filled, does not count.
func alternate(t *testing.T, rounds int, sites ...*site) {
	t.Helper()
	for _, s := range sites {
		s.readIndexes(t)
		s.vacuum(t)
		execute(t, s.Address, "CHECKPOINT")
	}
	for i := range rounds + rounds/10 {
		for _, s := range sites {
			if i == rounds/10 {
				s.took = map[string][]time.Duration{}
			}
			s.round(t)
			if i%100 == 0 {
				s.vacuum(t)
			}
		}
	}
}

// compared has a row for each statement: medians and fastest tenths, in microseconds.
func compared(t *testing.T, empty, full *site, days int, setting serverSetting) (rows [][]string) {
	t.Helper()
	size := query[int64](t, full.Address, `SELECT pg_database_size(current_database()) >> 20`)
	atHand := min(full.jobs, daysAtHand*ordersADay)
	for _, what := range slices.Sorted(maps.Keys(empty.took)) {
		row := []string{strconv.Itoa(days), strconv.Itoa(full.orders), strconv.Itoa(atHand),
			strconv.Itoa(full.jobs - atHand), strconv.FormatInt(size, 10), setting.buffers,
			strconv.FormatBool(setting.durable), what}
		for _, s := range []*site{empty, full} {
			took := slices.Sorted(slices.Values(s.took[what]))
			for _, at := range []int{len(took) / 2, len(took) / 10} {
				row = append(row, strconv.FormatInt(took[at].Microseconds(), 10))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// leave writes a table as CSV.
func leave(t *testing.T, path string, table [][]string) {
	t.Helper()
	file, err := os.Create(filepath.Clean(path))
	must(t, err)
	must(t, csv.NewWriter(file).WriteAll(table))
	must(t, file.Close())
}
