package due

import (
	"fmt"

	"perpkeeper/pkg/job"
)

// Decision is whether something is to be executed now, with the reason.
type Decision struct {
	Due bool
	// Why is one sentence for an operator.
	Why string
	// Job is what to execute. Its id, kind and key are set in any case; the rest only if it is due. DueSinceMs is zero
	// for a price-born job: since when its condition has held, one moment cannot know.
	Job job.Job
	// Expired is true when the venue takes no report for it any more, although nobody has executed it: the job's
	// ExpiresMs is set.
	Expired bool
}

func (d Decision) not(format string, args ...any) Decision {
	d.Due, d.Why = false, fmt.Sprintf(format, args...)
	return d
}

// late ends a decision about what expired in a second.
func (d Decision) late(second uint64) Decision {
	d.Expired, d.Job.ExpiresMs = true, second*1000
	return d.not("it expired in second %d: the venue takes no report of a later time for it; it can only be cancelled",
		second)
}

// yes completes a decision.
func (d Decision) yes(m *Moment, format string, args ...any) Decision {
	d.Due, d.Why = true, fmt.Sprintf(format, args...)
	d.Job.Evidence = m.evidence(d.Job.Tokens, d.Why)
	return d
}

// PriceBorn reports whether the job was born by a price report and not by a block: its due time is the time of the
// first report at which its condition holds (TIER-9).
func (d Decision) PriceBorn() bool { return d.Due && d.Job.DueSinceMs == 0 }
