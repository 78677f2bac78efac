package venue

import (
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// A request that is gone is refused with the error of its own kind, and what is not played with no other kind's.
func TestNothingIsGoneAsAnotherKind(t *testing.T) {
	for _, request := range perp.RequestKinds() {
		r := gmx.DecodeRevert(gone(job.Kind(request), chain.Hash{1}).data)
		named := strings.Contains(strings.ToLower(r.Name), strings.ToLower(string(request)))
		if r.Class != gmx.DoneElsewhere || !named {
			t.Errorf("a %s that is gone: %s (%s)", request, r, r.Class)
		}
	}
	for _, kind := range []job.Kind{job.Adl, job.AdlState, "redemption"} {
		if r, refused := mustBePlayed(kind); !refused {
			t.Errorf("a %s is not played, and is gone as %s", kind, r)
		}
	}
}

func mustBePlayed(kind job.Kind) (r gmx.Revert, refused bool) {
	defer func() { refused = recover() != nil }()
	return gmx.DecodeRevert(gone(kind, chain.Hash{1}).data), false
}
