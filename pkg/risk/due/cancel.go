package due

import (
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// Cancel decides about clearing away what another decision has found expired: a request, or a market order. Orders that
// wait for a price never expire, and are never cancelled: the venue would let a keeper do that too. Whoever cancels
// pays for it, and the execution fee goes back to the owner.
//
// The job is born in the second from which on the venue lets a keeper cancel, which is the last in which it takes a
// report. It has no end; like what a price made due it is renewed at a fixed age, see [job.RenewedAfter].
func (m *Moment) Cancel(expired Decision) Decision {
	j := expired.Job
	kind, has := j.Kind.Cancel()
	d := Decision{Job: job.Job{
		ID: job.CancelID(j), Kind: kind, Key: j.Key, Account: j.Account, Market: j.Market, Class: job.ClassCleanup,
	}}
	switch {
	case !expired.Expired:
		return d.not("it has not expired")
	case !has:
		return d.not("the venue lets nobody cancel a %s", j.Kind)
	case !m.Rules.CancelExpired:
		return d.not("%s: by its owner, or by a keeper with planner.cancel_expired", expired.Why)
	case !perp.KeepersCancel(m.Rows):
		return d.not("%s: by its owner, because contracts before v2.2c let no keeper do it", expired.Why)
	}
	life := uint64(job.RenewedAfter.Milliseconds())
	d.Job.DueSinceMs = j.ExpiresMs + (m.Block.TimeMs-min(m.Block.TimeMs, j.ExpiresMs))/life*life
	return d.yes(m, "it expired in second %d, and nobody has cancelled it", j.ExpiresMs/1000)
}
