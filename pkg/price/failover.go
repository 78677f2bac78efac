package price

import "time"

// Failover bounds how long a source without reports is waited for.
type Failover struct {
	// After: how long a source may give no report that passes before the next one steps in; a source may have its own
	// bound.
	After time.Duration
	// ReturnAfter: how long a source must have given reports without a break before it takes back its place.
	ReturnAfter time.Duration
}

// DefaultFailover is quick to leave and slow to return, so that a source that flaps is not followed.
func DefaultFailover() Failover {
	return Failover{After: 5 * time.Second, ReturnAfter: 30 * time.Second}
}

// liveness is how regularly one source gives reports of one token that pass. Times are those of this machine's
// monotonic clock.
type liveness struct {
	last  time.Time // of the newest; zero if there was none
	since time.Time // when the present run without a break began
}

// passed notes a report that passed. A pause longer than the bound is a break.
func (p *liveness) passed(now time.Time, bound time.Duration) {
	if !p.alive(now, bound) {
		p.since = now
	}
	p.last = now
}

func (p *liveness) alive(now time.Time, bound time.Duration) bool {
	return !p.last.IsZero() && now.Sub(p.last) <= bound
}

// steady reports whether the source has been alive for so long.
func (p *liveness) steady(now time.Time, bound, long time.Duration) bool {
	return p.alive(now, bound) && now.Sub(p.since) >= long
}

// elect returns which of the sources, in order of preference, is to serve, when one serves now. One that lives leaves
// its place only to one it is a substitute for, and only to a steady one; one that does not live leaves it to the first
// that lives. Nobody leaves while there is nobody else.
func (f Failover) elect(pulses []*liveness, bounds []time.Duration, serves int, now time.Time) int {
	lives := pulses[serves].alive(now, bounds[serves])
	for i, p := range pulses {
		if lives && i < serves && p.steady(now, bounds[i], f.ReturnAfter) || !lives && p.alive(now, bounds[i]) {
			return i
		}
	}
	return serves
}
