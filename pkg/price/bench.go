package price

import (
	"fmt"
	"time"

	"perpkeeper/pkg/chain"
)

// seat is one source's part in the prices of one token.
type seat struct {
	pulse    pulse
	seen     uint64    // time of the newest report looked at, ms
	passed   *Report   // the newest that passed
	before   *Report   // what the next is compared with: passed, or what another source had emitted when this one stepped in
	withheld []Report  // a run that is not confirmed yet, oldest first
	claimed  time.Time // when the newest of the run came
	disputed bool      // other sources deviate, and a run has been confirmed in spite of it
}

// bench judges the reports of one token. It has no clock and does no input or output.
type bench struct {
	token   chain.Address
	rules   *rules
	seats   []*seat // in order of preference
	serving int
	emitted *Report
}

// rules are what all benches share.
type rules struct {
	gates    Gates
	failover Failover
	maxAge   []time.Duration // of each source
	after    []time.Duration
}

// verdict is what became of reports.
type verdict struct {
	emit     []Report // to be handed on, ascending by time
	repeated int
	released []int // for each report that was withheld before and passed now, whose it was
	refused  []refusal
}

type refusal struct {
	reason Reason
	err    error
}

// newBench waits for the source that is preferred for a token as if it had just given a report.
func newBench(token chain.Address, r *rules, preferred int, now time.Time) *bench {
	b := &bench{token: token, rules: r, serving: preferred}
	for range r.after {
		b.seats = append(b.seats, &seat{})
	}
	b.seats[preferred].pulse.beat(now, 0)
	return b
}

// hear judges a report of a source.
func (b *bench) hear(from int, r Report, now time.Time) (v verdict) {
	s := b.seats[from]
	if r.TimeMs <= s.seen {
		v.repeated++
		return v
	}
	if reason, err := b.rules.gates.look(r, uint64(now.UnixMilli()), b.rules.maxAge[from]); reason != "" {
		v.refused = append(v.refused, refusal{reason, err})
		return v
	}
	s.seen = r.TimeMs
	b.weigh(&v, from, r, now)
	b.witness(&v, from, now)
	return v
}

// weigh compares a report with what is known, and passes it or withholds it.
func (b *bench) weigh(v *verdict, from int, r Report, now time.Time) {
	s, g := b.seats[from], b.rules.gates
	agree, deviate := b.ask(from, r, now)
	jumps := s.before != nil && apart(r, *s.before, g.MaxJump)
	if !deviate {
		s.disputed = false
	}
	if agree || !jumps && (!deviate || s.disputed) {
		b.pass(v, from, r, now)
		return
	}
	if n := len(s.withheld); n > 0 && apart(r, s.withheld[n-1], g.MaxJump) {
		s.withheld = nil // the run did not hold; its reports were counted when they were withheld
	}
	if len(s.withheld)+1 >= g.Confirmations {
		s.disputed = deviate
		b.pass(v, from, r, now)
		return
	}
	s.withheld, s.claimed = append(s.withheld, r), now
	if jumps {
		v.refused = append(v.refused, refusal{Jump, fmt.Errorf("%s jumps from %s..%s to %s..%s", b.token, s.before.Min, s.before.Max, r.Min, r.Max)})
		return
	}
	v.refused = append(v.refused, refusal{Deviation, fmt.Errorf("%s at %s..%s is not what other sources say", b.token, r.Min, r.Max)})
}

// ask tells whether another source agrees with a report, be its own word withheld or not, and whether one that lives deviates while none agrees.
func (b *bench) ask(from int, r Report, now time.Time) (agree, deviate bool) {
	for i, other := range b.seats {
		if i == from {
			continue
		}
		if n := len(other.withheld); n > 0 && now.Sub(other.claimed) <= b.rules.after[i] && !apart(r, other.withheld[n-1], b.rules.gates.MaxDeviation) {
			return true, false
		}
		if other.passed == nil || !other.pulse.alive(now, b.rules.after[i]) {
			continue
		}
		if !apart(r, *other.passed, b.rules.gates.MaxDeviation) {
			return true, false
		}
		deviate = true
	}
	return false, deviate
}

// pass takes a report and the run before it that it confirms.
func (b *bench) pass(v *verdict, from int, r Report, now time.Time) {
	s := b.seats[from]
	run := s.withheld
	if n := len(run); n > 0 && apart(r, run[n-1], b.rules.gates.MaxJump) {
		run = nil // it confirms the price before the run, not the run
	}
	for range run {
		v.released = append(v.released, from)
	}
	for _, confirmed := range append(run, r) {
		if from == b.serving {
			b.emit(v, confirmed)
		}
	}
	s.withheld, s.passed, s.before = nil, &r, &r
	s.pulse.beat(now, b.rules.after[from])
}

// emit hands a report on unless a newer one was.
func (b *bench) emit(v *verdict, r Report) {
	if b.emitted != nil && r.TimeMs <= b.emitted.TimeMs {
		v.repeated++
		return
	}
	b.emitted = &r
	v.emit = append(v.emit, r)
}

// witness lets what a source just said confirm what the others' runs claim.
func (b *bench) witness(v *verdict, by int, now time.Time) {
	said := b.seats[by].passed
	if said == nil || !b.seats[by].pulse.alive(now, b.rules.after[by]) {
		return
	}
	for i, s := range b.seats {
		n := len(s.withheld)
		if i == by || n == 0 || apart(s.withheld[n-1], *said, b.rules.gates.MaxDeviation) {
			continue
		}
		newest := s.withheld[n-1]
		s.withheld = s.withheld[:n-1]
		v.released = append(v.released, i)
		b.pass(v, i, newest, now)
	}
}

// elect lets another source serve if it is time to. What that one said last is emitted, unless it is a jump from what was emitted: then what it says
// next is compared with that, and must be confirmed.
func (b *bench) elect(now time.Time) (v verdict, changed bool) {
	pulses := make([]*pulse, len(b.seats))
	for i, s := range b.seats {
		pulses[i] = &s.pulse
	}
	next := b.rules.failover.elect(pulses, b.rules.after, b.serving, now)
	if next == b.serving {
		return v, false
	}
	b.serving = next
	s := b.seats[next]
	switch {
	case b.emitted != nil && apart(*s.passed, *b.emitted, b.rules.gates.MaxJump):
		s.before = b.emitted
	case b.emitted == nil || s.passed.TimeMs > b.emitted.TimeMs:
		b.emit(&v, *s.passed)
	}
	return v, true
}

// silent is how long the serving source has given no report that passes; nothing while that is within bounds and there was a report at all.
func (b *bench) silent(now time.Time) time.Duration {
	p := &b.seats[b.serving].pulse
	if b.emitted != nil && p.alive(now, b.rules.after[b.serving]) {
		return 0
	}
	return max(now.Sub(p.last), 1)
}
