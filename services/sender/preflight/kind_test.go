package preflight

import (
	"errors"
	"slices"
	"testing"

	"perpkeeper/pkg/job"
)

// Whoever adds a kind of job and forgets what is checked of it is told here.
func TestEveryKindIsChecked(t *testing.T) {
	away := errors.New("connection refused")
	for _, kind := range slices.Concat(job.Kinds(), job.Cancels()) {
		r, known := ruleOf(kind)
		if !known || r.pending == nil || r.keys == nil {
			t.Errorf("%s: what is checked of it is not whole", kind)
			continue
		}
		_, _, err := pending{written{err: away}, false, noGlv}.ask(t.Context(), job.Job{Kind: kind})
		if !errors.Is(err, away) {
			t.Errorf("%s: the state is not asked: %v", kind, err)
		}
	}
	_, v, err := pending{written{}, false, noGlv}.ask(t.Context(), job.Job{Kind: "?"})
	if err != nil || v.Outcome != job.Refused {
		t.Errorf("a kind that this build does not know: %+v, %v", v, err)
	}
}
