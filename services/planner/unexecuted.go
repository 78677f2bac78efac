package planner

import (
	"github.com/rs/zerolog"

	"perpkeeper/pkg/job"
)

// unexecuted reports jobs that could have been executed, and that no keeper has (TIER-11). Orders and requests that
// expired are reported once each, while that is recent: a keeper that was down, or could not reach the chain, finds
// them only then, so that no sender has ever received them. Jobs that a price made due are reported each time they are
// renewed, because only the planner knows that their condition has held without a break.
type unexecuted struct {
	metrics  *Metrics
	log      zerolog.Logger
	reported map[string]uint64 // job ids, and until when (ms) they are kept
}

// reportWithinMs is for how long (ms) after it expired an order or request is reported: the state keeps it until its
// owner cancels it, which may be never.
const reportWithinMs = 15 * 60 * 1000

// see takes a job that has expired, at a time of the state (ms).
func (o *unexecuted) see(j job.Job, nowMs uint64) {
	until := j.ExpiresMs + reportWithinMs
	if _, reported := o.reported[j.ID]; reported || until < nowMs {
		return
	}
	if o.reported == nil {
		o.reported = map[string]uint64{}
	}
	for id, old := range o.reported {
		if old < nowMs {
			delete(o.reported, id)
		}
	}
	o.reported[j.ID] = until
	o.metrics.expired.WithLabelValues(string(j.Kind)).Inc()
	o.log.Error().Str("job", j.ID).Str("account", j.Account.Hex()).Uint64("expired_ms", j.ExpiresMs).
		Msg("no keeper has executed this job in time: the venue takes it no more, and it can only be cancelled")
}

// waited takes a job that was due without a break for as long as jobs may be, and is renewed.
func (o *unexecuted) waited(j job.Job) {
	o.metrics.renewed.WithLabelValues(string(j.Kind)).Inc()
	o.log.Error().Str("job", j.ID).Str("account", j.Account.Hex()).Uint64("renewed_ms", j.DueSinceMs).
		Msgf("no keeper has executed this job within %d s, and its condition has held all the while", longest)
}
