package price

import (
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
)

// sourceState is what is known of one source for one token.
type sourceState struct {
	liveness liveness
	newest   observation
	tooEarly observation // the newest that was refused for being ahead of the clock
	passed   *Report     // the newest that passed
	// what the next is compared with: passed, or what another source had emitted when this one stepped in
	reference *Report
	withheld  []Report // a run that is not confirmed yet, oldest first
	opposed   bool     // the newest deviates from the other sources' reports
	expected  bool     // whether the source is one that should give reports of the token
}

// observation is the newest report that a source gave, whether it passed or not, and when it came. The zero value is
// none.
type observation struct {
	report Report
	at     time.Time
}

// current reports whether the report came within a bound before now.
func (w observation) current(now time.Time, bound time.Duration) bool {
	return !w.at.IsZero() && now.Sub(w.at) <= bound
}

// arbiter decides which reports of one token pass. It has no clock and does no input or output.
type arbiter struct {
	token   chain.Address
	rules   *rules
	sources []*sourceState // in order of preference
	serving int
	emitted *Report
	began   time.Time
}

// rules are what all arbiters share.
type rules struct {
	gates    Gates
	failover Failover
	maxAge   []time.Duration // of each source
	after    []time.Duration
	tokens   [][]chain.Address          // that each source is asked for; none = whatever it names
	clock    func(now time.Time) uint64 // the chain's, in Unix ms; nil, or 0 while it is not known: this machine's
}

// nowMs is the time that reports are judged by.
func (r *rules) nowMs(now time.Time) uint64 {
	if r.clock != nil {
		if ms := r.clock(now); ms > 0 {
			return ms
		}
	}
	return uint64(now.UnixMilli())
}

// asks reports whether a source should give reports of a token.
func (r *rules) asks(source int, token chain.Address) bool {
	return source >= len(r.tokens) || len(r.tokens[source]) == 0 || slices.Contains(r.tokens[source], token)
}

// decision is what became of reports.
type decision struct {
	emit     []Report // to be handed on, ascending by time
	repeated int
	released []int // for each report that was withheld before and passed now, the index of its source
	refused  []refusal
}

type refusal struct {
	reason reason
	err    error
}

// newArbiter returns an arbiter of a token. It waits for the preferred source as if that had just given a report.
func newArbiter(token chain.Address, r *rules, preferred int, now time.Time) *arbiter {
	a := &arbiter{token: token, rules: r, serving: preferred, began: now}
	for i := range r.after {
		a.sources = append(a.sources, &sourceState{expected: r.asks(i, token)})
	}
	a.sources[preferred].liveness.passed(now, 0)
	return a
}

// observe takes a report of a source and decides about it.
func (a *arbiter) observe(from int, r Report, now time.Time) (d decision) {
	s := a.sources[from]
	if r.TimeMs <= s.newest.report.TimeMs {
		d.repeated++
		return d
	}
	reason, err := a.rules.gates.check(r, a.rules.nowMs(now), a.rules.maxAge[from])
	if reason == future && a.timely(from, r, now) {
		reason = ""
	}
	if reason != "" {
		d.refused = append(d.refused, refusal{reason, err})
		if reason == future {
			s.tooEarly = observation{r, now}
		}
		return d
	}
	s.newest = observation{r, now}
	a.compare(&d, from, r, now)
	if s.passed != nil && s.passed.TimeMs == r.TimeMs {
		a.confirm(&d, from, now)
	}
	a.refute(from)
	return d
}

// timely reports whether another source is as far ahead of the clock with the same price: then the clock is what is
// behind.
func (a *arbiter) timely(from int, r Report, now time.Time) bool {
	g := a.rules.gates
	for i, other := range a.sources {
		for _, w := range []observation{other.newest, other.tooEarly} {
			if i != from && w.current(now, a.rules.after[i]) && !ahead(r.TimeMs, w.report.TimeMs, g.MaxAhead) &&
				!apart(r, w.report, g.MaxDeviation) {
				return true
			}
		}
	}
	return false
}

// comparable reports whether a report may be compared with the newest of a source: that came a short while ago, and its
// price was found at about the same time or later. A price that was written to the chain long ago says nothing of now,
// however new the block is that it was read in.
func (a *arbiter) comparable(i int, r Report, now time.Time) bool {
	w := a.sources[i].newest
	return w.current(now, a.rules.after[i]) && !ahead(r.PriceMs(), w.report.PriceMs(), a.rules.failover.After)
}

// agreement reports whether another source agrees with a report. While none does, it reports whether one deviates, and
// whether the deviating report is not older (refuted).
func (a *arbiter) agreement(from int, r Report, now time.Time) (agree, deviate, refuted bool) {
	for i := range a.sources {
		if i == from || !a.comparable(i, r, now) {
			continue
		}
		other := a.sources[i].newest.report
		if !apart(r, other, a.rules.gates.MaxDeviation) {
			return true, false, false
		}
		deviate, refuted = true, refuted || other.PriceMs() >= r.PriceMs()
	}
	return false, deviate, refuted
}

// missing reports whether a source that should give reports of the token has not given one, and has had no time yet.
func (a *arbiter) missing(from int, now time.Time) bool {
	for i, s := range a.sources {
		if i != from && s.expected && s.newest.at.IsZero() && now.Sub(a.began) <= a.rules.failover.After {
			return true
		}
	}
	return false
}

// compare compares the newest report of a source with what is known, and passes it or withholds it. While other sources
// give reports, one of them has to agree. A source that is alone confirms its own jumps.
func (a *arbiter) compare(d *decision, from int, r Report, now time.Time) {
	s, g := a.sources[from], a.rules.gates
	agree, deviate, refuted := a.agreement(from, r, now)
	jumps := s.reference != nil && apart(r, *s.reference, g.MaxJump)
	s.opposed = deviate
	var why refusal
	switch {
	case agree:
		a.pass(d, from, r, now, g.MaxDeviation)
		return
	case jumps:
		why = refusal{jump, fmt.Errorf("%s jumps from %s..%s to %s..%s", a.token, s.reference.Min, s.reference.Max,
			r.Min, r.Max)}
	case deviate:
		why = refusal{deviation, fmt.Errorf("%s at %s..%s deviates from all other sources", a.token, r.Min, r.Max)}
	case a.missing(from, now):
		why = refusal{alone,
			fmt.Errorf("%s at %s..%s is the first report of it, and another source has not given one yet", a.token,
				r.Min, r.Max)}
	default:
		a.pass(d, from, r, now, g.MaxJump)
		return
	}
	if n := len(s.withheld); n > 0 && apart(r, s.withheld[n-1], g.MaxJump) {
		s.withheld = nil // the run did not hold; its reports were counted when they were withheld
	}
	if !deviate && why.reason == jump && len(s.withheld)+1 >= g.Confirmations {
		a.pass(d, from, r, now, g.MaxJump)
		return
	}
	if !refuted {
		s.withheld = append(s.withheld, r)
	}
	d.refused = append(d.refused, why)
}

// pass takes a report and those of the run before it that it confirms, which are within a bound of it.
func (a *arbiter) pass(d *decision, from int, r Report, now time.Time, points uint64) {
	s := a.sources[from]
	confirmed := slices.DeleteFunc(s.withheld, func(w Report) bool { return apart(w, r, points) })
	for range confirmed {
		d.released = append(d.released, from)
	}
	for _, c := range append(confirmed, r) {
		if from == a.serving {
			a.emit(d, c)
		}
	}
	s.withheld, s.passed, s.reference, s.opposed = nil, &r, &r, false
	s.liveness.passed(now, a.rules.after[from])
}

// emit hands a report on unless a newer one was.
func (a *arbiter) emit(d *decision, r Report) {
	if a.emitted != nil && r.TimeMs <= a.emitted.TimeMs {
		d.repeated++
		return
	}
	a.emitted = &r
	d.emit = append(d.emit, r)
}

// confirm lets the newest report of a source confirm the others' withheld runs.
func (a *arbiter) confirm(d *decision, by int, now time.Time) {
	newest := a.sources[by].newest.report
	for i, s := range a.sources {
		n := len(s.withheld)
		if i != by && n > 0 && a.comparable(by, s.withheld[n-1], now) &&
			!apart(s.withheld[n-1], newest, a.rules.gates.MaxDeviation) {
			a.release(d, i, now)
		}
	}
}

// release passes the run of a source.
func (a *arbiter) release(d *decision, i int, now time.Time) {
	s := a.sources[i]
	n := len(s.withheld)
	newest := s.withheld[n-1]
	s.withheld = s.withheld[:n-1]
	d.released = append(d.released, i)
	a.pass(d, i, newest, now, a.rules.gates.MaxDeviation)
}

// refute drops from the others' withheld runs the reports that a source contradicts by one that is not older. No later
// report may confirm them: the market may reach a wrong price some time after a source reported it.
func (a *arbiter) refute(by int) {
	newest := a.sources[by].newest.report
	for i, s := range a.sources {
		if i == by {
			continue
		}
		s.withheld = slices.DeleteFunc(s.withheld, func(w Report) bool {
			return w.PriceMs() <= newest.PriceMs() && apart(w, newest, a.rules.gates.MaxDeviation)
		})
	}
}

// reconsider passes what was withheld because of sources that give no reports any more, unless it jumps: a jump needs
// further reports.
func (a *arbiter) reconsider(d *decision, now time.Time) {
	for i, s := range a.sources {
		n := len(s.withheld)
		if n == 0 || s.reference != nil && apart(s.withheld[n-1], *s.reference, a.rules.gates.MaxJump) ||
			a.missing(i, now) {
			continue
		}
		if _, deviate, _ := a.agreement(i, s.withheld[n-1], now); !deviate {
			a.release(d, i, now)
		}
	}
}

// lags reports whether a source's newest report is so much older than another's that the source counts as silent.
func (a *arbiter) lags(i int, now time.Time) bool {
	s := a.sources[i]
	for j, other := range a.sources {
		if s.passed != nil && other.passed != nil && other.liveness.alive(now, a.rules.after[j]) &&
			ahead(other.passed.TimeMs, s.passed.TimeMs, a.rules.after[i]+a.rules.gates.MaxAhead) {
			return true
		}
	}
	return false
}

// elect lets another source serve if it is time to. The newest report of that one is emitted, unless it is a jump from
// what was emitted: then its next report is compared with that, and must be confirmed.
func (a *arbiter) elect(now time.Time) (d decision, changed bool) {
	a.reconsider(&d, now)
	pulses := make([]*liveness, len(a.sources))
	for i, s := range a.sources {
		if pulses[i] = &s.liveness; a.lags(i, now) {
			pulses[i] = &liveness{}
		}
	}
	next := a.rules.failover.elect(pulses, a.rules.after, a.serving, now)
	if next == a.serving {
		return d, false
	}
	a.serving = next
	s := a.sources[next]
	switch {
	case a.emitted != nil && apart(*s.passed, *a.emitted, a.rules.gates.MaxJump):
		s.reference = a.emitted
	case a.emitted == nil || s.passed.TimeMs > a.emitted.TimeMs:
		a.emit(&d, *s.passed)
	}
	return d, true
}

// disputed reports whether nothing passes because sources contradict each other.
func (a *arbiter) disputed(now time.Time) bool {
	if a.silent(now) == 0 {
		return false
	}
	return slices.ContainsFunc(a.sources,
		func(s *sourceState) bool { return s.opposed && s.newest.current(now, a.rules.failover.After) })
}

// silent is how long the serving source has given no report that passes; nothing while that is within bounds and there
// was a report at all.
func (a *arbiter) silent(now time.Time) time.Duration {
	p := &a.sources[a.serving].liveness
	if a.emitted != nil && p.alive(now, a.rules.after[a.serving]) {
		return 0
	}
	return max(now.Sub(p.last), 1)
}
