package turns

import (
	"maps"
	"strconv"
	"time"

	"perpkeeper/pkg/instrument/metric"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier"
)

// remembered is for how long what was observed and what was executed is kept, beyond the age of any job that waits.
const remembered = 15 * time.Minute

// Ready returns the jobs whose turn has come, ends those that are too old, and returns how things stand.
func (t *Tracker) Ready() []job.Job {
	if t.moved.Swap(false) {
		t.queue.LookAgain()
	}
	var ready []job.Job
	for _, w := range t.queue.Ready() {
		ready = append(ready, w.Job)
	}
	for _, w := range t.queue.Cleanup() {
		t.expire(w)
	}
	t.forget()
	t.show()
	return ready
}

// expire reports that a job has left the queue because of its age (TIER-11). It is an error only where the venue takes
// it no longer. Of a job without a deadline it may only mean that its condition does not hold any
// more: whether it does the planner knows, which publishes the job again, with since when it has held.
func (t *Tracker) expire(w tier.Waiting) {
	age := t.cfg.Head.Age(w.Job.DueSinceMs)
	if w.Job.ExpiresMs == 0 {
		t.cfg.Log.Info().Str("job", w.Job.ID).Dur("age_ms", age).
			Msg("no longer waiting for a turn: it comes back if a " +
				"planner says it again")
		return
	}
	t.cfg.Log.Error().Str("job", w.Job.ID).Str("account", w.Job.Account.Hex()).Dur("age_ms", age).
		Msgf("no keeper has executed this job within %s", t.cfg.Tier.JobMaxAge)
}

// Waits reports whether a job waits for its turn.
func (t *Tracker) Waits(id string) bool { return t.queue.Exists(id) }

// forget drops what nobody asks for any more.
func (t *Tracker) forget() {
	const every = 10 * time.Second
	chainMs, now := t.cfg.Head.Time(), t.cfg.Clock()
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.swept) < every {
		return
	}
	t.swept = now
	old := func(last time.Time) bool { return now.Sub(last) > remembered+t.cfg.Tier.JobMaxAge }
	maps.DeleteFunc(t.needs, func(_ job.Need, s *sighting) bool { return old(s.last) })
	maps.DeleteFunc(t.found, func(_ string, f finding) bool { return old(f.last) })
	if t.evidence != nil {
		t.evidence.Forget(chainMs)
	}
}

// show sets the gauges (TIER-16).
func (t *Tracker) show() {
	if !t.cfg.Tier.Enabled {
		return
	}
	t.cfg.Metrics.waitingJobs.Set(float64(t.queue.Len()))
	recovering, now := false, t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if d, is := t.policy.(tier.Delay); is {
		recovering = d.Recovering(now)
	}
	for n, suspected := range t.suspects() {
		if n > 0 {
			t.cfg.Metrics.suspected.WithLabelValues(strconv.Itoa(n)).Set(metric.Bool(suspected))
		}
	}
	if t.evidence != nil {
		recovering = t.readMs == 0
		t.cfg.Metrics.evidenceLag.Set(t.cfg.Head.Age(t.readMs).Seconds())
	}
	t.cfg.Metrics.recovering.Set(metric.Bool(recovering))
}
