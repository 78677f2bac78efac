package keeperctl

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/snapshot"
	"perpkeeper/pkg/snapshot/store"
)

// boundsAre the bounds of every partition.
type boundsAre struct{ first, end int64 }

func (b boundsAre) Bounds(context.Context, string, int) (first, end int64, err error) {
	return b.first, b.end, nil
}

// A log topic that drops its records is refused where the state could not be rebuilt, and only there.
func TestRetentionIsRefusedWithoutSnapshots(t *testing.T) {
	const day = 24 * time.Hour
	path := filepath.Join(t.TempDir(), "snapshots")
	s := &session{Config: defaultConfig()}
	asked := func(first int64, because string) {
		t.Helper()
		err := s.checkRetention(t.Context(), boundsAre{first, 100})
		if because == "" && err != nil ||
			because != "" && (err == nil || !strings.Contains(err.Error(), because)) {
			t.Errorf("got %v, want %q", err, because)
		}
	}
	asked(5, "")
	s.Keeper.LogRetention = 30 * day
	asked(0, "nobody takes snapshots")
	s.Snapshot.Location, s.Snapshot.Every = path, 20*day
	asked(0, "two have to fall into it")
	s.Snapshot.Every = day
	asked(0, "")
	asked(5, "there is no snapshot")
	in, err := store.Open(s.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	for age, because := range map[time.Duration]string{31 * day: "the newest snapshot is 744h0m0s old", 29 * day: ""} {
		m := snapshot.Manifest{Taken: time.Now().Add(-age), ChainID: 56}
		if _, err := snapshot.Prune(t.Context(), in, 0, time.Now()); err != nil {
			t.Fatal(err)
		}
		if _, err := snapshot.Write(t.Context(), in, m, nil); err != nil {
			t.Fatal(err)
		}
		asked(5, because)
	}
}

// One is taken, listed, verified; what was altered, or is of another keeper, is said in one line.
func TestSnapshotCommands(t *testing.T) {
	url := pgtest.URL(t)
	path := filepath.Join(t.TempDir(), "snapshots")
	flags := []string{"--postgres.url", url, "--snapshot.location", path, "--keeper.log_partitions", "1",
		"--snapshot.keep", "1", "--kafka.brokers", "127.0.0.1:1", "--keeperctl.patience", "100ms"}
	wants := func(code int, part string, verb ...string) {
		t.Helper()
		out, complaint, got := run(t, nil, slices.Concat([]string{"snapshot", verb[0]}, flags, verb[1:])...)
		if got != code || !strings.Contains(out+complaint, part) || strings.Count(out+complaint, "\n") > 2 {
			t.Errorf("%v: exit code %d, %q %q; want %d and %q", verb, got, out, complaint, code, part)
		}
	}
	wants(0, "no snapshots", "list")
	wants(exitFindings, "there are no snapshots", "verify", "latest")
	wants(exitFindings, "no state to copy", "create")
	cfg := pg.DefaultConfig()
	if err := cfg.URL.UnmarshalText([]byte(url)); err != nil {
		t.Fatal(err)
	}
	db, err := pg.Open(t.Context(), cfg, t.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	p, err := db.Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	block := pg.Block{BlockRef: chain.BlockRef{Number: 7, Hash: chain.Hash{7}, Parent: chain.Hash{6}}}
	if err := p.Commit(t.Context(), pg.Commit{Next: 1, Finalized: block.BlockRef,
		Blocks: []pg.AppliedBlock{{Block: block}}}); err != nil {
		t.Fatal(err)
	}
	wants(0, "snapshot 20", "create")
	wants(0, "is what was written: 4 rows of 1 partitions, up to final block 7", "verify", "latest")
	wants(0, fmt.Sprintf("%d       7            4", pg.StateLayout), "list")
	wants(exitNotAsked, "usage: keeperctl snapshot", "restore")
	wants(exitFindings, "of chain 56, this keeper of chain 97", "restore", "latest", "--keeper.chain_id", "97")
	wants(exitFindings, "gave up after 100ms", "restore", "latest") // no broker is there
	wants(exitFindings, "of a log topic of 1 partitions, this keeper's has 2", "restore", "latest",
		"--keeper.log_partitions", "2")
}
