package keeperctl

import (
	"strings"
	"testing"

	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// Numbers of partitions are raised from what the configuration says: those of jobs in place, that of the log topic by
// whoever writes it anew, and each call goes on from how things stand.
func TestPartitionsAreRaised(t *testing.T) {
	o, cfg := newOffice(t), pgtest.Config(t)
	t.Setenv("PERPKEEPER_POSTGRES_URL", cfg.URL.Reveal())
	raise := func(logs, jobs string, code int, want ...string) {
		t.Helper()
		t.Setenv("PERPKEEPER_KEEPER_LOG_PARTITIONS", logs)
		t.Setenv("PERPKEEPER_KEEPER_JOB_PARTITIONS", jobs)
		out, complaint, got := o.line("partitions raise")
		if got != code || strings.Count(complaint, "\n") > 1 {
			t.Errorf("%s and %s: exit code %d: %s", logs, jobs, got, complaint)
		}
		if code == exitFine {
			complaint = out
		}
		wantTold(t, complaint, want...)
	}
	raise("4", "4", exitFine, "the log topic and generation 1, which readers use, are of 4 partitions")
	raise("4", "6", exitFine, "topic perp.56.job.v1: from 4 to 6 partitions",
		"topic perp.56.result.v1: from 4 to 6 partitions", "with keeper.job_partitions = 6")
	for _, topic := range []string{wire.JobTopic(o.Keeper.ChainID), wire.ResultTopic(o.Keeper.ChainID)} {
		if n, err := o.Client.Describe(t.Context(), topic); n != 6 || err != nil {
			t.Errorf("topic %s has %d partitions, %v", topic, n, err)
		}
	}
	if out, _, code := o.line("partitions raise"); code != exitFine || strings.Contains(out, "topic perp") {
		t.Errorf("raised again: %d, %q", code, out)
	}
	raise("4", "5", exitFindings, "topic perp.56.job.v1 has 6 partitions", "a number is never lowered")
	raise("8", "6", exitFindings, "topic perp.56.log.v1 has 4 partitions, and keeper.log_partitions is 8",
		"docs/runbooks/partitions.md")

	// The log topic has taken the place of one of two partitions, from which generation 1 was filled.
	db, err := pg.Open(t.Context(), cfg, "test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if _, err := db.Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partitions: 2}); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		raise("4", "6", exitFine, "generation 2 is filled, up to block 0",
			"generation 1 stands at block 0 of a topic of 2 partitions", "generations switch 2")
	}
	if err := db.Switch(t.Context(), 2, "4 partitions"); err != nil {
		t.Fatal(err)
	}
	raise("4", "6", exitFine, "generation 2, which readers use, are of 4 partitions",
		"generation 1 is of 2 partitions and stands still (keeperctl generations drop 1)")
}
