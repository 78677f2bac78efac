package delayed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
)

// Scanner looks for due jobs and does them. Any number of scanners may work on one store.
type Scanner struct {
	cfg     Config
	name    string
	store   Store
	kinds   map[string]Kind
	sources []Source
	metrics *Metrics
	log     zerolog.Logger
}

// NewScanner makes a scanner; its name distinguishes it from the others of the same store.
func NewScanner(cfg Config, name string, store Store, kinds []Kind, sources []Source, metrics *Metrics,
	log zerolog.Logger) *Scanner {
	s := &Scanner{cfg: cfg, name: name, store: store, kinds: map[string]Kind{}, sources: sources, metrics: metrics,
		log: log}
	for _, k := range kinds {
		s.kinds[k.Name()] = k
	}
	return s
}

// Trigger wakes a scanner before the interval is over.
type Trigger interface {
	// Wait returns when a scan is asked for or the time is over. Its only error is that of ctx.
	Wait(ctx context.Context, atMost time.Duration) error
}

// Run scans until ctx ends: at every interval, when a row falls due before, and when the trigger asks for it. A scan
// that failed is repeated after the backoff.
func (s *Scanner) Run(ctx context.Context, trigger Trigger) error {
	for {
		outlook, err := s.Scan(ctx)
		wait := s.cfg.Interval
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			wait = min(wait, s.cfg.Backoff)
			s.log.Error().Err(err).Dur("again_ms", wait).Msg("scan for delayed jobs failed")
		case outlook.Next >= 0:
			wait = min(wait, max(outlook.Next, shortestPause))
		}
		if err := trigger.Wait(ctx, wait); err != nil {
			return err
		}
	}
}

// shortestPause keeps rows that are due and cannot be taken, because somebody else works on them, from becoming a busy
// loop.
const shortestPause = 500 * time.Millisecond

// Scan lets the sources add rows and then does everything that is due, oldest first. Failing jobs are no error of the
// scan; an error says that a source or the store failed, and that the rows concerned are left for the next scan.
func (s *Scanner) Scan(ctx context.Context) (Outlook, error) {
	fed := s.feed(ctx)
	sum, err := s.sweep(ctx)
	sum.Err = errors.Join(fed, err)
	outlook, err := s.store.Close(ctx, s.name, sum)
	if err != nil {
		sum.Err = errors.Join(sum.Err, fmt.Errorf("closing the scan: %w", err))
	}
	s.metrics.scanned(sum, outlook)
	if sum.Found > 0 && sum.Err == nil {
		s.log.Info().Int("found", sum.Found).Int("done", sum.Done).Int("failed", sum.Failed).Int("parked", sum.Parked).
			Msg("delayed jobs")
	}
	return outlook, sum.Err
}

func (s *Scanner) feed(ctx context.Context) error {
	var failures []error
	for _, source := range s.sources {
		if _, err := source.Feed(ctx); err != nil {
			failures = append(failures, fmt.Errorf("looking for %s: %w", source.Name, err))
		}
	}
	return errors.Join(failures...)
}

// sweep goes through all pages. A row that cannot be worked on does not stop it; a page of which nothing could be does,
// since then the store is away.
func (s *Scanner) sweep(ctx context.Context) (sum Summary, err error) {
	var after Place
	for {
		page, err := s.store.Due(ctx, sum.BeganAt, after, s.cfg.Batch)
		if err != nil {
			return sum, fmt.Errorf("listing due jobs: %w", err)
		}
		sum.BeganAt = page.Until
		sum.Found += len(page.Rows)
		if len(page.Rows) == 0 {
			return sum, nil
		}
		after = page.Rows[len(page.Rows)-1]
		if broken, err := s.workOn(ctx, page.Rows, &sum); broken == len(page.Rows) {
			return sum, err
		} else if err != nil {
			s.log.Warn().Err(err).Int("rows", broken).Msg("delayed jobs left for the next scan")
		}
	}
}

// workOn does the jobs of one page, a few at once, and returns how many could not be worked on, and the first reason.
func (s *Scanner) workOn(ctx context.Context, rows []Place, sum *Summary) (broken int, first error) {
	var mu sync.Mutex
	var workers errgroup.Group
	workers.SetLimit(s.cfg.Concurrency)
	for _, row := range rows {
		workers.Go(func() error {
			job, ruling, err := s.work(ctx, row)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil && first == nil:
				broken, first = broken+1, err
			case err != nil:
				broken++
			default:
				s.note(job, ruling, sum)
			}
			return nil
		})
	}
	_ = workers.Wait() // They return no errors: one must not stop the others.
	return broken, first
}

// work does one row. The ruling is empty when the row was not to be had.
func (s *Scanner) work(ctx context.Context, row Place) (j Job, r Ruling, err error) {
	taken, err := s.store.Work(ctx, row, func(ctx context.Context, tx Tx, locked Job) Ruling {
		j, r = locked, s.attempt(ctx, tx, locked)
		return r
	})
	if err != nil {
		return j, Ruling{}, fmt.Errorf("working on delayed job %d: %w", row.ID, err)
	}
	if !taken {
		return j, Ruling{}, nil
	}
	return j, r, nil
}

// note counts and logs what became of a job.
func (s *Scanner) note(j Job, r Ruling, sum *Summary) {
	if r.Status == "" {
		return
	}
	s.metrics.ruled(j, r)
	if r.Status == Done {
		sum.Done++
		return
	}
	sum.Failed++
	log := s.log.With().Int64("id", j.ID).Str("kind", j.Kind).Str("key", j.Key).Int("attempt", j.Attempts+1).Logger()
	if r.Status == Parked {
		sum.Parked++
		log.Error().Err(r.Err).Msg("delayed job parked; `keeperctl delayed retry` takes it up again")
		return
	}
	log.Warn().Err(r.Err).Dur("again_ms", r.Again).Msg("delayed job failed, trying again")
}
