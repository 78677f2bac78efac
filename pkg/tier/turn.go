package tier

import (
	"time"

	"perpkeeper/pkg/job"
)

// Job is the part of a job that a policy needs.
type Job struct {
	ID string
	// DueSinceMs is when the job came to be, on the chain's clock (Unix ms), the same for every keeper (TIER-9).
	DueSinceMs uint64
	// FoundMs is when this keeper first found it (ms since it started). Only the policy delay looks at it.
	FoundMs uint64
	// LifeEndsMs is when the job is renewed if it is still due (Unix ms, chain's clock); 0 = never. Only the policy
	// windows looks at it.
	LifeEndsMs uint64
}

// Of returns what a policy needs of a job that this keeper first found at a time (ms since it started).
func Of(j job.Job, foundMs uint64) Job {
	return Job{ID: j.ID, DueSinceMs: j.DueSinceMs, FoundMs: foundMs, LifeEndsMs: j.LifeEndsMs()}
}

// Turn is the answer of a policy: whether a job is this keeper's to execute now, and until when.
type Turn struct {
	Mine bool
	// EndsMs is when a turn that is mine ends (Unix ms, chain's clock): nothing may be sent from then on. Zero = it
	// does not end.
	EndsMs uint64
	// NextMs is when to ask again, if it is not mine now; it may come earlier by evidence.
	NextMs uint64
	// Owner is the tier whose turn it is, 0 where the policy knows none.
	Owner int
	// Window counts the windows of the job's life, from 0; 0 where the policy has none.
	Window uint64
	// From is the tier that was to act before the owner: the last one but the owner to which the clock has given a
	// window. 0 = nobody was.
	From int
	// Substitute is true when the window is that of From by the clock, which is suspected.
	Substitute bool
	// EndedMs is since when (Unix ms, chain's clock) the life of the job is over, and it is nobody's until the word of
	// its next due time comes; 0 = it is not over.
	EndedMs uint64
}

// Policy decides turns.
type Policy interface {
	// Turn reports whose turn a job is at a time: nowMs on the clock the policy runs on, see the policies.
	Turn(j Job, nowMs uint64) Turn
	// Since is when a job's age began (Unix ms), on the same clock.
	Since(j Job) uint64
}

// Alone is the policy of a keeper that shares with nobody.
type Alone struct{}

// Turn implements [Policy]: always mine.
func (Alone) Turn(Job, uint64) Turn { return Turn{Mine: true} }

// Since implements [Policy].
func (Alone) Since(j Job) uint64 { return j.DueSinceMs }

// Delay is the policy of fixed waits (TIER-1, TIER-7): each tier waits its own delay after it found the job, and a
// keeper that has just started waits at least the recovery buffer. Its clock is the time since its start, which nobody
// sets. After a common restart a Master with the usual buffer and the first backup both wait 30 s and both fire;
// Windows does not have this fault.
type Delay struct{ Delay, RecoveryBuffer time.Duration }

// Turn implements [Policy].
func (d Delay) Turn(j Job, nowMs uint64) Turn {
	wait := uint64(d.Delay.Milliseconds())
	if buffer := uint64(d.RecoveryBuffer.Milliseconds()); d.Recovering(nowMs) {
		wait = max(wait, buffer)
	}
	if due := j.FoundMs + wait; nowMs < due {
		return Turn{NextMs: due}
	}
	return Turn{Mine: true}
}

// Since implements [Policy]: this machine's clock knows a job since it was found.
func (d Delay) Since(j Job) uint64 { return j.FoundMs }

// Recovering reports whether the recovery buffer has not passed yet.
func (d Delay) Recovering(nowMs uint64) bool {
	return nowMs < uint64(d.RecoveryBuffer.Milliseconds())
}

// Windows gives each tier the job for a window of its age, in turn, for as long as its life lasts (TIER-9). From then
// on it is nobody's until the next life is known: keepers learn of that at slightly different moments, and its first
// window may be another tier's than the old life's next one. The next tier stands in for one that is suspected; see
// [Evidence]. It runs on the chain's clock and has no start-up delay: whether this keeper knows enough to act is the
// question of the freshness gate (TIER-8).
type Windows struct {
	Self     int
	Window   time.Duration
	Detector *FailureDetector
}

// Turn implements [Policy].
func (w Windows) Turn(j Job, nowMs uint64) Turn {
	window := uint64(w.Window.Milliseconds())
	age := nowMs - min(nowMs, j.DueSinceMs)
	n := age / window
	if j.LifeEndsMs > 0 && nowMs >= j.LifeEndsMs {
		return Turn{EndedMs: j.LifeEndsMs, NextMs: nowMs + window}
	}
	next := j.DueSinceMs + (n+1)*window
	if j.LifeEndsMs > 0 {
		next = min(next, j.LifeEndsMs)
	}
	ends := next - uint64(Guard.Milliseconds())
	t := Turn{Owner: w.Detector.Owner(j.ID, n, nowMs), Window: n}
	t.Substitute = t.Owner != w.Detector.regular(n)
	t.From = w.before(t.Owner, n)
	if t.Owner == w.Self && nowMs < ends {
		t.Mine, t.EndsMs = true, ends // what is known already and takes effect later only gives
	} else {
		t.NextMs = w.Detector.until(nowMs, next)
	}
	return t
}

// before is the last tier but the owner to which the clock has given a window up to the n-th, or 0.
func (w Windows) before(owner int, n uint64) int {
	if tier := w.Detector.regular(n); tier != owner {
		return tier
	}
	if n > 0 && w.Detector.tiers > 1 {
		return w.Detector.regular(n - 1)
	}
	return 0
}

// Since implements [Policy].
func (w Windows) Since(j Job) uint64 { return j.DueSinceMs }
