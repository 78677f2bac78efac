package txmanager

import (
	"context"
	"errors"
	"slices"
	"testing"

	"perpkeeper/pkg/job"
)

// A pass counts after it has served the jobs that wait, and before them where nothing has been counted since something
// may have been spent: in a tenure's first pass, and after one that failed.
func TestPassCountsWhileNoJobWaits(t *testing.T) {
	var steps []string
	o := newQueueTest(t, func(job.Job) (Verdict, error) {
		steps = append(steps, "job")
		return End(job.DroppedRecovered, "healthy"), nil
	})
	o.count = func(context.Context) error { steps = append(steps, "count"); return nil }
	failure := errors.New("no connection")
	fails := func(context.Context) error { return failure }
	succeeds := o.reconcile
	for _, c := range []struct {
		says      string
		reconcile func(context.Context) error
		want      []string
		err       error
	}{
		{"the first of a tenure", succeeds, []string{"count", "job", "count"}, nil},
		{"one after it", succeeds, []string{"job", "count"}, nil},
		{"one that fails", fails, nil, failure},
		{"one after a failure", succeeds, []string{"count", "job", "job", "count"}, nil},
	} {
		o.queue(t, c.says)
		steps, o.reconcile = nil, c.reconcile
		if err := o.pass(t.Context()); !errors.Is(err, c.err) || !slices.Equal(steps, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.says, steps, err, c.want)
		}
	}
}
