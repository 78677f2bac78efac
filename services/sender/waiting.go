package sender

import (
	"context"
	"maps"
	"strconv"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier"
)

// remembered is for how long what was heard and what was executed is kept, beyond the age of any job that waits.
const remembered = 15 * time.Minute

// takeTurns stores the jobs that have waited for their turn, as soon as it has come, until ctx ends.
func (s *Sender) takeTurns(ctx context.Context) error {
	const part = "turns"
	defer s.notices.set(part, "")
	for {
		news, head := s.turns.news(), s.horizon.Next()
		for _, j := range s.turns.pass() {
			if err := s.patiently(ctx, part, func(ctx context.Context) error { return s.store(ctx, j) }); err != nil {
				return err
			}
		}
		timer := time.NewTimer(again)
		select {
		case <-news:
		case <-head:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
		timer.Stop()
	}
}

// pass returns the jobs whose turn has come, ends those that are too old, and tells how things stand.
func (t *turns) pass() []job.Job {
	if t.hasMoved() {
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

// hasMoved tells whether the evidence has changed since it was last asked.
func (t *turns) hasMoved() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	moved := t.moved
	t.moved = false
	return moved
}

// expire says that a job has left the queue because of its age (TIER-11). Nobody has executed it, which is told of what
// the venue takes no longer. Of a job without a deadline it may only mean that its condition does not hold any more:
// whether it does the planner knows, who says the job again, and tells when it has held all the while.
func (t *turns) expire(w tier.Waiting) {
	age := t.horizon.Age(w.Job.BirthMs)
	if w.Job.ExpiresMs == 0 {
		t.metrics.outlived.WithLabelValues(string(w.Job.Kind), "lapsed").Inc()
		t.log.Info().Str("job", w.Job.ID).Dur("age_ms", age).Msg("no longer waiting for a turn: it comes back if a " +
			"planner says it again")
		return
	}
	t.metrics.outlived.WithLabelValues(string(w.Job.Kind), "ended").Inc()
	t.log.Error().Str("job", w.Job.ID).Str("account", w.Job.Account.Hex()).Dur("age_ms", age).
		Msgf("no keeper has executed this job within %s", t.cfg.JobMaxAge)
}

// forget drops what nobody asks for any more.
func (t *turns) forget() {
	const every = 10 * time.Second
	chainMs, now := t.horizon.Time(), t.machine()
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.swept) < every {
		return
	}
	t.swept = now
	old := func(last time.Time) bool { return now.Sub(last) > remembered+t.cfg.JobMaxAge }
	maps.DeleteFunc(t.needs, func(_ need, s *sighting) bool { return old(s.last) })
	maps.DeleteFunc(t.found, func(_ string, f finding) bool { return old(f.last) })
	if t.evidence != nil {
		t.evidence.Forget(chainMs)
	}
}

// show sets the gauges (TIER-16).
func (t *turns) show() {
	if !t.cfg.Enabled {
		return
	}
	t.metrics.waitingJobs.Set(float64(t.queue.Len()))
	recovering := false
	t.mu.Lock()
	defer t.mu.Unlock()
	if d, is := t.policy.(tier.Delay); is {
		recovering = d.Recovering(uint64(t.machine().UnixMilli()))
	}
	for n, suspected := range t.suspects() {
		if n > 0 {
			t.metrics.suspected.WithLabelValues(strconv.Itoa(n)).Set(number(suspected))
		}
	}
	if t.evidence != nil {
		recovering = t.readMs == 0
		t.metrics.evidenceLag.Set(t.horizon.Age(t.readMs).Seconds())
	}
	t.metrics.recovering.Set(number(recovering))
}

func number(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
