package turns

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/tier/execution"
)

// signed are transactions of this keeper; away says that nobody can be asked.
type signed struct {
	hashes []chain.Hash
	asked  int
	away   bool
}

func (s *signed) Unsigned(_ context.Context, hashes []chain.Hash) ([]chain.Hash, error) {
	if s.asked += len(hashes); s.away {
		return nil, errors.New("no connection")
	}
	return slices.DeleteFunc(slices.Clone(hashes), func(h chain.Hash) bool { return slices.Contains(s.hashes, h) }), nil
}

// TIER-2, TIER-19: two keepers that work with one key find it out by the first job that one of them executes. What this
// keeper has signed in another of its processes, what others have executed with their keys, and what was executed
// before it began, is nobody's mistake.
func TestOwnKeyUsedExternally(t *testing.T) {
	b := newBench()
	b.head(10_000_000)
	b.Published(orderAt(1, 9_990_000)) // its signer is this keeper's
	executed := func(sender chain.Address, n byte) {
		e := by(sender, n, 9_995_000)
		e.Tx.Hash = chain.Hash{n}
		b.Executed([]execution.Execution{e})
	}
	store := &signed{hashes: []chain.Hash{{2}}}
	found := func() float64 {
		t.Helper()
		if err := b.FindOthers(t.Context(), store); (err != nil) != store.away {
			t.Fatal(err)
		}
		return testutil.ToFloat64(b.cfg.Metrics.external.WithLabelValues(ourSigner.Hex()))
	}
	if executed(ourSigner, 9); found() != 0 || store.asked != 0 {
		t.Error("an execution of before the start was looked at")
	}
	b.Read(9_999_000)
	executed(ourSigner, 2)
	executed(masterSigner, 3)
	if executed(chain.Address{0xee}, 4); found() != 0 || store.asked != 1 {
		t.Errorf("%d executions looked at, alarm for one that is ours or others'", store.asked)
	}
	store.away = true
	if executed(ourSigner, 5); found() != 0 {
		t.Error("alarm while nobody could be asked")
	}
	if store.away = false; found() != 1 || !b.logged("same key") {
		t.Error("another keeper with our key was not found")
	}
	if found() != 1 {
		t.Error("told twice")
	}
}
