package keeperctl

import (
	"strings"
	"testing"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/replay"
)

// A difference is shown with both sentences, and is a finding; what could not be repeated is counted apart.
func TestReplayShowsDifferences(t *testing.T) {
	said := replay.PublishedJob{Job: job.Job{ID: "order:x:1",
		Evidence: job.Evidence{Reason: "the \x1b[31mtrigger was reached"}}}
	all := []replay.Repeated{
		{PublishedJob: said, Same: true, Now: "due: the same"}, {PublishedJob: said, Now: "not due: it waits"},
		{PublishedJob: said, Missing: "a branch that was left"},
	}
	var out strings.Builder
	err := printRepeated(printer{Writer: &out}, all, false)
	if err == nil || !strings.Contains(err.Error(), "1 of 3 decisions differ") {
		t.Error(err)
	}
	wantTold(t, out.String(), "3 decisions: 1 the same, 1 differ, 1 could not be repeated", "not due: it waits")
	if text := out.String(); strings.Contains(text, "\x1b") || strings.Contains(text, "left") {
		t.Error(text)
	}
	out.Reset()
	if err := printRepeated(printer{Writer: &out}, all[:1], true); err != nil ||
		!strings.Contains(out.String(), "same") {
		t.Error(out.String(), err)
	}
}
