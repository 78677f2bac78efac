package keeperctl

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/test/rig"
)

// One is taken, listed, verified; what is of another keeper is said in one line.
func TestSnapshotCommands(t *testing.T) {
	if _, err := exec.LookPath("pg_dump"); err != nil {
		t.Skip("PostgreSQL's client programs are not on this machine")
	}
	url := pgtest.URL(t)
	folder := t.TempDir()
	flags := []string{"--postgres.url", url, "--keeper.log_partitions", "1", "--kafka.brokers", "127.0.0.1:1",
		"--keeperctl.patience", "100ms"}
	wants := func(code int, part string, verb ...string) {
		t.Helper()
		out, complaint, got := run(t, nil, slices.Concat([]string{"snapshot", verb[0]}, flags, verb[1:])...)
		if got != code || !strings.Contains(out+complaint, part) || strings.Count(out+complaint, "\n") > 2 {
			t.Errorf("%v: exit code %d, %q %q; want %d and %q", verb, got, out, complaint, code, part)
		}
	}
	wants(0, "no snapshots", "list", folder)
	wants(exitFindings, "there are no snapshots", "verify", folder)
	wants(exitFindings, "no state to copy", "create", folder)
	pgtest.Hold(t, rig.Postgres(t, url), chain.BlockRef{Number: 7, Hash: chain.Hash{7}, Parent: chain.Hash{6}})
	wants(0, "snapshot 20", "create", folder)
	wants(0, "has the 3 rows that its manifest names, up to final block 7", "verify", folder)
	wants(0, fmt.Sprintf("%d       7            3", pg.StateLayout), "list", folder)
	wants(exitNotAsked, "usage: keeperctl snapshot", "restore")
	wants(exitFindings, "no name of a snapshot", "restore", folder, "latest")
	wants(exitFindings, "of chain 56, this keeper of chain 97", "restore", folder, "--keeper.chain_id", "97")
	wants(exitFindings, "gave up after 100ms", "restore", folder) // no broker is there
	wants(exitFindings, "of a log topic of 1 partitions, this keeper's has 2", "restore", folder,
		"--keeper.log_partitions", "2")
}
