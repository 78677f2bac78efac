package gmx

import (
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Whoever adds a kind of job and forgets how the exchange executes it is told here.
func TestEveryKindHasItsExecution(t *testing.T) {
	taken := map[[4]byte]job.Kind{}
	for _, kind := range job.Kinds() {
		e, known := executions[kind]
		if !known || e.setting == "" || e.handler == nil || e.words == nil || e.read == nil || e.measured == nil ||
			e.loss == 0 {
			t.Errorf("%s: its execution is not whole: %+v", kind, e)
			continue
		}
		if calldata := e.encode(job.Job{Kind: kind}, SetPrices{}); [4]byte(calldata[:4]) != e.selector() {
			t.Errorf("%s: the calldata begins with %x, and is recognised by %x", kind, calldata[:4], e.selector())
		}
		if other, twice := taken[e.selector()]; twice {
			t.Errorf("%s and %s are called alike", kind, other)
		}
		taken[e.selector()] = kind
		if e.measured(Work{Kind: kind}) == 0 {
			t.Errorf("%s: its work takes no gas", kind)
		}
	}
	if len(executions) != len(job.Kinds()) {
		t.Errorf("%d executions of %d kinds", len(executions), len(job.Kinds()))
	}
}

// Whoever adds a kind of request and forgets its events is told here.
func TestEveryRequestIsDecoded(t *testing.T) {
	handled := HandledEvents()
	for _, kind := range perp.RequestKinds() {
		name := strings.ToUpper(string(kind[:1])) + string(kind[1:])
		for _, event := range []string{name + "Created", name + "Executed", name + "Cancelled"} {
			if !slices.Contains(handled, event) {
				t.Errorf("%s: its event %s is not decoded", kind, event)
			}
		}
	}
}
