package txmanager

import (
	"context"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// report publishes what has ended, and what was given up to those who want to know of it, and notes that it did: at
// least once each.
type report struct {
	duty
	ended   Publisher // of all that has ended
	givenUp Publisher // of what was given up
}

// pass publishes until nothing is left.
func (r report) pass(ctx context.Context) error {
	const atOnce = 100
	for {
		ended, err := r.store.Unreported(ctx, r.signer, atOnce)
		if err != nil || len(ended) == 0 {
			return err
		}
		if err := r.ended.Publish(ctx, ended); err != nil {
			return err
		}
		if err := r.givenUp.Publish(ctx, ended); err != nil {
			return err
		}
		ids := make([]int64, len(ended))
		for i, e := range ended {
			ids[i] = e.Intent.ID
		}
		if err := r.store.Reported(ctx, r.term.Fence(), ids); err != nil {
			return err
		}
		r.count(ended)
	}
}

func (r report) count(ended []txm.Ended) {
	for _, e := range ended {
		i := e.Intent
		r.metrics.jobs.WithLabelValues(string(i.Job.Kind), string(i.Outcome)).Inc()
		if i.GivenUp {
			r.metrics.givenUp.WithLabelValues(string(i.Job.Kind)).Inc()
		}
		level := zerolog.InfoLevel
		if i.Outcome.Failure() || i.Outcome == job.Foreign {
			level = zerolog.ErrorLevel
		}
		r.log.WithLevel(level).Str("job", i.Job.ID).Uint32("attempt", i.Attempt).Str("state", string(i.State)).
			Str("outcome", string(i.Outcome)).
			Str("reason", i.Reason).Bool("given_up", i.GivenUp).Msg("ended")
	}
}
