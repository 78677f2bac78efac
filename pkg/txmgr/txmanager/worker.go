package txmanager

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/signer"
)

const (
	// again is how long a loop rests after a failed pass.
	again = 500 * time.Millisecond
	// idle is how long a loop rests when nothing wakes it.
	idle = 2 * time.Second
	// releaseTimeout bounds the release of a lease when the process stops.
	releaseTimeout = time.Second
)

// worker is one signer's. It holds the signer's lease whenever it can get it, and runs the loops under it.
type worker struct {
	Parts
	cfg    Config
	market *market
	roster *roster

	key  signer.Signer
	work Work
	name string // of the signer, in notices
	log  zerolog.Logger
	// Signals: something was queued, something has ended. One that is not taken yet stands for all later ones.
	queued, ended chan struct{}
	retries       *retries
	lost          bool      // the lease term before was, perhaps to another database: the next one looks at once
	promoted      time.Time // since when the database is a promoted standby that is not adopted; zero while it is not
}

func (m *Manager) worker(key signer.Signer) *worker {
	w := &worker{
		Parts: m.parts, cfg: m.cfg, market: m.market, roster: m.roster,
		key: key, name: "signer " + key.Address().Hex(),
		log:    m.parts.Log.With().Str("signer", key.Address().Hex()).Logger(),
		queued: make(chan struct{}, 1), ended: make(chan struct{}, 1),
	}
	w.retries = newRetries(key.Address(), m.parts, func() { signal(w.queued) })
	w.work = m.parts.Open(key.Address(), func() { signal(w.queued) })
	return w
}

// run holds one lease term after the other until ctx ends.
func (w *worker) run(ctx context.Context) error {
	defer w.roster.join(w)()
	defer w.work.Close()
	defer w.Metrics.forget(w.key.Address())
	defer w.Notice(w.name, "")
	for {
		t, err := w.acquire(ctx)
		if err != nil {
			return err
		}
		w.Notice(w.name, "")
		w.log.Info().Int64("token", t.Fence().Token).Msg("lease term begins")
		err = w.serve(ctx, t)
		w.leave(ctx, t, err)
		w.lost = lease.Lost(err)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// acquire waits until the lease is free. Asking costs its holder nothing.
func (w *worker) acquire(ctx context.Context) (t *lease.Term, err error) {
	logged := false
	rest := lease.Rest(w.cfg.TTL)
	policy := retry.Policy{Initial: rest, Max: rest,
		OnRetry: func(_ int, err error, _ time.Duration) {
			w.Notice(w.name, err.Error())
			if held, _ := errors.AsType[*lease.HeldError](err); held != nil && held.ClockWentBack() && !logged {
				logged = true
				w.log.Warn().Err(err).Msg("the database's clock has gone back")
			}
		}}
	err = retry.Do(ctx, policy, func(ctx context.Context) error {
		t, err = lease.Acquire(ctx, w.Leases, w.key.Address(), w.cfg.Owner, w.cfg.TTL, w.Metrics.Leases)
		return err
	})
	return t, err
}

// leave ends a lease term: it is given back if it is still ours, and what was refused is counted.
func (w *worker) leave(ctx context.Context, t *lease.Term, why error) {
	w.Metrics.Leases.Rejected(why)
	w.retries.rest()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if lease.Lost(why) {
		w.log.Warn().Err(why).Str("node", w.cfg.Owner.Label).Int64("token", t.Fence().Token).Msg("lease term lost")
	} else {
		w.log.Info().Int64("token", t.Fence().Token).Msg("lease term ends")
	}
	if err := t.Release(ctx); err != nil {
		w.log.Warn().Err(err).Msg("the lease was not given back; it runs out by itself")
	}
}

// serve runs the loops of one lease term until ctx ends or the lease term is over.
func (w *worker) serve(ctx context.Context, t *lease.Term) error {
	defer w.Notice(w.gate(), "")
	group, ctx := errgroup.WithContext(ctx)
	b := w.broadcast(t)
	b.launches.beside, b.rechecks.beside = true, true
	defer b.close()
	group.Go(func() error { return t.Keep(ctx) })
	for _, p := range w.passes(b) {
		group.Go(func() error { return w.loop(ctx, p) })
	}
	return group.Wait()
}

// loop makes a pass whenever it is woken, and at least once a period, until ctx ends or the lease term is over. What
// else fails is tried again.
func (w *worker) loop(ctx context.Context, p pass) error {
	defer w.Notice(w.part(p), "")
	reported := ""
	for {
		signals, rest, err := w.once(ctx, p, &reported)
		if err != nil {
			return err
		}
		select {
		case <-signals[0]:
		case <-signals[1]:
		case <-time.After(rest):
		case <-ctx.Done():
		}
	}
}

// once makes one pass, and returns what wakes the next one, and when it is due if nothing does.
func (w *worker) once(ctx context.Context, p pass, reported *string) (signals [2]<-chan struct{}, rest time.Duration,
	err error) {
	signals = p.wake()
	err = p.run(ctx)
	switch {
	case ctx.Err() != nil:
		return signals, 0, context.Cause(ctx)
	case lease.Lost(err):
		return signals, 0, err
	}
	if *reported = w.notice(w.part(p), *reported, err); err == nil {
		return signals, idle, nil
	}
	return [2]<-chan struct{}{}, again, nil // it is made again, and readiness has been told
}

func (w *worker) gate() string { return w.name + " gate" }

// blocked tells readiness why nothing can be sent; empty when something could. What nodes refuse comes first: slots
// run out, and jobs wait, because of that.
func (w *worker) blocked(b *broadcast) func(reason string) {
	return func(reason string) { w.Notice(w.gate(), cmp.Or(b.refusal(), reason)) }
}

func (w *worker) part(p pass) string { return w.name + " " + p.name }

// notice reports to readiness how a pass went, and logs it when that has changed.
func (w *worker) notice(part, before string, err error) string {
	now := ""
	if err != nil {
		now = err.Error()
	}
	w.Notice(part, now)
	if now != before && now != "" {
		w.log.Warn().Err(err).Str("part", part).Msg("trying again")
	}
	return now
}

// signal wakes a loop. A signal that is not taken yet stands for this one too.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
