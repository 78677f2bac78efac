package price

import (
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
)

// seat is one source's part in the prices of one token.
type seat struct {
	pulse  pulse
	word   word
	early  word    // the newest that was refused for being ahead of the clock
	passed *Report // the newest that passed
	// what the next is compared with: passed, or what another source had emitted when this one stepped in
	before   *Report
	withheld []Report // a run that is not confirmed yet, oldest first
	opposed  bool     // the newest is not what others say
	asked    bool     // whether the source is one that should give reports of the token
}

// word is the newest that a source says, whether it passed or not, and when it came. The zero word is none.
type word struct {
	report Report
	at     time.Time
}

// current tells whether a word came within a bound.
func (w word) current(now time.Time, bound time.Duration) bool {
	return !w.at.IsZero() && now.Sub(w.at) <= bound
}

// bench judges the reports of one token. It has no clock and does no input or output.
type bench struct {
	token   chain.Address
	rules   *rules
	seats   []*seat // in order of preference
	serving int
	emitted *Report
	began   time.Time
}

// rules are what all benches share.
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

// asks tells whether a source should give reports of a token.
func (r *rules) asks(source int, token chain.Address) bool {
	return source >= len(r.tokens) || len(r.tokens[source]) == 0 || slices.Contains(r.tokens[source], token)
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
	b := &bench{token: token, rules: r, serving: preferred, began: now}
	for i := range r.after {
		b.seats = append(b.seats, &seat{asked: r.asks(i, token)})
	}
	b.seats[preferred].pulse.beat(now, 0)
	return b
}

// hear judges a report of a source.
func (b *bench) hear(from int, r Report, now time.Time) (v verdict) {
	s := b.seats[from]
	if r.TimeMs <= s.word.report.TimeMs {
		v.repeated++
		return v
	}
	reason, err := b.rules.gates.look(r, b.rules.nowMs(now), b.rules.maxAge[from])
	if reason == Future && b.timely(from, r, now) {
		reason = ""
	}
	if reason != "" {
		v.refused = append(v.refused, refusal{reason, err})
		if reason == Future {
			s.early = word{r, now}
		}
		return v
	}
	s.word = word{r, now}
	b.weigh(&v, from, r, now)
	if s.passed != nil && s.passed.TimeMs == r.TimeMs {
		b.confirm(&v, from, now)
	}
	b.refute(from)
	return v
}

// timely tells whether another source is as far ahead of the clock with the same price: then the clock is what is
// behind.
func (b *bench) timely(from int, r Report, now time.Time) bool {
	g := b.rules.gates
	for i, other := range b.seats {
		for _, w := range []word{other.word, other.early} {
			if i != from && w.current(now, b.rules.after[i]) && !ahead(r.TimeMs, w.report.TimeMs, g.MaxAhead) &&
				!apart(r, w.report, g.MaxDeviation) {
				return true
			}
		}
	}
	return false
}

// counts tells whether what a source said last says something about a report: it came a short while ago, and is about
// the same time or a later one.
func (b *bench) counts(i int, r Report, now time.Time) bool {
	w := b.seats[i].word
	return w.current(now, b.rules.after[i]) && !ahead(r.TimeMs, w.report.TimeMs, b.rules.failover.After)
}

// compare tells whether another source agrees with a report, and while none does whether one deviates, and whether one
// that deviates is not older.
func (b *bench) compare(from int, r Report, now time.Time) (agree, deviate, refuted bool) {
	for i := range b.seats {
		if i == from || !b.counts(i, r, now) {
			continue
		}
		said := b.seats[i].word.report
		if !apart(r, said, b.rules.gates.MaxDeviation) {
			return true, false, false
		}
		deviate, refuted = true, refuted || said.TimeMs >= r.TimeMs
	}
	return false, deviate, refuted
}

// missing tells whether a source that should give reports of the token has not given one, and has had no time yet.
func (b *bench) missing(from int, now time.Time) bool {
	for i, s := range b.seats {
		if i != from && s.asked && s.word.at.IsZero() && now.Sub(b.began) <= b.rules.failover.After {
			return true
		}
	}
	return false
}

// weigh compares the newest report of a source with what is known, and passes it or withholds it. While other sources
// speak, one of them has to agree. A source that is alone confirms its own jumps.
func (b *bench) weigh(v *verdict, from int, r Report, now time.Time) {
	s, g := b.seats[from], b.rules.gates
	agree, deviate, refuted := b.compare(from, r, now)
	jumps := s.before != nil && apart(r, *s.before, g.MaxJump)
	s.opposed = deviate
	var why refusal
	switch {
	case agree:
		b.pass(v, from, r, now, g.MaxDeviation)
		return
	case jumps:
		why = refusal{Jump, fmt.Errorf("%s jumps from %s..%s to %s..%s", b.token, s.before.Min, s.before.Max, r.Min,
			r.Max)}
	case deviate:
		why = refusal{Deviation, fmt.Errorf("%s at %s..%s is not what other sources say", b.token, r.Min, r.Max)}
	case b.missing(from, now):
		why = refusal{Alone,
			fmt.Errorf("%s at %s..%s is the first that is heard of it, and another source has not spoken yet", b.token,
				r.Min, r.Max)}
	default:
		b.pass(v, from, r, now, g.MaxJump)
		return
	}
	if n := len(s.withheld); n > 0 && apart(r, s.withheld[n-1], g.MaxJump) {
		s.withheld = nil // the run did not hold; its reports were counted when they were withheld
	}
	if !deviate && why.reason == Jump && len(s.withheld)+1 >= g.Confirmations {
		b.pass(v, from, r, now, g.MaxJump)
		return
	}
	if !refuted {
		s.withheld = append(s.withheld, r)
	}
	v.refused = append(v.refused, why)
}

// pass takes a report and those of the run before it that it confirms, which are within a bound of it.
func (b *bench) pass(v *verdict, from int, r Report, now time.Time, points uint64) {
	s := b.seats[from]
	confirmed := slices.DeleteFunc(s.withheld, func(w Report) bool { return apart(w, r, points) })
	for range confirmed {
		v.released = append(v.released, from)
	}
	for _, c := range append(confirmed, r) {
		if from == b.serving {
			b.emit(v, c)
		}
	}
	s.withheld, s.passed, s.before, s.opposed = nil, &r, &r, false
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

// confirm lets what a source just said confirm the others' runs.
func (b *bench) confirm(v *verdict, by int, now time.Time) {
	said := b.seats[by].word.report
	for i, s := range b.seats {
		n := len(s.withheld)
		if i != by && n > 0 && b.counts(by, s.withheld[n-1], now) &&
			!apart(s.withheld[n-1], said, b.rules.gates.MaxDeviation) {
			b.release(v, i, now)
		}
	}
}

// release passes the run of a source.
func (b *bench) release(v *verdict, i int, now time.Time) {
	s := b.seats[i]
	n := len(s.withheld)
	newest := s.withheld[n-1]
	s.withheld = s.withheld[:n-1]
	v.released = append(v.released, i)
	b.pass(v, i, newest, now, b.rules.gates.MaxDeviation)
}

// refute drops from the others' runs what a source contradicts with a word that is not older. No later word can confirm
// it: prices come to what a source has said before its time as well.
func (b *bench) refute(by int) {
	said := b.seats[by].word.report
	for i, s := range b.seats {
		if i == by {
			continue
		}
		s.withheld = slices.DeleteFunc(s.withheld, func(w Report) bool {
			return w.TimeMs <= said.TimeMs && apart(w, said, b.rules.gates.MaxDeviation)
		})
	}
}

// reconsider passes what was withheld for the sake of sources that speak no more, unless it jumps: that takes further
// reports.
func (b *bench) reconsider(v *verdict, now time.Time) {
	for i, s := range b.seats {
		n := len(s.withheld)
		if n == 0 || s.before != nil && apart(s.withheld[n-1], *s.before, b.rules.gates.MaxJump) || b.missing(i, now) {
			continue
		}
		if _, deviate, _ := b.compare(i, s.withheld[n-1], now); !deviate {
			b.release(v, i, now)
		}
	}
}

// lags tells whether a source's newest report is so much older than another's that it is as good as silent.
func (b *bench) lags(i int, now time.Time) bool {
	s := b.seats[i]
	for j, other := range b.seats {
		if s.passed != nil && other.passed != nil && other.pulse.alive(now, b.rules.after[j]) &&
			ahead(other.passed.TimeMs, s.passed.TimeMs, b.rules.after[i]+b.rules.gates.MaxAhead) {
			return true
		}
	}
	return false
}

// elect lets another source serve if it is time to. What that one said last is emitted, unless it is a jump from what
// was emitted: then what it says next is compared with that, and must be confirmed.
func (b *bench) elect(now time.Time) (v verdict, changed bool) {
	b.reconsider(&v, now)
	pulses := make([]*pulse, len(b.seats))
	for i, s := range b.seats {
		if pulses[i] = &s.pulse; b.lags(i, now) {
			pulses[i] = &pulse{}
		}
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

// disputed tells whether nothing passes because sources contradict each other.
func (b *bench) disputed(now time.Time) bool {
	if b.silent(now) == 0 {
		return false
	}
	return slices.ContainsFunc(b.seats,
		func(s *seat) bool { return s.opposed && s.word.current(now, b.rules.failover.After) })
}

// silent is how long the serving source has given no report that passes; nothing while that is within bounds and there
// was a report at all.
func (b *bench) silent(now time.Time) time.Duration {
	p := &b.seats[b.serving].pulse
	if b.emitted != nil && p.alive(now, b.rules.after[b.serving]) {
		return 0
	}
	return max(now.Sub(p.last), 1)
}
