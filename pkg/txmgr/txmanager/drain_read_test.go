package txmanager

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"perpkeeper/pkg/job"
)

// What stages need is read once for a batch, before the first stage of any. Where it cannot be read, the jobs stay.
func TestDrainReadsOnceForABatch(t *testing.T) {
	var reads []int
	var steps []string
	var looked sync.Mutex
	o := newQueueTest(t, func(job.Job) (Verdict, error) {
		looked.Lock()
		defer looked.Unlock()
		steps = append(steps, "stage")
		return End(job.DroppedRecovered, "healthy"), nil
	})
	away := errors.New("no connection")
	failing := true
	o.batch = 8
	o.read = func(_ context.Context, tasks []*Task) error {
		steps, reads = append(steps, "read"), append(reads, len(tasks))
		if failing {
			return away
		}
		return nil
	}
	o.queue(t, "a", "b")
	if err := o.pass(t.Context()); !errors.Is(err, away) || !slices.Equal(reads, []int{2}) || len(o.outcomes(t)) != 0 {
		t.Errorf("it cannot be read: %v, %v, %v", reads, err, o.outcomes(t))
	}
	failing, steps, reads = false, nil, nil
	clear(o.deferrals)
	if err := o.pass(t.Context()); err != nil || !slices.Equal(reads, []int{2}) || steps[0] != "read" ||
		len(steps) != 3 || len(o.outcomes(t)) != 2 {
		t.Errorf("it can be read: %v, %v, %v, %v", reads, steps, err, o.outcomes(t))
	}
}
