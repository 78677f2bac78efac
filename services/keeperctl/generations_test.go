package keeperctl

import (
	"context"
	"strings"
	"testing"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/test/rig"
)

// onGenerations is the command as the tests of the database's commands call them.
func onGenerations(ctx context.Context, db *pg.DB, _ Settings, args []string, out printer) error {
	return generations(ctx, db, defaultConfig().Own, args, out)
}

// A generation that is not there is named, whatever is to be done with it, and what was done is said.
func TestGenerationsThatAreNotThere(t *testing.T) {
	db := pgtest.DB(t)
	const absent = "generation 7 does not exist (keeperctl generations list shows those that do)"
	for _, args := range [][]string{{"compare", "1", "7"}, {"compare", "7", "1"}, {"switch", "7"}} {
		if got, want := told(t, onGenerations, db, args...), "error: "+absent; got != want {
			t.Errorf("%v: %q, want %q", args, got, want)
		}
	}
	wantTold(t, told(t, onGenerations, db, "drop", "7"), "error: generation 7 does not exist")
	if err := db.CreateGeneration(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if got := told(t, onGenerations, db, "drop", "2"); got != "generation 2 is dropped\n" {
		t.Errorf("dropping says %q", got)
	}
	wantTold(t, told(t, onGenerations, db, "drop", "1"), "error: generation 1 is the active one")
	wantTold(t, told(t, onGenerations, db), "error: usage: keeperctl generations list")
}

// One file and one environment serve every command: each takes what it needs, and passes over what is for others.
func TestEveryCommandPassesOverTheOthersSettings(t *testing.T) {
	t.Setenv("PERPKEEPER_KEEPER_SIGNERS", "0xBcd4042DE499D14e55001CcbB24a551F3b954096") // audit's
	t.Setenv("PERPKEEPER_KEEPERCTL_REPLICATION", "3")                                   // prepare's
	t.Setenv("PERPKEEPER_KEEPERCTL_DRY_RUN", "true")                                    // emergency's
	t.Setenv("PERPKEEPER_POSTGRES_URL", "postgres://keeper:hidden@127.0.0.1:5432/keeper")
	t.Setenv("PERPKEEPER_CHAIN_URLS", "http://127.0.0.1:8545")
	t.Setenv("PERPKEEPER_VENUE_DATA_STORE", "0xBcd4042DE499D14e55001CcbB24a551F3b954096")
	t.Setenv("PERPKEEPER_SCANNER_START_BLOCK", "1")
	lines := map[string]string{}
	for _, c := range commands() {
		if len(c.needs) > 0 {
			lines[c.name()] = "[" + strings.Split(c.needs[0], ".")[0] + "]"
		}
	}
	for line, section := range lines {
		out, complaint, code := run(t, nil, append(strings.Fields(line), "--print-config")...)
		if code != 0 || !strings.Contains(out, section) || strings.Contains(out, "hidden") {
			t.Errorf("%s: exit code %d, %s%s", line, code, out, complaint)
		}
	}
	if out, _, _ := run(t, nil, "wallet", "--print-config"); strings.Contains(out, "[chain]") ||
		strings.Contains(out, "signers") {
		t.Errorf("wallet takes what it does not need:\n%s", out)
	}
	t.Setenv("PERPKEEPER_KEEPERCTL_SIGNRS", "x")
	if _, complaint, code := run(t, nil, "wallet", "verify"); code != exitNotAsked ||
		!strings.Contains(complaint, "PERPKEEPER_KEEPERCTL_SIGNRS: unknown variable") {
		t.Errorf("a mistyped variable: exit code %d, %q", code, complaint)
	}
}

// Where the log topic has taken the place of one of another number of partitions, a rebuild fills a generation from it
// and says where the former one stands.
func TestRebuildFromATopicOfOtherPartitions(t *testing.T) {
	o, cfg := newOffice(t), pgtest.Config(t)
	t.Setenv("PERPKEEPER_POSTGRES_URL", cfg.URL.Reveal())
	if _, err := rig.PostgresOf(t, cfg).Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	out, complaint, code := o.line("rebuild")
	if code != exitFine {
		t.Errorf("exit code %d: %s", code, complaint)
	}
	wantTold(t, out, "generation 2 is filled, up to block 0",
		"generation 1 stands at block 0 of a topic of 2 partitions", "generations switch 2")
}
