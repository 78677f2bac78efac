package gmx

import (
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Whoever adds a kind of job and forgets how the exchange executes it is told here.
func TestEveryKindHasItsExecution(t *testing.T) {
	taken := map[[4]byte]job.Kind{}
	for _, kind := range job.Kinds() {
		e, known := executions[kind]
		if !known || e.role == "" || e.words == nil || e.read == nil || e.measured == nil {
			t.Errorf("%s: its entry in executions (pkg/gmx/kind.go) is missing or lacks something; it needs role, "+
				"words, read and measured, and has %+v", kind, e)
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
		t.Errorf("pkg/gmx/kind.go executes %d kinds, and there are %d: %v (a kind of request is listed in "+
			"perp.RequestKinds, any other in the descriptors of pkg/job/kind.go)", len(executions), len(job.Kinds()),
			job.Kinds())
	}
}

// Whoever adds a kind of request and forgets its events is told here; how a request that is gone is said follows from
// its name.
func TestEveryRequestIsDecoded(t *testing.T) {
	handled := eventNames(true)
	for _, kind := range perp.RequestKinds() {
		name := eventPrefix(kind)
		for _, gone := range []string{name + "NotFound(bytes32)", "Empty" + name + "()"} {
			data := selector(gone)
			if r := DecodeRevert(data[:]); r.Class != DoneElsewhere {
				t.Errorf("%s is %s: two keepers' race for it would be lost without being seen as that", gone, r.Class)
			}
		}
		for _, event := range []string{name + "Created", name + "Executed", name + "Cancelled"} {
			if !slices.Contains(handled, event) {
				t.Errorf("%s: its event %s is not decoded; add it to requestEvents in pkg/gmx/decode_request.go",
					kind, event)
			}
		}
	}
}

// Whoever adds a kind of request whose event names markets by items of their own is told here: nobody would bring along
// their prices, wait for their audit, or count the swaps.
func TestRequestsNameTheirMarkets(t *testing.T) {
	for _, kind := range perp.RequestKinds() {
		for _, e := range gmxtest.Events() {
			if e.Name != eventPrefix(kind)+"Created" {
				continue
			}
			r := decodeOne[perp.RequestCreated](t, e.Log(emitter, nil)).Request
			for item, value := range e.Fields(nil) {
				if path, is := value.([]chain.Address); is && !slices.Contains(r.SwapPath(), path[0]) {
					t.Errorf("%s: %s is in no Request.SwapPath (pkg/perp/request.go)", e.Name, item)
				}
				address, is := value.(chain.Address)
				switch name := strings.ToLower(item); {
				case is && strings.Contains(name, "glv") && r.Glv() != address:
					t.Errorf("%s: %s is not its Request.Glv (pkg/perp/request.go)", e.Name, item)
				case is && strings.Contains(name, "market") && address != r.Market &&
					!slices.Contains(r.OtherMarkets(), address):
					t.Errorf("%s: %s is in no Request.OtherMarkets (pkg/perp/request.go)", e.Name, item)
				}
			}
		}
	}
}
