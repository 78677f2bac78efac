package recordings

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier/execution"
)

// What the books call the end of a job is what a keeper's own reading of its receipt calls it, in every transaction of
// the original contracts.
func TestEndingsAgreeWithOutcomes(t *testing.T) {
	same := map[execution.Result]gmx.Result{
		execution.Executed: gmx.Executed, execution.Cancelled: gmx.Cancelled, execution.Swept: gmx.Cancelled,
		execution.Frozen:     gmx.Frozen,
		execution.Liquidated: gmx.Liquidated, execution.Deleveraged: gmx.Executed,
	}
	found := map[job.Kind]map[execution.Result]int{}
	for _, name := range fixtureNames {
		file := filepath.Join(fixtureDir(), name+".jsonl.gz")
		if _, err := os.Stat(file); err != nil {
			t.Skipf("no recording %s; set GMX_FIXTURES to its directory", file)
		}
		r, closer, err := openRecording(file, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer closer.Close()
		var decoder *gmx.Decoder
		for {
			logs, timeMs, err := r.transaction()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			if decoder == nil {
				decoder = gmx.NewDecoder(logs[0].Address)
			}
			for _, e := range endingsOf(t, decoder, logs, timeMs) {
				outcome, err := decoder.Outcome(logs, e.Key)
				if err != nil || outcome.Result != same[e.Result] || outcome.Reason != e.Reason {
					t.Fatalf("block %d: %s %s is %s, its receipt says %s, %v", logs[0].Block, e.Kind, e.Key, e.Result,
						outcome.Result, err)
				}
				if found[e.Kind] == nil {
					found[e.Kind] = map[execution.Result]int{}
				}
				found[e.Kind][e.Result]++
			}
		}
	}
	t.Log(found)
	for _, want := range []struct {
		kind   job.Kind
		result execution.Result
	}{{job.Order, execution.Executed}, {job.Liquidation, execution.Liquidated}, {job.Deposit, execution.Executed}} {
		if found[want.kind][want.result] == 0 {
			t.Errorf("no %s was %s: the recordings are not what they were", want.kind, want.result)
		}
	}
}

func endingsOf(t *testing.T, decoder *gmx.Decoder, logs []chain.Log, timeMs uint64) []execution.Execution {
	t.Helper()
	events, err := decoder.Transaction(logs, timeMs)
	if err != nil {
		t.Fatal(err)
	}
	return execution.Endings(events)
}
