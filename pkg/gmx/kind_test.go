package gmx

import (
	"testing"

	"perpkeeper/pkg/job"
)

// Whoever adds a kind of job and forgets how the exchange executes it is told here.
func TestEveryKindHasItsExecution(t *testing.T) {
	selectors := map[[4]byte]job.Kind{}
	for _, kind := range job.Kinds() {
		e, known := executions[kind]
		if !known || e.setting == "" || e.handler == nil || e.encode == nil || e.read == nil || e.measured == nil {
			t.Errorf("%s: its execution is not whole: %+v", kind, e)
			continue
		}
		if calldata := e.encode(job.Job{Kind: kind}, SetPrices{}); [4]byte(calldata[:4]) != e.selector {
			t.Errorf("%s: the calldata begins with %x, and is recognised by %x", kind, calldata[:4], e.selector)
		}
		if other, taken := selectors[e.selector]; taken {
			t.Errorf("%s and %s are called alike", kind, other)
		}
		selectors[e.selector] = kind
		if e.measured(Work{Kind: kind}) == 0 {
			t.Errorf("%s: its work takes no gas", kind)
		}
	}
	if len(executions) != len(job.Kinds()) {
		t.Errorf("%d executions of %d kinds", len(executions), len(job.Kinds()))
	}
}
