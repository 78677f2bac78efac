package preflight

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// No log names the job that brings the deleveraging state up to date.
func TestAnUpdateOfTheDeleveragingStateIsDone(t *testing.T) {
	o, _, err := (&Checker{}).Outcome(t.Context(), job.Job{Kind: job.AdlState}, evm.Receipt{Tx: chain.Tx{OK: true}})
	if o != job.Done || err != nil {
		t.Errorf("%s, %v", o, err)
	}
}

// A cancel has done its work where the order or request is cancelled, which for an execution is the venue's rule.
func TestACancelIsDone(t *testing.T) {
	emitter, key := chain.Address{0xee}, chain.Hash{1}
	r := &Checker{venue: venueOf(job.Deposit)}
	var logs []chain.Log
	for _, e := range gmxtest.Events() {
		if e.Name == "DepositCancelled" {
			logs = append(logs, e.Log(emitter, perp.Fields{"key": key}))
		}
	}
	for kind, want := range map[job.Kind]job.Outcome{"cancelDeposit": job.Done, job.Deposit: job.CancelledByVenue} {
		o, _, err := r.Outcome(t.Context(), job.Job{Kind: kind, Key: key},
			evm.Receipt{Tx: chain.Tx{OK: true}, Logs: logs})
		if o != want || err != nil {
			t.Errorf("%s: %s, %v", kind, o, err)
		}
	}
}
