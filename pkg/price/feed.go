package price

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
)

// Source has price reports.
type Source interface {
	// Latest returns the newest report of every token the source knows.
	Latest(ctx context.Context) ([]Report, error)
}

// Feed asks a source again and again and emits what is new. Run it once.
type Feed struct {
	source   Source
	interval time.Duration
	log      zerolog.Logger
	metrics  *Metrics
	emitted  map[chain.Address]uint64 // time of the newest report emitted, ms

	mu   sync.Mutex
	last error
}

// NewFeed returns a feed that asks at an interval.
func NewFeed(source Source, interval time.Duration, log zerolog.Logger, metrics *Metrics) *Feed {
	return &Feed{
		source: source, interval: interval, log: log, metrics: metrics, emitted: map[chain.Address]uint64{}, last: errors.New("no price report yet"),
	}
}

// Health is nil if the last question was answered and its reports emitted.
func (f *Feed) Health() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// Run hands each new report to emit until ctx ends, and returns why it ended. A source that gives no answer is asked again at the next interval;
// reports that emit fails for are emitted again.
func (f *Feed) Run(ctx context.Context, emit func(context.Context, []Report) error) error {
	tick := time.NewTicker(f.interval)
	defer tick.Stop()
	for {
		f.note(ctx, f.once(ctx, emit))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// once asks and emits.
func (f *Feed) once(ctx context.Context, emit func(context.Context, []Report) error) error {
	reports, err := f.source.Latest(ctx)
	if err != nil {
		f.metrics.failures.Inc()
		return err
	}
	fresh := f.fresh(reports)
	if len(fresh) == 0 {
		return nil
	}
	if err := emit(ctx, fresh); err != nil {
		return fmt.Errorf("emitting %d price reports: %w", len(fresh), err)
	}
	for _, r := range fresh {
		f.emitted[r.Token] = r.TimeMs
		f.metrics.emitted(r)
	}
	return nil
}

// fresh are the usable reports that are newer than what was emitted, one for each token.
func (f *Feed) fresh(reports []Report) []Report {
	newest := map[chain.Address]uint64{}
	var fresh []Report
	for _, r := range reports {
		if err := r.Validate(); err != nil {
			f.metrics.refused.Inc()
			f.log.Warn().Err(err).Str("source", r.Source).Msg("price: refusing a report")
			continue
		}
		if r.TimeMs <= max(f.emitted[r.Token], newest[r.Token]) {
			f.metrics.repeated.Inc()
			continue
		}
		newest[r.Token] = r.TimeMs
		fresh = append(fresh, r)
	}
	return fresh
}

// note remembers the outcome and logs its changes.
func (f *Feed) note(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	f.mu.Lock()
	before := f.last
	f.last = err
	f.mu.Unlock()
	switch {
	case err != nil && before == nil:
		f.log.Warn().Err(err).Msg("price: no new reports, trying again")
	case err != nil:
		f.log.Debug().Err(err).Msg("price: still no new reports")
	case err == nil && before != nil:
		f.log.Info().Msg("price: reports are coming")
	}
}
