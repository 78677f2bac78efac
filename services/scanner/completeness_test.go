package scanner

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// published waits until the scanner has published up to the chain's head.
func published(t *testing.T, s *running, d *devnet) {
	t.Helper()
	eventually(t, "the scanner has published", func() error {
		if testutil.ToFloat64(s.metrics.block) < float64(d.Head().Number.Uint64()) {
			return errNotYet
		}
		return nil
	})
}

// proven waits until the topic holds the chain, and checks that nothing that was ever published was wrong.
func proven(t *testing.T, k *kafka, tr *truth) (all []audited) {
	t.Helper()
	all = settle(t, k, tr)
	if err := lastWord(t.Context(), tr, all); err != nil {
		t.Error(err)
	}
	return all
}

const getReceipts = "eth_getBlockReceipts"

// notThere is what a node answers that has no receipts of a block, at least for now.
func notThere([]json.RawMessage, json.RawMessage) json.RawMessage {
	return json.RawMessage(`{"code":-32000,"message":"the receipts of this block are not there"}`)
}

// A block is published when some endpoint serves receipts that hash to its header's root, and not before: where none
// does the head waits, and says for which block (PIPE-2, PIPE-13).
func TestNothingUnprovenIsPublished(t *testing.T) {
	for name, told := range map[string]lie{
		"it refuses receipts by block":      refuses,
		"it has none of this block":         notThere,
		"its history is pruned":             pruned,
		"it leaves a receipt out":           leavesOut(1),
		"it leaves logs out of receipts":    leavesOutOfReceipts,
		"it says that transactions failed":  asFailed,
		"it gives receipts of another fork": ofAnotherFork,
	} {
		for _, p := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s, P=%d", name, p), func(t *testing.T) {
				withPartitions(t, p)
				d, k := startDevnet(t), startKafka(t)
				tr := newTruth(d)
				node := startLiar(t, d)
				d.mine(1)
				s := start(t, through(testConfig(d, k.Addr()), node), k)
				settle(t, k, tr)
				last := d.Head().Number.Uint64()
				node.tell(getReceipts, told)
				d.trade(1)
				eventually(t, "the scanner says for which block it waits", func() error {
					if testutil.ToFloat64(s.metrics.unproven) != float64(last+1) || s.status.following() == nil {
						return errNotYet
					}
					return nil
				})
				if n := testutil.ToFloat64(s.metrics.block); n != float64(last) {
					t.Errorf("block %v was published", n)
				}
				node.tell(getReceipts, nil)
				proven(t, k, tr)
				published(t, s, d)
				eventually(t, "nothing is waited for", func() error {
					if testutil.ToFloat64(s.metrics.unproven) > 0 {
						return errNotYet
					}
					return s.status.following()
				})
			})
		}
	}
}
