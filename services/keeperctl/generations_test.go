package keeperctl

import (
	"context"
	"io"
	"testing"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/service/config"
)

// onGenerations is the command as the tests of the database's commands call them.
func onGenerations(ctx context.Context, db *pg.DB, _ LedgerSettings, args []string, out io.Writer) error {
	return generations(ctx, db, DefaultGenerationsConfig().Own, args, out)
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

// One file serves every command: what one of them can be told, the others pass over.
func TestEveryCommandPassesOverTheOthersSettings(t *testing.T) {
	t.Setenv("PERPKEEPER_KEEPERCTL_SIGNERS", "0xBcd4042DE499D14e55001CcbB24a551F3b954096") // audit's
	t.Setenv("PERPKEEPER_KEEPERCTL_REPLICATION", "3")                                      // prepare's
	t.Setenv("PERPKEEPER_KEEPERCTL_DRY_RUN", "true")                                       // emergency's
	t.Setenv("PERPKEEPER_POSTGRES_URL", "postgres://keeper:x@127.0.0.1:5432/keeper")
	cfg := DefaultLedgerConfig()
	set, err := config.New("keeperctl", &cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Tolerate(settings()...); err != nil {
		t.Fatal(err)
	}
	if _, err := set.Load(nil); err != nil {
		t.Error(err)
	}
}
