package preflight

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
)

// No log names the job that brings the deleveraging state up to date.
func TestAnUpdateOfTheDeleveragingStateIsDone(t *testing.T) {
	o, _, err := (&Checker{}).Outcome(t.Context(), job.Job{Kind: job.AdlState}, evm.Receipt{Tx: chain.Tx{OK: true}})
	if o != job.Done || err != nil {
		t.Errorf("%s, %v", o, err)
	}
}
