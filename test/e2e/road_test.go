package e2e

import (
	"math/rand/v2"
	"testing"

	"perpkeeper/lab/demo"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/test/rig"
)

// PIPE-1, PIPE-2, PIPE-3, PIPE-4, PIPE-5: a log becomes a transaction, through Kafka and Postgres, and the chain closes
// the job.
func TestMainRoad(t *testing.T) {
	k := start(t, nil)
	k.progress(5, 1)
	k.explain()
	k.finish()
}

// kill −9 of each process in turn, in random order and at random moments: it recovers, no order or liquidation is lost
// or sent twice.
func TestKillEachProcess(t *testing.T) {
	long(t)
	random := rand.New(rand.NewPCG(rig.Seed(t), 0))
	k := start(t, nil)
	k.progress(2, 0)
	for range 2 {
		order := random.Perm(len(k.Processes))
		for _, i := range order {
			p := k.Processes[i]
			t.Logf("killing %s", p.Name)
			p.Kill()
			k.progress(1+random.IntN(4), random.IntN(2))
			k.awaitReady()
		}
	}
	k.finish()
	for _, p := range k.Processes {
		if p.Restarts() == 0 {
			k.errorf("%s was never started again: it was not killed", p.Name)
		}
	}
}

// PIPE-7: two of each share the work; killing one of each moves its share; every job is done once.
func TestTwoOfEach(t *testing.T) {
	long(t)
	k := start(t, func(s *demo.Settings) { s.Statevm, s.Planner, s.Sender, s.Signers = 2, 2, 2, 4 })
	k.progress(4, 1)
	for _, kind := range []string{"statevm", "planner", "sender"} {
		for _, p := range []*demo.Process{k.Process(kind + "-1"), k.Process(kind + "-2")} {
			if p == nil {
				t.Fatalf("there are no two copies of %s", kind)
			}
		}
		k.awaitShared(kind)
	}
	for _, name := range []string{"statevm-1", "planner-2", "sender-1"} {
		t.Logf("killing %s for good", name)
		release := k.Process(name).Hold()
		k.progress(6, 1)
		release()
		k.awaitReady()
	}
	for _, kind := range []string{"statevm", "planner", "sender"} {
		k.awaitShared(kind)
	}
	k.finish()
}

// NON-15, all four processes: one of two signers is paused, and the other does the jobs of both.
func TestPausedSignerHoldsNoJob(t *testing.T) {
	k := start(t, nil)
	k.progress(2, 0)
	signers, err := txstore.NewSigners(k.db).List(t.Context())
	if err != nil || len(signers) < 2 {
		t.Fatal(signers, err)
	}
	if out, err := k.Keeperctl(t.Context(), "signer", "pause", signers[0].Signer.Hex(), "its key is lost"); err != nil {
		t.Fatal(out, err)
	}
	k.progress(6, 0)
	k.finish()
}

// A forced reorg of depth 3, in both styles, ends in the same tables as a fold of the canonical chain.
func TestReorg(t *testing.T) {
	for _, style := range []string{"replay", "drop"} {
		t.Run(style, func(t *testing.T) {
			long(t)
			k := start(t, nil)
			for range 3 {
				k.progress(3, 0)
				k.devnet("devnet_reorg", map[string]any{"depth": 3, "style": style})
			}
			k.progress(3, 0)
			k.finish()
		})
	}
}

// The head stalls: nothing is sent into a halted chain, and everything goes on when it moves again.
func TestStalledHead(t *testing.T) {
	long(t)
	k := start(t, nil)
	k.progress(2, 0)
	k.devnet("devnet_stall", map[string]any{"seconds": 8})
	k.progress(3, 0)
	k.finish()
}
