package turns

import (
	"context"
	"fmt"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/pkg/txmgr/txmanager"
)

// Ask returns how a job stands now. What the sender does by itself, to spend a number, is nobody else's. The verdict on
// a task whose turn has passed is to wait for the next one, however often it takes, up to the venue's own deadline.
func (t *Tracker) Ask(j job.Job) txmanager.Turn {
	turn := t.turn(j)
	passed := !turn.Mine && turn.Owner != t.cfg.Tier.Priority
	if turn.EndedMs > 0 {
		passed = t.lapsed(turn) // until then the next life may be ours
	}
	return txmanager.Turn{Mine: turn.Mine, Passed: passed, Verdict: t.verdict(j, turn)}
}

// renewedWithinMs is for how long (ms, chain's clock) the next due time is awaited after a life is over.
const renewedWithinMs = uint64(3 * job.SaidEvery / time.Millisecond)

// lapsed reports whether the life of a job is over and no planner has published the next one: its condition is gone.
func (t *Tracker) lapsed(turn tier.Turn) bool {
	return turn.EndedMs > 0 && t.now() >= turn.EndedMs+renewedWithinMs
}

func (t *Tracker) turn(j job.Job) tier.Turn {
	if !t.cfg.Tier.Enabled || j.Kind == txm.Filler {
		return tier.Turn{Mine: true}
	}
	return asking{t}.Turn(t.find(j), t.now())
}

func (t *Tracker) verdict(j job.Job, turn tier.Turn) txmanager.Verdict {
	switch {
	case turn.Mine:
		return txmanager.Verdict{}
	case t.doneAt(j) > j.Evidence.Block.Number:
		return txmanager.End(job.SkippedDone, "it was executed after the state it was found in")
	case j.ExpiresMs > 0 && t.cfg.Head.Now() > j.ExpiresMs:
		return txmanager.End(job.Expired, "the venue takes no reports for it any more")
	case t.lapsed(turn):
		return txmanager.End(job.DroppedRecovered,
			"its life is over, and no planner has published that it is renewed")
	}
	v := txmanager.Verdict{Kind: txmanager.Defer, Reason: waitingFor(turn)}
	if now := t.now(); turn.NextMs > now {
		v.Pause = time.Duration(min(turn.NextMs-now, longestYield)) * time.Millisecond
	}
	return v
}

// Stage lets a task go on while it is this keeper's turn.
func (t *Tracker) Stage() txmanager.Stage {
	return txmanager.Stage{Name: "turn", Run: func(_ context.Context, task *txmanager.Task) (txmanager.Verdict, error) {
		turn := t.turn(task.Job())
		v := t.verdict(task.Job(), turn)
		if v.Kind == txmanager.Proceed {
			v.Reason = t.ours(turn)
		}
		return v, nil
	}}
}

// ours is by what a turn is this keeper's.
func (t *Tracker) ours(turn tier.Turn) string {
	if turn.Owner == 0 {
		return "no other keeper is waited for"
	}
	by := "by the clock"
	if turn.Substitute {
		by = fmt.Sprintf("in place of %s, which the evidence suspects", nameOf(turn.From))
	}
	return fmt.Sprintf("window %d is %s's %s, for %d ms more", turn.Window, nameOf(turn.Owner), by,
		turn.EndsMs-min(turn.EndsMs, t.now()))
}

// Observe makes a stage whose success is added to the evidence: a job that could be executed now could have been
// executed in the window before (TIER-10).
func (t *Tracker) Observe(stage txmanager.Stage) txmanager.Stage {
	run := stage.Run
	stage.Run = func(ctx context.Context, task *txmanager.Task) (txmanager.Verdict, error) {
		v, err := run(ctx, task)
		if err == nil && v.Kind == txmanager.Proceed {
			t.feasible(task.Job())
		}
		return v, err
	}
	return stage
}

// longestYield is for how long (ms) a stored task is not asked about again: the evidence may give it to us earlier.
const longestYield = 500

// feasible notes that a simulated call for a job has just succeeded: the owner of the window before had its chance
// (TIER-10).
func (t *Tracker) feasible(j job.Job) {
	if t.evidence == nil {
		return
	}
	if turn := t.turn(j); turn.Window > 0 {
		t.learn(func() { t.evidence.Feasible(j.ID, turn.Window-1, t.now()) })
	}
}

// Taken notes that a job was claimed, and logs it if it was another's before.
func (t *Tracker) Taken(j job.Job) {
	if t.evidence == nil {
		return
	}
	turn := t.turn(j)
	if turn.From == 0 || turn.Owner != t.cfg.Tier.Priority {
		return
	}
	why := "its window passed"
	if turn.Substitute {
		why = "it is suspected"
	}
	t.cfg.Metrics.takeovers.WithLabelValues(fmt.Sprint(turn.From)).Inc()
	t.cfg.Log.Info().Str("job", j.ID).Int("from", turn.From).Uint64("window", turn.Window).
		Msgf("taking over from %s: %s", nameOf(turn.From), why)
}
