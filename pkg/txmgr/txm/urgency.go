package txm

import (
	"slices"

	"perpkeeper/pkg/job"
)

// Above reports whether a lane is more urgent than another.
func Above(lane, other job.Lane) bool {
	return slices.Index(job.Lanes(), lane) < slices.Index(job.Lanes(), other)
}

// Pays reports whether a lane's transaction of a gas limit may pay what nodes ask for at the least. One that may not is
// not claimed: it would not be mined, and neither would anything behind its nonce. The percentile of [Policy.First] is
// no bound: who cannot keep up with the others may well be mined.
func (p Policy) Pays(l job.Lane, gas uint64, m Market) bool {
	return p.ceiling(l, Exec, gas) >= m.Suggested
}

// Inherit returns the lane that each of a signer's pending transactions, which are given by nonce, is to be paid and
// pressed for: the most urgent one among its own, those of the pending transactions behind it, and that of what waits
// for a nonce; waiting is empty for nothing. Nothing behind a nonce is mined before it (priority inheritance). A
// pending transaction lends its lane to those before it while it is to be executed: not when it is mined, or its job
// was given up, or presses decides that it is not ours to press.
func Inherit(inFlight []PendingTx, waiting job.Lane, presses func(PendingTx) bool) []job.Lane {
	inherited := make([]job.Lane, len(inFlight))
	behind := waiting
	for i, f := range slices.Backward(inFlight) {
		own := f.Intent.Job.Kind.Lane()
		inherited[i] = own
		if behind != "" && Above(behind, own) {
			inherited[i] = behind
		}
		if f.Mined == nil && !f.Leaving() && presses(f) && (behind == "" || Above(own, behind)) {
			behind = own
		}
	}
	return inherited
}

// For is the lane that a pending transaction is paid and pressed for.
func (s Observation) For(f PendingTx) job.Lane {
	if s.Lane == "" {
		return f.Intent.Job.Kind.Lane()
	}
	return s.Lane
}

// CancelsForUrgent reports whether a pending transaction makes way for what is behind it, if it cannot be mined
// otherwise: that is more urgent than what it is to execute.
func (s Observation) CancelsForUrgent(f PendingTx) bool {
	return !f.Leaving() && Above(s.For(f), f.Intent.Job.Kind.Lane())
}
