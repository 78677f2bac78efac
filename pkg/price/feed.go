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

// Feed runs sources and emits what passes. Run it once.
type Feed struct {
	members []Member
	rules   *rules
	log     zerolog.Logger
	metrics *Metrics
	loud    *quiet
	benches map[chain.Address]*bench // of the goroutine in Run alone

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
		members: members, rules: r, log: log, metrics: metrics, loud: newQuiet(time.Minute),
		benches: map[chain.Address]*bench{},
		silent:  "no price report yet", problems: slices.Repeat([]string{unheard}, len(members)),
	}
}

// SetClock has reports judged by the chain's clock: its time (Unix ms) at a moment of this machine's monotonic clock,
// and 0 while it is not known; then, and without one, this machine's is taken. It is called before Run.
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

// unheard is the problem of a source that has neither answered nor failed.
const unheard = "no answer yet"

// Health is nil if every token known has a source that lives and its reports are emitted.
func (f *Feed) Health() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.emitting != nil || f.silent == "" {
		return f.emitting
	}
	said := []string{f.silent}
	for i, problem := range f.problems {
		if problem != "" {
			said = append(said, f.members[i].Name+": "+problem)
		}
	}
	return errors.New(strings.Join(said, "; "))
}

// Run hands each report that passes to emit, those of a token in the order of their times, until ctx ends, and returns
// why it ended. Reports that emit fails for are emitted again; sources that fail are run again.
func (f *Feed) Run(ctx context.Context, emit func(context.Context, []Report) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	arrivals := make(chan arrival, 256)
	var sources sync.WaitGroup
	for i := range f.members {
		sources.Go(func() { f.tend(ctx, i, arrivals) })
	}
	defer sources.Wait()
	defer cancel(nil)
	f.expect(time.Now())
	tick := time.NewTicker(f.pace())
	defer tick.Stop()
	for {
		var passed []Report
		at := time.Now()
		select {
		case a := <-arrivals:
			at = a.at
			passed = append(f.judge(a), f.waiting(arrivals)...)
		case <-tick.C: // who has been heard meanwhile is not silent
			passed = append(f.waiting(arrivals), f.elect(time.Now())...)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := f.emit(ctx, emit, passed, at); err != nil {
			return err
		}
		f.survey(time.Now())
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

// expect makes the benches of all tokens that are asked for.
func (f *Feed) expect(now time.Time) {
	for _, m := range f.members {
		for _, token := range m.Tokens {
			f.bench(token, now)
		}
	}
}

// bench is where the reports of a token are judged.
func (f *Feed) bench(token chain.Address, now time.Time) *bench {
	b := f.benches[token]
	if b == nil {
		preferred := slices.IndexFunc(f.members,
			func(m Member) bool { return len(m.Tokens) == 0 || slices.Contains(m.Tokens, token) })
		b = newBench(token, f.rules, max(preferred, 0), now)
		f.benches[token] = b
		f.metrics.active.WithLabelValues(f.members[b.serving].Name).Inc()
	}
	return b
}

// judge returns the reports of an arrival that pass, and those before it that it confirms.
func (f *Feed) judge(a arrival) (passed []Report) {
	name := f.members[a.from].Name
	f.metrics.received.WithLabelValues(name).Add(float64(len(a.reports) + len(a.unreadable)))
	for _, err := range a.unreadable {
		f.refuse(name, refusal{Invalid, err}, a.at)
	}
	for _, r := range a.reports {
		r.Source, r.ReceivedMs = name, uint64(a.at.UnixMilli())
		if r.Token.IsZero() {
			f.refuse(name, refusal{Invalid, r.Validate()}, a.at)
			continue
		}
		passed = append(passed, f.count(name, f.bench(r.Token, a.at).hear(a.from, r, a.at), a.at)...)
	}
	return passed
}

// count accounts for a verdict and returns what it lets through.
func (f *Feed) count(name string, v verdict, now time.Time) []Report {
	f.metrics.repeated.WithLabelValues(name).Add(float64(v.repeated))
	for _, whose := range v.released {
		f.metrics.released.WithLabelValues(f.members[whose].Name).Inc()
	}
	for _, r := range v.refused {
		f.refuse(name, r, now)
	}
	return v.emit
}

func (f *Feed) refuse(source string, r refusal, now time.Time) {
	f.metrics.rejected.WithLabelValues(source, string(r.reason)).Inc()
	if suppressed, ok := f.loud.pass(source+" "+string(r.reason), now); ok {
		f.log.Warn().Err(r.err).Str("source", source).Str("reason", string(r.reason)).Int("unsaid", suppressed).
			Msg("price: refusing a report")
	}
}

// elect lets other sources step in where one fell silent, or one take back its place.
func (f *Feed) elect(now time.Time) (passed []Report) {
	for token, b := range f.benches {
		before := f.members[b.serving].Name
		v, changed := b.elect(now)
		after := f.members[b.serving].Name
		passed = append(passed, f.count(after, v, now)...)
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
func (f *Feed) emit(ctx context.Context, emit func(context.Context, []Report) error, reports []Report,
	received time.Time) error {
	if len(reports) == 0 {
		return nil
	}
	backoff := retry.New(retry.Policy{Initial: 50 * time.Millisecond, Max: 2 * time.Second})
	for backoff.Next(ctx) {
		err := emit(ctx, reports)
		f.delivered(ctx, len(reports), err)
		if err == nil {
			now := time.Now()
			for _, r := range reports {
				f.metrics.emitted(r, received, now)
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

// survey remembers which token has waited longest for a report that passes.
func (f *Feed) survey(now time.Time) {
	text, longest, disputed := "", time.Duration(0), 0
	for token, b := range f.benches {
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
	if len(f.benches) == 0 {
		text = "no price report yet"
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silent = text
}
