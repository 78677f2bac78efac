package sender

import (
	"context"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/signer"
	"perpkeeper/pkg/txm"
	"perpkeeper/pkg/txmanager"
	"perpkeeper/services/sender/preflight"
)

const (
	// again is how long a loop rests after a failed pass.
	again = 500 * time.Millisecond
	// idle is how long a loop rests when nothing wakes it.
	idle = 2 * time.Second
	// goodbye bounds the release of a lease when the process stops.
	goodbye = time.Second
)

// worker is one signer's. It holds the signer's lease whenever it can get it, and runs the loops under it: for as long
// as the signer's partition is ours, or, in basic mode, as the process lives.
type worker struct {
	*Sender
	key  signer.Signer
	name string // of the signer, in notices
	log  zerolog.Logger
	// Signals: something was queued, something has ended. One that is not taken yet stands for all later ones.
	queued, ended chan struct{}
	checker       *preflight.Checker
}

func (s *Sender) worker(key signer.Signer) *worker {
	name := "signer " + key.Address().Hex()
	w := &worker{
		Sender: s, key: key, name: name, log: s.log.With().Str("signer", key.Address().Hex()).Logger(),
		queued: make(chan struct{}, 1), ended: make(chan struct{}, 1),
	}
	w.checker = s.preflight.Checker(key.Address(), func() { signal(w.queued) })
	return w
}

// run holds one tenure after the other until ctx ends. In the end the lease is given back, so that the next owner need
// not wait for it to run out.
func (w *worker) run(ctx context.Context) error {
	defer w.roster.join(w)()
	defer w.checker.Close()
	defer w.metrics.forget(w.key.Address())
	defer w.notices.set(w.name, "")
	for {
		t, err := w.acquire(ctx)
		if err != nil {
			return err
		}
		w.notices.set(w.name, "")
		w.log.Info().Int64("token", t.Fence().Token).Msg("tenure begins")
		err = w.serve(ctx, t)
		w.leave(ctx, t, err)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// acquire waits until the lease is free. Asking costs its holder nothing.
func (w *worker) acquire(ctx context.Context) (t *lease.Tenure, err error) {
	ttl := w.cfg.Sender.LeaseTTL
	policy := retry.Policy{Initial: ttl / 10, Max: ttl / 10,
		OnRetry: func(_ int, err error, _ time.Duration) { w.notices.set(w.name, err.Error()) }}
	err = retry.Do(ctx, policy, func(ctx context.Context) error {
		t, err = lease.Acquire(ctx, w.leases, w.key.Address(), w.owner, ttl, w.metrics.Leases)
		return err
	})
	return t, err
}

// leave ends a tenure: it is given back if it is still ours, and what was refused is counted.
func (w *worker) leave(ctx context.Context, t *lease.Tenure, why error) {
	w.metrics.Leases.Rejected(why)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer cancel()
	if lease.Lost(why) {
		w.log.Warn().Err(why).Str("node", w.owner.Label).Int64("token", t.Fence().Token).Msg("tenure lost")
	} else {
		w.log.Info().Int64("token", t.Fence().Token).Msg("tenure ends")
	}
	if err := t.Release(ctx); err != nil {
		w.log.Warn().Err(err).Msg("the lease was not given back; it runs out by itself")
	}
}

// serve runs the loops of one tenure until ctx ends or the tenure is over.
func (w *worker) serve(ctx context.Context, t *lease.Tenure) error {
	defer w.notices.set(w.gate(), "")
	group, ctx := errgroup.WithContext(ctx)
	b := w.broadcast(t)
	defer b.close()
	group.Go(func() error { return t.Keep(ctx) })
	for _, p := range w.passes(t, b) {
		group.Go(func() error { return w.loop(ctx, p) })
	}
	return group.Wait()
}

// pass is what one loop of a tenure does each time it is woken.
type pass struct {
	name string
	run  func(context.Context) error
	// wake returns what wakes the loop. It is asked before the pass, so that what happens during it is not missed.
	wake func() [2]<-chan struct{}
}

// passes are the loops of a tenure, in the order in which work goes through them.
func (w *worker) passes(t *lease.Tenure, b *broadcast) []pass {
	again := w.renewal(t, b)
	ended, givenUp := w.tellers()
	r := record{tenure: t, store: w.intents, producer: ended, letters: givenUp, metrics: w.metrics, log: w.log}
	return []pass{
		{"drain", w.drain(t, b, again).pass,
			func() [2]<-chan struct{} { return [2]<-chan struct{}{w.queued, w.horizon.Next()} }},
		{"confirm", w.confirm(t, b, again).pass,
			func() [2]<-chan struct{} { return [2]<-chan struct{}{w.horizon.Next()} }},
		{"record", r.pass, func() [2]<-chan struct{} { return [2]<-chan struct{}{w.ended} }},
	}
}

func (w *worker) broadcast(t *lease.Tenure) *broadcast {
	return &broadcast{
		tenure: t, node: w.node, horizon: w.horizon, store: w.intents, metrics: w.metrics, log: w.log,
		last:     map[chain.Hash]sent{},
		builders: len(w.cfg.Chain.PrivateURLs) > 0, shared: w.cfg.Tier.Enabled,
	}
}

// gate names the gate of this signer in notices.
func (w *worker) gate() string { return w.name + " gate" }

// drain is the road of a tenure. It reads aloud.
func (w *worker) drain(t *lease.Tenure, b *broadcast, again renewal) *drain {
	settings := w.cfg.Sender
	cursor := &cursor{open: w.opening(t.Fence())}
	gaps := gaps{horizon: w.horizon, fill: again.fill, since: map[uint64]uint64{}}
	return &drain{
		tenure: t, turns: w.turns, queue: w.intents, batch: settings.Batch, limits: w.limits(),
		maxAge: settings.MaxJobAge, rest: w.rest, metrics: w.metrics, log: w.log,
		clock: w.clock, head: w.horizon.Number, asleep: map[int64]nap{}, yielded: map[int64]time.Time{},
		ended: func() { signal(w.ended) },
		gate:  func(reason string) { w.notices.set(w.gate(), reason) },
		road: []txmanager.Stage{
			w.Sender.gate().Stage(b.held, cursor.read),
			w.turns.Stage(),
			w.turns.Observe(w.checker.Stage()),
		},
		reconcile: func(ctx context.Context) error {
			_, err := cursor.get(ctx)
			return err
		},
		claim: claim{
			tenure: t, key: w.key, chainID: w.cfg.Keeper.ChainID, limits: w.limits(), market: w.market,
			purse: again.purse,
			store: w.intents, cursor: cursor, expect: b.expect, metrics: w.metrics, log: w.log,
			patience: settings.LeaseTTL / 4,
		}.run,
		launch: b.launch,
		count:  again.purse.count,
		words:  w.preflight.Refresh,
		places: w.places,
		tidy:   func(ctx context.Context) error { return w.tidy(ctx, cursor, gaps) },
	}
}

// places is how many more transactions of the signer may be claimed, by the store, and how many more of the
// liquidations' lane.
func (w *worker) places(ctx context.Context) (all, urgent int, err error) {
	pending, err := w.intents.Pending(ctx, w.key.Address())
	most := w.limits().flights()
	return most.Places(txm.OrderLane) - pending, most.Places(txm.LiquidationLane) - pending, err
}

// tidy fills the gaps that nobody has a job for.
func (w *worker) tidy(ctx context.Context, cursor *cursor, gaps gaps) error {
	if cursor.known == nil || len(cursor.known.Released) == 0 {
		return nil
	}
	flights, err := w.intents.InFlight(ctx, w.key.Address())
	if err != nil {
		return err
	}
	tried, err := gaps.pass(ctx, cursor.known.Released, flights)
	if tried {
		cursor.lose()
	}
	if txm.Refused(err) != "" {
		return nil // the number is taken: the cursor will say so
	}
	return err
}

// rest is what comes after an arm that ends now, on the chain's clock.
func (w *worker) rest(i txm.Intent, o job.Outcome) txm.Rest {
	return txm.After(o, i.Tries, w.horizon.Now(), w.cfg.Sender.Cooldown)
}

// limits are what holds this sender back, by how nervous the markets are.
func (s *Sender) limits() limits {
	return limits{settings: s.cfg.Sender, mode: s.quotes.Mode, window: &s.window}
}

// renewal makes further attempts at nonces that are taken.
func (w *worker) renewal(t *lease.Tenure, b *broadcast) renewal {
	fee := w.cfg.Sender.Fee
	return renewal{
		tenure: t, key: w.key, chainID: w.cfg.Keeper.ChainID, limits: w.limits(), market: w.market,
		purse: &purse{signer: w.key.Address(), limit: fee.DayCost, store: w.intents},
		store: w.intents, broadcast: b, node: w.node, recheck: w.checker.Run, metrics: w.metrics, log: w.log,
	}
}

func (w *worker) confirm(t *lease.Tenure, b *broadcast, again renewal) *confirm {
	return &confirm{
		tenure: t, signer: w.key.Address(), turns: w.turns, policy: w.cfg.Sender.Fee, rest: w.rest, node: w.node,
		store: w.intents,
		judge: w.checker.Judge(), broadcast: b,
		renewal: again, horizon: w.horizon,
		clock: w.clock, timeout: w.cfg.Sender.ConfirmTimeout, metrics: w.metrics, log: w.log,
		ended: func() { signal(w.ended) }, freed: func() { signal(w.queued) }, observe: w.limits().observe,
		missing: map[int64]time.Time{}, seen: map[int64]time.Time{}, late: map[int64]bool{},
	}
}

// loop makes a pass whenever it is woken, and at least once a period, until ctx ends or the tenure is over. What else
// fails is tried again.
func (w *worker) loop(ctx context.Context, p pass) error {
	defer w.notices.set(w.part(p), "")
	said := ""
	for {
		signals, rest, err := w.once(ctx, p, &said)
		if err != nil {
			return err
		}
		timer := time.NewTimer(rest)
		select {
		case <-signals[0]:
		case <-signals[1]:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// once makes one pass, and returns what wakes the next one, and when it is due if nothing does.
func (w *worker) once(ctx context.Context, p pass, said *string) (signals [2]<-chan struct{}, rest time.Duration,
	err error) {
	signals = p.wake()
	err = p.run(ctx)
	switch {
	case ctx.Err() != nil:
		return signals, 0, context.Cause(ctx)
	case lease.Lost(err):
		return signals, 0, err
	}
	if *said = w.say(w.part(p), *said, err); err == nil {
		return signals, idle, nil
	}
	return [2]<-chan struct{}{}, again, nil // it is made again, and readiness has been told
}

// part names a pass in notices.
func (w *worker) part(p pass) string { return w.name + " " + p.name }

// say tells readiness how a pass went, and the log when that has changed.
func (w *worker) say(part, before string, err error) string {
	now := ""
	if err != nil {
		now = err.Error()
	}
	w.notices.set(part, now)
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
