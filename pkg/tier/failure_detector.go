package tier

import (
	"slices"
	"time"
)

// Limits of TIER-10.
const (
	missesToSuspect = 3                // an owner that missed so many jobs running is suspected
	probeEvery      = 60 * time.Second // of chain time: the first job of each goes by the clock, whoever is suspected
	othersLag       = 3 * time.Second  // by how much later others apply what the suspect applies to itself
	remembered      = 15 * time.Minute // of chain time: how long jobs and changes are kept
)

// FailureDetector is what the chain shows of the other keepers: which jobs they had the time to execute, and did or did
// not. Every keeper gathers it by itself from the same facts. It is for one goroutine at a time.
//
// An owner missed a job when its whole window passed and another tier then executed the job, or a simulated call at the
// window's end would have succeeded; so a poison job, which nobody can execute, accuses nobody. Whoever missed three
// jobs running is suspected; one success clears it, and of all windows that ended before it. If all are suspected, none
// is.
//
// A window belongs to the same tier by the clock, whatever is suspected. That of a suspected tier passes to the next
// one that is not: so a suspicion takes windows from nobody but the suspect, and no job waits longer for it.
type FailureDetector struct {
	self   int
	tiers  int
	window uint64 // ms

	misses       []int    // by tier, from 1; jobs missed in a row
	suspected    []bool   // by tier, from 1
	lastExecuted []uint64 // by tier, from 1; block time (Unix ms) of the newest job it executed, 0 = none
	changes      []change
	jobs         map[string]*jobHistory
	probes       map[uint64]probe // by minute of due time
}

// probe is the job of a minute that goes by the clock, whoever is suspected: the first by due time, and of those born
// together the one of the lowest id, so that keepers that learnt of the jobs in another order choose the same.
type probe struct {
	dueSinceMs uint64
	id         string
}

// change is a moment at which a tier became suspected or was cleared.
type change struct {
	atMs      uint64
	tier      int
	suspected bool
}

// jobHistory is what is known of one job.
type jobHistory struct {
	dueSinceMs uint64
	charged    []int // tiers that have been charged with missing it
	done       bool
}

// NewEvidence returns what a keeper of the given tier knows at the start: no tier is suspected.
func NewEvidence(self, tiers int, window time.Duration) *FailureDetector {
	return &FailureDetector{
		self: self, tiers: tiers, window: uint64(window.Milliseconds()),
		misses: make([]int, tiers+1), suspected: make([]bool, tiers+1), lastExecuted: make([]uint64, tiers+1),
		jobs: map[string]*jobHistory{}, probes: map[uint64]probe{},
	}
}

// Born notes a job. Noting it again changes nothing, unless it was born anew in between: its windows begin again then,
// and those of its former life accuse nobody.
func (e *FailureDetector) Born(id string, dueSinceMs uint64) {
	var charged []int
	if c := e.jobs[id]; c != nil {
		if dueSinceMs <= c.dueSinceMs {
			return
		}
		charged = c.charged
	}
	e.jobs[id] = &jobHistory{dueSinceMs: dueSinceMs, charged: charged}
	minute := dueSinceMs / uint64(probeEvery.Milliseconds())
	first, taken := e.probes[minute]
	if !taken || dueSinceMs < first.dueSinceMs || dueSinceMs == first.dueSinceMs && id < first.id {
		e.probes[minute] = probe{dueSinceMs, id}
	}
}

// Executed notes that a tier executed a job, at the time of the block (Unix ms). Tier 0 is somebody else, who proves
// nothing about anybody. Facts must come in the chain's order, by block and log index.
//
// A job this keeper does not know was born and executed while it was away. Its windows are unknown, but whoever goes
// before its executor had one and let it pass. This is how a keeper that comes back learns what the others hold against
// it: if it did not, both it and its substitute would act.
func (e *FailureDetector) Executed(id string, by int, atMs uint64) {
	c := e.jobs[id]
	known := c != nil
	if !known {
		c = &jobHistory{dueSinceMs: atMs}
		e.jobs[id] = c
	}
	if c.done {
		return
	}
	c.done = true
	if by == 0 {
		return
	}
	age := atMs - min(atMs, c.dueSinceMs)
	for n := range age / e.window {
		e.missed(c, id, n, by, atMs)
	}
	for tier := 1; !known && tier < by; tier++ {
		e.charge(tier, atMs)
	}
	e.misses[by], e.lastExecuted[by] = 0, max(e.lastExecuted[by], atMs)
	e.set(by, false, atMs)
}

// Feasible notes, at a time (Unix ms), that a simulated call after a job's n-th window (from 0) would succeed, although
// nobody has executed the job. Only this keeper knows: it counts from now on, so that an owner that is alive has the
// others' lag to show it. Whoever can make such calls does not accuse itself.
func (e *FailureDetector) Feasible(id string, n, nowMs uint64) {
	if c := e.jobs[id]; c != nil && !c.done {
		e.missed(c, id, n, e.self, nowMs)
	}
}

// missed charges the owner of a job's n-th window, once a job, if the window was its own from the beginning to the end.
// A window that ended before the owner last executed anything does not count: when keepers that were all down return,
// they find the windows of the outage missed by each other.
func (e *FailureDetector) missed(c *jobHistory, id string, n uint64, by int, atMs uint64) {
	begins := c.dueSinceMs + n*e.window
	owner := e.ownerAt(id, n, begins)
	if owner == by || owner != e.ownerAt(id, n, begins+e.window-1) || e.lastExecuted[owner] >= begins+e.window ||
		slices.Contains(c.charged, owner) {
		return
	}
	c.charged = append(c.charged, owner)
	e.charge(owner, atMs)
}

// charge counts a missed job.
func (e *FailureDetector) charge(tier int, atMs uint64) {
	if e.misses[tier]++; e.misses[tier] >= missesToSuspect {
		e.set(tier, true, atMs)
	}
}

func (e *FailureDetector) set(tier int, suspected bool, atMs uint64) {
	if e.suspected[tier] != suspected {
		e.suspected[tier] = suspected
		e.changes = append(e.changes, change{atMs, tier, suspected})
	}
}

// Missed is how many jobs running a tier has missed.
func (e *FailureDetector) Missed(tier int) int { return e.misses[tier] }

// Suspected reports whether a tier is suspected by the facts so far.
func (e *FailureDetector) Suspected(tier int) bool { return e.suspected[tier] }

// Owner returns the tier that owns a job's n-th window (from 0) at a time (Unix ms), as this keeper has to see it: its
// own suspicion holds at once and its own clearing later, those of the others the other way round, so that two never
// think a window theirs.
func (e *FailureDetector) Owner(id string, n, nowMs uint64) int {
	return e.owner(id, n, func(tier int) bool {
		if tier == e.self {
			return e.suspectedAt(tier, nowMs, 0, othersLag)
		}
		return e.suspectedAt(tier, nowMs, othersLag, 0)
	})
}

// ownerAt is the owner of a job's n-th window as a neutral watcher sees it at a time: the same for every keeper.
func (e *FailureDetector) ownerAt(id string, n, atMs uint64) int {
	return e.owner(id, n, func(tier int) bool { return e.suspectedAt(tier, atMs, othersLag, 0) })
}

// owner is the tier whose window it is by the clock, or else the next one that is not suspected.
func (e *FailureDetector) owner(id string, n uint64, suspected func(tier int) bool) int {
	regular := e.regular(n)
	if e.isProbe(id) {
		return regular
	}
	for i := range e.tiers {
		if tier := (regular-1+i)%e.tiers + 1; !suspected(tier) {
			return tier
		}
	}
	return regular // all are suspected: none is
}

// regular is the tier to which the clock alone gives the n-th window (from 0) of any job.
func (e *FailureDetector) regular(n uint64) int { return int(n%uint64(e.tiers)) + 1 }

func (e *FailureDetector) isProbe(id string) bool {
	c := e.jobs[id]
	return c != nil && e.probes[c.dueSinceMs/uint64(probeEvery.Milliseconds())].id == id
}

// suspectedAt replays the changes of a tier up to a time, suspicions and clearings each taking effect with their lag.
func (e *FailureDetector) suspectedAt(tier int, atMs uint64, lag, clearLag time.Duration) (suspected bool) {
	for _, c := range e.changes {
		delay := lag
		if !c.suspected {
			delay = clearLag
		}
		if c.tier == tier && c.atMs+uint64(delay.Milliseconds()) <= atMs {
			suspected = c.suspected
		}
	}
	return suspected
}

// until returns a time, or an earlier one after now at which a change takes effect for this keeper, because it does so
// with a lag: whose turn a job is has to be asked again then.
func (e *FailureDetector) until(nowMs, thenMs uint64) uint64 {
	for _, c := range e.changes {
		if c.suspected != (c.tier == e.self) { // see Owner: others' suspicion and one's own clearing come late
			if at := c.atMs + uint64(othersLag.Milliseconds()); at > nowMs {
				thenMs = min(thenMs, at)
			}
		}
	}
	return thenMs
}

// Done reports whether somebody is known to have executed a job.
func (e *FailureDetector) Done(id string) bool { return e.jobs[id] != nil && e.jobs[id].done }

// Forget drops what is older than anybody asks for. Of the changes the last one of each tier stays, because it still
// holds.
func (e *FailureDetector) Forget(nowMs uint64) {
	since := nowMs - min(nowMs, uint64(remembered.Milliseconds()))
	for id, c := range e.jobs {
		if c.dueSinceMs < since {
			delete(e.jobs, id)
		}
	}
	for minute := range e.probes {
		if (minute+1)*uint64(probeEvery.Milliseconds()) < since {
			delete(e.probes, minute)
		}
	}
	last := map[int]int{}
	for i, c := range e.changes {
		last[c.tier] = i
	}
	var kept []change
	for i, c := range e.changes {
		if c.atMs >= since || last[c.tier] == i {
			kept = append(kept, c)
		}
	}
	e.changes = kept
}
