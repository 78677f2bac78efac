package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"perpkeeper/services/devnet"
)

// What a provider that leaves out, forges or has lost its logs makes of the topic is never called verified: it is found
// before it is published, or corrected afterwards, and the tables become what the chain holds (PIPE-2).
func TestLyingProvider(t *testing.T) {
	var node *liar
	r := newRig(t, func(d *devnet.Devnet) []string {
		node = startLiar(t, d.RPC())
		return []string{node.url}
	}, "PERPKEEPER_SCANNER_BACKFILL_MIN_BLOCKS=32")
	r.run()
	r.warmUp()
	random := rand.New(rand.NewPCG(seed(t), 0))
	cases := []struct {
		name    string
		lies    map[string]lie
		history bool // the blocks are final before the scanner sees them
		correct bool // the lie does not show, so that what it made of a block has to be corrected
	}{
		{"one log left out", map[string]lie{getLogs: leavesOut(1), getReceipts: refuses}, false, true},
		{"any one log left out", map[string]lie{getLogs: leavesOutAny(random), getReceipts: refuses}, false, true},
		{"one log made up", map[string]lie{getLogs: makesUpOne(random), getReceipts: refuses}, false, true},
		{"one log altered", map[string]lie{getLogs: altersOne(random), getReceipts: refuses}, false, true},
		{"all logs left out", map[string]lie{getLogs: leavesOut(1000), getReceipts: refuses}, false, true},
		{"logs left out, of receipts too", map[string]lie{getLogs: leavesOut(1), getReceipts: leavesOutOfReceipts},
			false, true},
		{"empty answers for pruned blocks", map[string]lie{getLogs: pruned, getReceipts: pruned}, false, true},
		{"logs of another fork", map[string]lie{getLogs: ofAnotherFork, getReceipts: refuses}, false, false},
		{"empty answers for pruned history", map[string]lie{getLogs: pruned, getReceipts: pruned}, true, false},
	}
	if os.Getenv("KEEPER_LONG") == "" {
		cases = cases[:2]
	}
	for _, c := range cases {
		t.Logf("--- %s", c.name)
		r.startWithLies(node, c.lies, c.history, c.correct)
	}
	r.checkCoverage()
}

// startWithLies lets a scanner start on a node that lies, until the lie has been given a few times.
func (r *rig) startWithLies(node *liar, lies map[string]lie, history, correct bool) {
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
		n := node.countLies(getLogs)
		if !correct {
			n += node.countLies(getReceipts) // logs may not be asked for
		}
		if n < often {
			return fmt.Errorf("%d times of %d", n, often)
		}
		return nil
	})
	r.mine(3)
	node.clearLies()
	r.compareAtStalledHead("the lie")
	if correct { // the tables may be equal before: not every log makes a row
		r.await("a block is corrected", func(ctx context.Context) error {
			if r.scanner.metrics(ctx)["scanner_corrections_total"] == 0 {
				return errors.New("no correction")
			}
			return nil
		})
		r.compareAtHead("the correction")
	} else if n := r.scanner.metrics(r.t.Context())["scanner_corrections_total"]; n > 0 {
		r.t.Errorf("%.0f corrections", n)
	}
	if n := r.audit(); n == 0 {
		r.t.Error("no block is verified")
	} else {
		r.t.Logf("%d verified blocks compared with their receipts", n)
	}
}
