package txmanager

import (
	"errors"
	"slices"
	"testing"
	"time"

	"perpkeeper/pkg/job"
)

// A pass counts after it has served the jobs that wait, and before them where nothing has been counted since something
// may have been spent: in a lease term's first pass, and after one that failed.
func TestPassCountsWhileNoJobWaits(t *testing.T) {
	var steps []string
	o := newQueueTest(t, func(job.Job) (Verdict, error) {
		steps = append(steps, "job")
		return End(job.DroppedRecovered, "healthy"), nil
	})
	o.funds = counts(func() { steps = append(steps, "count") })
	failure := errors.New("no connection")
	for _, c := range []struct {
		says string
		want []string
		err  error
	}{
		{"the first of a lease term", []string{"count", "job", "count"}, nil},
		{"one after it", []string{"job", "count"}, nil},
		{"one that fails", nil, failure},
		{"one after a failure", []string{"count", "job", "job", "count"}, nil},
	} {
		o.queue(t, c.says)
		steps, o.numbers = nil, unmoved{c.err}
		if err := o.pass(t.Context()); !errors.Is(err, c.err) || !slices.Equal(steps, c.want) {
			t.Errorf("%s: %v, %v, want %v", c.says, steps, err, c.want)
		}
	}
}

// What is counted for people and for the budget keeps no job waiting that has come meanwhile, and is not counted again
// where nothing was taken; but it is never older than a loop's longest rest.
func TestCountingKeepsNoJobWaiting(t *testing.T) {
	counted, now, called := 0, time.Now(), false
	o := newQueueTest(t, func(job.Job) (Verdict, error) { return End(job.DroppedRecovered, "healthy"), nil })
	o.funds = counts(func() { counted++ })
	o.clock, o.called = func() time.Time { return now }, func() bool { return called }
	for _, c := range []struct {
		says       string
		job, other bool // a job is queued; another one comes during the pass
		later      time.Duration
		want       int
	}{
		{"the first of a lease term counts before", false, false, 0, 1},
		{"nothing was taken", false, false, 0, 0},
		{"a job was taken", true, false, 0, 1},
		{"a job was taken, and the next one waits", true, true, 0, 0},
		{"jobs come without end", true, true, idle, 1},
		{"nothing was taken for long", false, false, idle, 1},
		{"the clock was put back", false, false, -time.Hour, 1},
	} {
		if c.job {
			o.queue(t, c.says)
		}
		counted, called, now = 0, c.other, now.Add(c.later)
		if err := o.pass(t.Context()); err != nil || counted != c.want {
			t.Errorf("%s: counted %d times, want %d; %v", c.says, counted, c.want, err)
		}
	}
}
