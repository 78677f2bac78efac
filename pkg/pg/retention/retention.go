package retention

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/retry"
)

// Store moves and drops.
type Store interface {
	// Await waits until the store can be worked with; it fails when ctx ends, or where that needs somebody to act.
	Await(ctx context.Context) error
	// Move takes some jobs that ended longer ago than after to the archive, the oldest first, in one transaction, and
	// returns how many; 0 also while another process is at it.
	Move(ctx context.Context, after time.Duration, most int) (moved int, err error)
	// Expire drops the oldest week of the archive if all of it ended longer ago than keep. Its week is zero where there
	// was none to drop, or another process is at it.
	Expire(ctx context.Context, keep time.Duration) (Dropped, error)
}

// Dropped is a week of the archive that is gone.
type Dropped struct {
	Week  time.Time // its Monday, UTC; zero for none
	Bytes int64     // of disk, with indexes
}

// Archiver does the work of one process.
type Archiver struct {
	cfg     Config
	store   Store
	metrics *Metrics
	log     zerolog.Logger
}

// New makes an archiver.
func New(cfg Config, store Store, metrics *Metrics, log zerolog.Logger) *Archiver {
	return &Archiver{cfg: cfg, store: store, metrics: metrics, log: log}
}

// pause lies between two looks at what there is to do. A step that leaves more to do is followed by the next after
// rest times as long as it took: the archive takes a fifth of a connection's time at most.
const (
	pause = time.Minute
	rest  = 4
)

// Run works until ctx ends, as soon as the store can be worked with. From then on it fails at nothing: what cannot be
// done is logged, counted, and tried again.
func (a *Archiver) Run(ctx context.Context) error {
	if err := a.store.Await(ctx); err != nil {
		return err
	}
	for {
		if !retry.Sleep(ctx, a.work(ctx)) {
			return context.Cause(ctx)
		}
	}
}

// work takes one step and returns how long to wait for the next.
func (a *Archiver) work(ctx context.Context) time.Duration {
	began := time.Now()
	more, err := a.step(ctx)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		a.metrics.failures.Inc()
		a.log.Warn().Err(err).Msg("the archive is behind; nothing else is")
	case more:
		return rest * time.Since(began)
	}
	return pause
}

// step moves a batch, or drops a week where there is no whole batch to move.
func (a *Archiver) step(ctx context.Context) (more bool, err error) {
	if a.cfg.After > 0 {
		moved, err := a.store.Move(ctx, a.cfg.After, a.cfg.Batch)
		if err != nil || moved == a.cfg.Batch {
			return true, err
		}
	}
	if a.cfg.Keep == 0 {
		return false, nil
	}
	dropped, err := a.store.Expire(ctx, a.cfg.Keep)
	if err != nil || dropped.Week.IsZero() {
		return false, err
	}
	a.log.Info().Str("week", dropped.Week.Format(time.DateOnly)).Int64("bytes", dropped.Bytes).
		Msg("a week of the archive was summed up and dropped")
	return true, nil
}
