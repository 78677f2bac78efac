package txmanager

import (
	"context"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/txm"
)

// pass is what one loop of a tenure does each time it is woken.
type pass struct {
	name string
	run  func(context.Context) error
	// wake returns what wakes the loop. It is asked before the pass, so that what happens during it is not missed.
	wake func() [2]<-chan struct{}
}

// passes are the loops of a tenure, in the order in which work goes through them.
func (w *worker) passes(t *lease.Tenure, b *broadcast) []pass {
	renewal, waiting, cursor := w.renewal(t, b), new(waiting), &cursor{open: w.opening(t.Fence())}
	ended, givenUp := w.Results()
	w.retries.begin(t)
	r := record{tenure: t, store: w.Intents, ended: ended, givenUp: givenUp, metrics: w.Metrics, log: w.log}
	return []pass{
		{"drain", w.drain(t, b, renewal, waiting, cursor).pass,
			func() [2]<-chan struct{} { return [2]<-chan struct{}{w.queued, w.Heads.Next()} }},
		{"confirm", w.confirm(t, b, renewal, waiting).pass,
			func() [2]<-chan struct{} { return [2]<-chan struct{}{w.Heads.Next()} }},
		{"strangers", w.foreignUse(cursor).pass,
			func() [2]<-chan struct{} { return [2]<-chan struct{}{w.Heads.Next()} }},
		{"record", r.pass, func() [2]<-chan struct{} { return [2]<-chan struct{}{w.ended} }},
		{"retry", w.retries.pass, func() [2]<-chan struct{} { return [2]<-chan struct{}{w.Heads.Next()} }},
	}
}

// hasEnded has the end of an attempt published, and looks whether another is to follow.
func (w *worker) hasEnded() {
	w.retries.ended.Store(true)
	signal(w.ended)
}

func (w *worker) broadcast(t *lease.Tenure) *broadcast {
	return &broadcast{
		tenure: t, node: w.Node, heads: w.Heads, store: w.Intents, metrics: w.Metrics, log: w.log,
		last: map[chain.Hash]sent{}, privacy: privacy{cfg: w.cfg.Private, clock: w.Clock}, shared: w.cfg.Shared,
		launches: launches{failed: func() { signal(w.queued) }},
	}
}

func (w *worker) drain(t *lease.Tenure, b *broadcast, renewal renewal, waiting *waiting, cursor *cursor) *drain {
	gaps := gaps{heads: w.Heads, fill: renewal.fill, since: map[uint64]uint64{}}
	claim := claim{
		tenure: t, key: w.key, chainID: w.cfg.ChainID, limits: w.Limits, market: w.market, budget: renewal.budget,
		store: w.Intents, cursor: cursor, expect: b.expect, metrics: w.Metrics, log: w.log, patience: w.cfg.TTL / 4,
	}
	return &drain{
		tenure: t, turns: w.Turns, queue: w.Intents, limits: w.Limits,
		read: w.work.Read,
		stages: append([]Stage{{paysStage, pays{w.Limits, w.market}.run}},
			w.work.Pipeline(Standing{Held: b.held, Reconciled: cursor.read})...),
		dispatch: dispatch{claim.run, b.launch, b.launches.err},
		places:   places{batch: w.cfg.Batch, free: w.places, held: b.held, waiting: waiting},
		upkeep: upkeep{
			reconcile: func(ctx context.Context) error {
				_, err := cursor.get(ctx)
				return err
			},
			count: renewal.budget.count, idle: w.work.Idle, ready: w.ready.Store,
			called: func() bool { return len(w.queued) > 0 },
			tidy:   func(ctx context.Context) error { return w.tidy(ctx, cursor, gaps) },
		},
		passedOver: passedOver{
			clock: w.Clock, head: w.Heads.Number, asleep: map[int64]nap{}, yielded: map[int64]time.Time{},
		},
		endings: endings{maxWait: w.cfg.MaxWait, rest: w.rest, ended: w.hasEnded},
		gate:    func(reason string) { w.Notice(w.gate(), reason) },
		metrics: w.Metrics, log: w.log,
	}
}

// places is how many more transactions of the signer may be claimed, by the store, and how many more of the
// liquidations' lane.
func (w *worker) places(ctx context.Context) (all, urgent int, err error) {
	pending, err := w.Intents.Pending(ctx, w.key.Address())
	most := w.Limits.Flights()
	return most.Places(job.OrderLane) - pending, most.Places(job.LiquidationLane) - pending, err
}

// rest is what comes after an attempt that ends now, on the chain's clock.
func (w *worker) rest(i txm.Intent, o job.Outcome) txm.Rest {
	return txm.After(o, i.Tries, w.Heads.Now(), w.cfg.Cooldown)
}

// foreignUse looks whether the signer's key is used elsewhere.
func (w *worker) foreignUse(cursor *cursor) *foreignUse {
	return &foreignUse{clock: w.Clock, cursor: cursor, mined: func(ctx context.Context) (uint64, bool, error) {
		return reached(ctx, w.Node, w.key.Address())
	}}
}

// tidy looks again at a cursor that is doubted, and fills the gaps that nobody has a job for.
func (w *worker) tidy(ctx context.Context, cursor *cursor, gaps gaps) error {
	if cursor.doubted.Load() {
		if _, err := cursor.get(ctx); err != nil {
			return err
		}
	}
	if cursor.known == nil || len(cursor.known.Released) == 0 {
		return nil
	}
	flights, err := w.Intents.InFlight(ctx, w.key.Address())
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

// renewal signs further transactions at nonces that are taken.
func (w *worker) renewal(t *lease.Tenure, b *broadcast) renewal {
	return renewal{
		tenure: t, key: w.key, chainID: w.cfg.ChainID, limits: w.Limits, market: w.market,
		budget: &budget{signer: w.key.Address(), limit: w.Limits.Fee().Money(), store: w.Intents, node: w.Node,
			clock: w.Clock, metrics: w.Metrics, log: w.log},
		store: w.Intents, broadcast: b, node: w.Node, recheck: w.work.Recheck, metrics: w.Metrics, log: w.log,
	}
}

func (w *worker) confirm(t *lease.Tenure, b *broadcast, renewal renewal, waiting *waiting) *confirm {
	view := view{node: w.Node, signer: w.key.Address(), broadcast: b}
	return &confirm{
		tenure: t, turns: w.Turns, limits: w.Limits, rest: w.rest, store: w.Intents,
		view: view, landing: &landing{view: view, tenure: t, store: w.Intents, limits: w.Limits,
			freed: func() { signal(w.queued) }},
		judge: w.work.Judge, broadcast: b, renewal: renewal, waiting: waiting,
		ages:    newAges(w.Clock, w.cfg.ConfirmTimeout),
		metrics: w.Metrics, log: w.log, ended: w.hasEnded,
	}
}
