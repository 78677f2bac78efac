package txm

import (
	"context"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/lease"
)

// Again keeps when a job that failed for a cause that may pass is tried again (LIQ-10). The time is that of the
// attempt's [Rest], stored with its end, so that whoever has the lease then finds it.
type Again interface {
	// Failed lists the attempts of a signer that are to be followed by another and have not been: they failed, see
	// [Transient], within the last hour, were not given up, and are the newest of their jobs.
	Failed(ctx context.Context, signer chain.Address) ([]Failed, error)
	// Retry stores the next attempt of a job that failed, as it was last found. It refuses as [Moved] where the attempt
	// is not one that Failed would list: a planner has found the job again meanwhile, or another retry was first.
	Retry(ctx context.Context, f lease.Fence, intent int64) error
}

// Failed is an attempt that is to be followed by another.
type Failed struct {
	Intent int64
	// AtMs is the chain's time (ms) from which on the next attempt may begin.
	AtMs uint64
}

// Transient lists the outcomes after which another attempt may fare better: the transaction failed for a cause nobody
// knows, or never was on the chain.
func Transient() []job.Outcome { return []job.Outcome{job.Reverted, job.Foreign} }

func transient(o job.Outcome) bool { return slices.Contains(Transient(), o) }
