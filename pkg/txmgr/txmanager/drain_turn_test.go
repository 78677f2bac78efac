package txmanager

import (
	"context"
	"testing"
	"time"

	"perpkeeper/pkg/job"
)

// windows has the turn until it is told otherwise.
type windows struct {
	alone
	over *Verdict
}

func (w windows) Ask(job.Job) Turn {
	if w.over != nil {
		return Turn{Verdict: *w.over}
	}
	return Turn{Mine: true}
}

// TIER-9: the turn is asked for again right before the claim, because the stages may have taken long.
func TestDrainClaimsNothingLate(t *testing.T) {
	turns := &windows{}
	o := newQueueTest(t, func(job.Job) (Verdict, error) {
		turns.over = &Verdict{Kind: Defer, Reason: "the next window"}
		return Verdict{}, nil
	})
	o.turns, o.claim = turns, func(context.Context, []*Task) (Verdict, error) {
		t.Error("claimed after the window's end")
		return Verdict{}, nil
	}
	o.queue(t, "a")
	if err := o.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(o.trail) != 1 || len(o.deferrals) != 1 || len(o.outcomes(t)) != 0 {
		t.Errorf("looked at %v, sleeping %v, ended %v", o.trail, o.deferrals, o.outcomes(t))
	}
}

// TIER-11: other tiers' windows are no waiting of a task's own: it is given up for its age only when it has waited so
// long in turns of its own.
func TestDrainIsPatientWithOthers(t *testing.T) {
	now := time.Now()
	answer := Verdict{Kind: Defer, Reason: "the Master's window"}
	o := newQueueTest(t, func(job.Job) (Verdict, error) { return answer, nil })
	o.clock, o.maxWait = func() time.Time { return now }, time.Nanosecond
	o.queue(t, "a")
	pass := func() {
		t.Helper()
		clear(o.deferrals)
		if err := o.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	pass()
	answer = Wait("no report yet")
	pass() // it has just got its turn
	if got := o.outcomes(t); len(got) != 0 {
		t.Fatalf("ended: %v", got)
	}
	now = now.Add(time.Second)
	pass()
	if got := o.outcomes(t); got["a"] != job.Expired || len(o.yielded) != 0 {
		t.Errorf("ended: %v, remembered %v", got, o.yielded)
	}
}
