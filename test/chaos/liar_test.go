package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"perpkeeper/lab/devnet"
)

// What a provider leaves out of receipts, forges in them or has lost is never published: the scanner waits for the
// truth, and then the tables become what the chain holds (PIPE-2, PIPE-13).
func TestLyingProvider(t *testing.T) {
	var node *liar
	r := newRig(t, func(d *devnet.Devnet) []string {
		node = startLiar(t, d.RPC())
		return []string{node.url}
	}, "PERPKEEPER_SCANNER_BACKFILL_MAX_RANGE=128")
	r.run()
	r.warmUp()
	random := rand.New(rand.NewPCG(seed(t), 0))
	cases := []struct {
		name    string
		lie     lie
		history bool // the blocks are final before the scanner sees them
	}{
		{"one log left out", leavesOutOfReceipts, false},
		{"one log altered", altersOne(random), false},
		{"a receipt left out", leavesOut(1), false},
		{"all receipts refused", refuses, false},
		{"empty answers for pruned blocks", pruned, false},
		{"receipts of another fork", ofAnotherFork, false},
		{"empty answers for pruned history", pruned, true},
	}
	if os.Getenv("KEEPER_LONG") == "" {
		cases = cases[:2]
	}
	for _, c := range cases {
		t.Logf("--- %s", c.name)
		r.startWithLies(node, map[string]lie{getReceipts: c.lie}, c.history)
	}
	r.checkCoverage()
}

// startWithLies lets a scanner start on a node that lies, until the lie has been given a few times.
func (r *rig) startWithLies(node *liar, lies map[string]lie, history bool) {
	r.t.Helper()
	r.scanner.kill()
	if history {
		r.mine(60)
	}
	node.setLies(lies)
	r.scanner.start()
	r.devnet.Resume()
	r.await("the lie is told", func(context.Context) error {
		r.executor.round()
		const often = 3
		n := node.countLies(getReceipts)
		if n < often {
			return fmt.Errorf("%d times of %d", n, often)
		}
		return nil
	})
	r.mine(3)
	node.clearLies()
	r.compareAtStalledHead("the lie")
	if n := r.audit(); n == 0 {
		r.t.Error("no block is published")
	} else {
		r.t.Logf("%d blocks compared with their receipts", n)
	}
}
