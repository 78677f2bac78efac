package price

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/retry"
)

// Feed runs price sources and emits the reports that pass. Run it once.
type Feed struct {
	members  []Member
	rules    *rules
	log      zerolog.Logger
	metrics  *Metrics
	refusals map[string]zerolog.Logger  // by source and reason, each a line a minute; of the goroutine in Run alone
	arbiters map[chain.Address]*arbiter // of the goroutine in Run alone

	mu       sync.Mutex
	silent   string   // what is missing, in one line; empty if nothing is
	problems []string // why a source gives nothing, by source; empty if it does
	emitting error    // why the newest reports could not be emitted
}

// NewFeed returns a feed of sources in order of preference, at least one.
func NewFeed(members []Member, gates Gates, failover Failover, log zerolog.Logger, metrics *Metrics) *Feed {
	r := &rules{gates: gates, failover: failover}
	for _, m := range members {
		metrics.prepare(m.Name)
		r.maxAge = append(r.maxAge, orElse(m.MaxAge, gates.MaxAge))
		r.after = append(r.after, orElse(m.After, failover.After))
		r.tokens = append(r.tokens, m.Tokens)
	}
	return &Feed{
		members: members, rules: r, log: log, metrics: metrics, refusals: map[string]zerolog.Logger{},
		arbiters: map[chain.Address]*arbiter{},
		silent:   "no price report yet", problems: slices.Repeat([]string{noAnswerYet}, len(members)),
	}
}

// SetClock sets the chain's clock, by which the ages of reports are measured. It returns the chain's time (Unix ms) at
// a moment of this machine's monotonic clock, or 0 while it is not known. Without a clock, and while it returns 0, this
// machine's is taken. Call it before Run.
func (f *Feed) SetClock(clock func(now time.Time) uint64) {
	f.rules.clock = clock
	f.metrics.ages.setClock(f.rules.nowMs)
}

func orElse(own, common time.Duration) time.Duration {
	if own == 0 {
		return common
	}
	return own
}

// noAnswerYet is the problem of a source that has neither answered nor failed.
const noAnswerYet = "no answer yet"

// Health is nil while every known token has a source whose reports pass and are emitted.
func (f *Feed) Health() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.emitting != nil || f.silent == "" {
		return f.emitting
	}
	lines := []string{f.silent}
	for i, problem := range f.problems {
		if problem != "" {
			lines = append(lines, f.members[i].Name+": "+problem)
		}
	}
	return errors.New(strings.Join(lines, "; "))
}

// Run hands each report that passes to emit, those of a token in the order of their times, until ctx ends, and returns
// why it ended. Reports that emit fails for are emitted again; sources that fail are run again.
func (f *Feed) Run(ctx context.Context, emit func(context.Context, []Report) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	arrivals := make(chan arrival, 256)
	var sources sync.WaitGroup
	for i := range f.members {
		sources.Go(func() { f.runSource(ctx, i, arrivals) })
	}
	defer sources.Wait()
	defer cancel(nil)
	f.expect(time.Now())
	tick := time.NewTicker(f.pace())
	defer tick.Stop()
	for {
		var passed []Report
		select {
		case a := <-arrivals:
			passed = append(f.judge(a), f.waiting(arrivals)...)
		case <-tick.C: // a source whose reports wait in the channel is not silent
			passed = append(f.waiting(arrivals), f.elect(time.Now())...)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := f.emit(ctx, emit, passed); err != nil {
			return err
		}
		f.updateHealth(time.Now())
	}
}

// waiting judges what has arrived by now.
func (f *Feed) waiting(arrivals <-chan arrival) (passed []Report) {
	for range len(arrivals) {
		passed = append(passed, f.judge(<-arrivals)...)
	}
	return passed
}

// pace is how often silence is looked for.
func (f *Feed) pace() time.Duration {
	return max(slices.Min(f.rules.after)/8, 10*time.Millisecond)
}

// expect makes the arbiters of all tokens that are asked for.
func (f *Feed) expect(now time.Time) {
	for _, m := range f.members {
		for _, token := range m.Tokens {
			f.arbiter(token, now)
		}
	}
}

// arbiter returns the arbiter of a token, and makes it first where there is none.
func (f *Feed) arbiter(token chain.Address, now time.Time) *arbiter {
	b := f.arbiters[token]
	if b == nil {
		preferred := slices.IndexFunc(f.members, func(m Member) bool { return m.wants(Report{Token: token}) })
		b = newArbiter(token, f.rules, max(preferred, 0), now)
		f.arbiters[token] = b
		f.metrics.active.WithLabelValues(f.members[b.serving].Name).Inc()
	}
	return b
}

// judge returns the reports of an arrival that pass, and those before it that it confirms.
func (f *Feed) judge(a arrival) (passed []Report) {
	name := f.members[a.from].Name
	f.metrics.received.WithLabelValues(name).Add(float64(len(a.reports) + len(a.unreadable)))
	for _, err := range a.unreadable {
		f.refuse(name, refusal{invalid, err})
	}
	for _, r := range a.reports {
		r.Source, r.ReceivedMs = name, uint64(a.at.UnixMilli())
		if r.Token.IsZero() {
			f.refuse(name, refusal{invalid, r.Validate()})
			continue
		}
		passed = append(passed, f.count(name, f.arbiter(r.Token, a.at).observe(a.from, r, a.at))...)
	}
	return passed
}

// count counts a decision in the metrics and returns the reports it lets through.
func (f *Feed) count(name string, v decision) []Report {
	for _, r := range v.refused {
		f.refuse(name, r)
	}
	return v.emit
}

func (f *Feed) refuse(source string, r refusal) {
	f.metrics.rejected.WithLabelValues(source, string(r.reason)).Inc()
	kind := source + " " + string(r.reason)
	log, known := f.refusals[kind]
	if !known {
		log = f.log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Minute})
		f.refusals[kind] = log
	}
	log.Warn().Err(r.err).Str("source", source).Str("reason", string(r.reason)).
		Msg("price: refusing a report (a line a minute; price_gate_rejections_total counts all)")
}

// elect lets another source serve a token where one fell silent, or where a preferred one is steady again.
func (f *Feed) elect(now time.Time) (passed []Report) {
	for token, b := range f.arbiters {
		before := f.members[b.serving].Name
		v, changed := b.elect(now)
		after := f.members[b.serving].Name
		passed = append(passed, f.count(after, v)...)
		if !changed {
			continue
		}
		f.metrics.active.WithLabelValues(before).Dec()
		f.metrics.active.WithLabelValues(after).Inc()
		f.log.Warn().Stringer("token", token).Str("from", before).Str("to", after).
			Msg("price: another source serves now")
	}
	return passed
}

// emit hands reports on, until that works or ctx ends.
func (f *Feed) emit(ctx context.Context, emit func(context.Context, []Report) error, reports []Report) error {
	if len(reports) == 0 {
		return nil
	}
	backoff := retry.New(retry.Policy{Initial: 50 * time.Millisecond, Max: 2 * time.Second})
	for backoff.Next(ctx) {
		err := emit(ctx, reports)
		f.delivered(ctx, len(reports), err)
		if err == nil {
			for _, r := range reports {
				f.metrics.ages.note(r)
			}
			return nil
		}
		backoff.Failed(err)
	}
	return context.Cause(ctx)
}

// delivered remembers whether reports could be emitted and logs the changes.
func (f *Feed) delivered(ctx context.Context, n int, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.emitting
	if f.emitting = nil; err != nil {
		f.emitting = fmt.Errorf("emitting %d price reports: %w", n, err)
	}
	switch {
	case err != nil && before == nil && ctx.Err() == nil:
		f.log.Warn().Err(err).Int("reports", n).Msg("price: cannot emit, trying again")
	case err == nil && before != nil:
		f.log.Info().Msg("price: emitting again")
	}
}

// updateHealth remembers which token has waited longest for a report that passes.
func (f *Feed) updateHealth(now time.Time) {
	text, longest, disputed := "", time.Duration(0), 0
	for token, b := range f.arbiters {
		contradicted := ""
		if b.disputed(now) {
			disputed++
			contradicted = ", because sources contradict each other"
		}
		if wait := b.silent(now); wait > longest {
			longest = wait
			text = fmt.Sprintf("no price report of %s from %s for %s%s", token, f.members[b.serving].Name,
				wait.Truncate(100*time.Millisecond), contradicted)
		}
	}
	f.metrics.disputed.Set(float64(disputed))
	if len(f.arbiters) == 0 {
		text = "no price report yet"
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silent = text
}
