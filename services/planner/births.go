package planner

import (
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/due"
)

// births says since when the condition of a price-born job has held without a break (TIER-9): the time, in whole seconds of the price source, of the first
// report at which it held. A condition that breaks is born anew.
//
// A job that is new to this planner may be old: its condition may have held while the planner was away, or before it was given the shard. So the reports
// are walked back to the first one at which the job, judged by the state of today, would have been due. Every keeper that has the same reports comes to the
// same birth, whenever it started.
type births struct {
	quotes  *quotes
	known   map[string]uint64 // ms, of the jobs that are live
	moments map[momentKey]*due.Moment
}

// momentKey names a moment of the past: a market's reports as they were in a second.
type momentKey struct {
	market chain.Address
	second uint64
}

// longest is how far back a birth is looked for, in seconds: what is older is beyond the age at which jobs end or are born anew.
const longest = 300

func newBirths(q *quotes) *births { return &births{quotes: q, known: map[string]uint64{}} }

// begin starts a pass: the state has changed, so moments of the past look different now.
func (b *births) begin() { b.moments = map[momentKey]*due.Moment{} }

// of returns the birth (ms) of a job that is due now, in a market with these tokens, the index token first. Decide says whether it would have been due at
// another moment.
func (b *births) of(d due.Decision, now *due.Moment, decide func(*due.Moment) due.Decision) uint64 {
	if birth, known := b.known[d.Job.ID]; known {
		return birth
	}
	index := d.Job.Tokens[0]
	second := now.Quotes[index].Second()
	for end := second - min(second, longest); ; {
		earlier, known := b.quotes.board.NewestWithin(index, end, second-1)
		if !known || !decide(b.moment(now, d.Job.Market, d.Job.Tokens, earlier.Second())).Due {
			break
		}
		second = earlier.Second()
	}
	b.known[d.Job.ID] = second * 1000
	return second * 1000
}

// moment is the state of now with the reports of then.
func (b *births) moment(now *due.Moment, market chain.Address, tokens []chain.Address, second uint64) *due.Moment {
	key := momentKey{market, second}
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

// ended forgets a job that is no longer due.
func (b *births) ended(id string) { delete(b.known, id) }
