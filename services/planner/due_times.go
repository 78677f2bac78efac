package planner

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/risk/due"
	"time"
)

// dueTimes records since when the condition of a price-born job has held without a break (TIER-9): the time, in whole
// seconds of the price source, of the first report at which it held. A second is judged by its newest reports
// together. A condition that breaks is born anew.
//
// A job that is new to this planner may be old: its condition may have held while the planner was away, or before it
// was given the shard. And the condition of one that is known may have broken between two passes. So the reports are
// walked back, to the last pass or to the first second at which the job, judged by the state of today, would have been
// due. Every keeper that has the same reports comes to the same due time, whenever it started and however often it
// looked.
//
// A job as old as jobs may become is renewed (TIER-11), at the last whole multiple of that age in the source's time:
// how much older it is need not be known to know this one, so keepers agree on it as well. The first such multiple may
// lie far back, so that the new life begins in any tier's window. That is the moment to tell that no keeper has
// executed it: its condition has held all the while. A condition that held for a moment only leaves nothing to tell of.
type dueTimes struct {
	quotes  *quotes
	known   map[string]run // of the jobs that are live
	moments map[momentKey]*due.Moment
}

// run is a condition that holds: since when, as its job was last born, and when it was last looked at, in seconds of
// the reports. Began is since when it has held: a job that is renewed is as late as before.
type run struct{ since, seen, began uint64 }

// momentKey names a moment of the past: the reports of some tokens as they were in a second. Jobs of one market may ask
// for different tokens, by their paths.
type momentKey struct {
	tokens string
	second uint64
}

// longest is the age, in seconds, at which a job is renewed, and by how much two reports of a run may be apart.
// Together they are the board's window.
const longest = uint64(job.RenewedAfter / time.Second)

func newDueTimes(q *quotes) *dueTimes { return &dueTimes{quotes: q, known: map[string]run{}} }

// begin starts a pass: the state has changed, so moments of the past look different now.
func (b *dueTimes) begin() { b.moments = map[momentKey]*due.Moment{} }

// of returns the due time (ms) of a job that is due now, and whether it is renewed now, having been due without a break
// for as long as jobs may be. Was reports whether it would have been due at another moment.
func (b *dueTimes) of(d due.Decision, now *due.Moment, was func(*due.Moment) bool) (dueSinceMs uint64, again bool) {
	var second uint64
	for _, token := range d.Job.Tokens {
		second = max(second, now.Quotes[token].Second())
	}
	since, last := b.since(d, now, second, was), b.known[d.Job.ID]
	began := since
	if since == last.since {
		began = last.began
	}
	again = second-since >= longest
	if again {
		since = second / longest * longest
	}
	b.known[d.Job.ID] = run{since, second, began}
	return since * 1000, again
}

// beganMs is since when (ms) the condition of a live job has held, as far as this planner knows; its due time, where no
// price has made it due.
func (b *dueTimes) beganMs(j job.Job) uint64 {
	if r, known := b.known[j.ID]; known && j.DueSinceMs == r.since*1000 {
		return r.began * 1000
	}
	return j.DueSinceMs
}

// since walks back from a second at which the job is due.
func (b *dueTimes) since(d due.Decision, now *due.Moment, second uint64, was func(*due.Moment) bool) uint64 {
	last := b.known[d.Job.ID]
	for first := second; ; {
		if first <= last.seen {
			return last.since
		}
		earlier, reported := b.quotes.before(d.Job.Tokens, first)
		if second-first >= longest || !reported || !was(b.moment(now, d.Job.Tokens, earlier)) {
			return first
		}
		first = earlier
	}
}

// moment is the state of now with the reports of then.
func (b *dueTimes) moment(now *due.Moment, tokens []chain.Address, second uint64) *due.Moment {
	key := momentKey{second: second}
	for _, token := range tokens {
		key.tokens += string(token[:])
	}
	m, known := b.moments[key]
	if !known {
		m = &due.Moment{
			Block: now.Block, Generation: now.Generation, Rows: now.Rows, Rules: now.Rules,
			Quotes: b.quotes.at(tokens, second-min(second, longest), second), At: second,
		}
		b.moments[key] = m
	}
	return m
}

// clear forgets all jobs.
func (b *dueTimes) clear() { b.known = map[string]run{} }

// ended forgets a job that is no longer due.
func (b *dueTimes) ended(id string) { delete(b.known, id) }
