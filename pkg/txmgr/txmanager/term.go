package txmanager

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// pass is what one loop of a lease term does each time it is woken.
type pass struct {
	name string
	run  func(context.Context) error
	// wake returns what wakes the loop. It is asked before the pass, so that what happens during it is not missed.
	wake func() [2]<-chan struct{}
}

// duty is what all that is done in one lease term works with.
type duty struct {
	term    *lease.Term
	signer  chain.Address
	node    Node
	store   txm.Store
	heads   *headtrack.Tracker
	limits  Limits
	turns   Turns
	metrics *Metrics
	log     zerolog.Logger
}

// abandoned reports whether a pending transaction is another tier's until that one has had its window. What is
// claimed behind it makes way for itself, see [txm.Observation]; so nobody has to wait until it lands.
func (d duty) abandoned(f txm.PendingTx) bool {
	return d.turns.Ask(f.Intent.Job).Passed && !f.Leaving()
}

// passes are the loops of a lease term, in the order in which work goes through them.
func (w *worker) passes(b *broadcast) []pass {
	signing := signing{duty: b.duty, key: w.key, chainID: w.cfg.ChainID, market: w.market,
		budget:  &budget{duty: b.duty, limit: w.Limits.Fee().Budget, clock: w.Heads.Clock},
		ability: &ability{duty: b.duty, clock: w.Heads.Clock}}
	renewal := renewal{signing: signing, broadcast: b, recheck: w.work.Pipeline.Recheck,
		payments: &payments{duty: b.duty, account: w.key.Address(), clock: w.Heads.Clock}}
	waiting, cursor := new(waiting), &cursor{open: w.cursorOf(b.term.Fence())}
	cursor.unverified.Store(w.lost)
	r := report{duty: b.duty}
	r.ended, r.givenUp = w.Results()
	w.retries.begin(b.term)
	externalUse := externalUse{duty: b.duty, clock: w.Heads.Clock, cursor: cursor}
	heads := func() [2]<-chan struct{} { return [2]<-chan struct{}{w.Heads.Next()} }
	return []pass{
		{"drain", w.drain(renewal, waiting, cursor).pass,
			func() [2]<-chan struct{} { return [2]<-chan struct{}{w.queued, w.Heads.Next()} }},
		{"confirm", w.confirm(renewal, waiting).pass, heads},
		{"external_use", externalUse.pass, heads},
		{"report", r.pass, func() [2]<-chan struct{} { return [2]<-chan struct{}{w.ended} }},
		{"retry", w.retries.pass, heads},
	}
}

// hasEnded has the end of an attempt published, and looks whether another is to follow.
func (w *worker) hasEnded() {
	w.retries.ended.Store(true)
	signal(w.ended)
}

func (w *worker) broadcast(t *lease.Term) *broadcast {
	return &broadcast{
		duty: duty{term: t, signer: t.Fence().Signer, node: w.Node, store: w.Intents, heads: w.Heads,
			limits: w.Limits, turns: w.Turns, metrics: w.Metrics, log: w.log},
		last: map[chain.Hash]sent{}, privacy: privacy{cfg: w.cfg.Private, clock: w.Heads.Clock}, shared: w.cfg.Shared,
		launches: launches{failed: func() { signal(w.queued) }},
	}
}

func (w *worker) drain(renewal renewal, waiting *waiting, cursor *cursor) *drain {
	b, gaps := renewal.broadcast, gaps{heads: w.Heads, fill: renewal.fill, since: map[uint64]uint64{}}
	claim := claim{signing: renewal.signing, cursor: cursor, expect: b.expect, patience: w.cfg.TTL / 4}
	return &drain{
		duty: b.duty, read: w.work.Pipeline.Read,
		stages: append([]Stage{{paysStage, pays{w.Limits, w.market, renewal.budget}.run}},
			w.work.Pipeline.Stages(TermState{Held: b.held, Reconciled: cursor.isRead})...),
		checks:   checks{beside: b.launches.beside, queued: w.queued},
		dispatch: dispatch{claim.run, b.launch, b.launches.err},
		slots:    slots{batch: w.cfg.Batch, free: w.slots, held: b.held, waiting: waiting},
		upkeep: upkeep{
			numbers: numbers{b.duty, cursor, gaps}, funds: renewal.budget, idle: w.work.Idle,
			called: func() bool { return len(w.queued) > 0 },
		},
		deferred: deferred{
			clock: w.Heads.Clock, head: w.Heads.Number, deferrals: map[int64]deferral{}, yielded: map[int64]time.Time{},
		},
		endings: endings{maxWait: w.cfg.MaxWait, rest: w.rest, ended: w.hasEnded},
		blocked: w.blocked(b),
	}
}

// slots is how many more transactions of the signer may be claimed, by the store, and how many more of the
// liquidations' lane.
func (w *worker) slots(ctx context.Context) (all, urgent int, err error) {
	pending, err := w.Intents.Pending(ctx, w.key.Address())
	most := w.Limits.InFlight()
	return most.Slots(job.OrderLane) - pending, most.Slots(job.LiquidationLane) - pending, err
}

// rest is what comes after an attempt that ends now, on the chain's clock.
func (w *worker) rest(i txm.Intent, o job.Outcome) txm.Rest {
	return txm.After(o, i.Tries, w.Heads.Now(), w.cfg.Cooldown)
}

// numbers are a signer's nonces in one lease term.
type numbers struct {
	duty
	cursor *cursor
	gaps   gaps
}

// reconcile implements nonces.
func (n numbers) reconcile(ctx context.Context) error {
	_, err := n.cursor.get(ctx)
	return err
}

// housekeeping implements nonces: it looks again at a cursor that is unverified, and fills the gaps that nobody has a
// job for.
func (n numbers) housekeeping(ctx context.Context) error {
	if n.cursor.unverified.Load() {
		if err := n.reconcile(ctx); err != nil {
			return err
		}
	}
	if n.cursor.known == nil || len(n.cursor.known.Released) == 0 {
		return nil
	}
	inFlight, err := n.store.InFlight(ctx, n.signer)
	if err != nil {
		return err
	}
	tried, err := n.gaps.pass(ctx, n.cursor.known.Released, inFlight)
	if tried {
		n.cursor.lose()
	}
	if txm.Refused(err) != "" {
		return nil // the number is taken: the cursor will say so
	}
	return err
}

func (w *worker) confirm(renewal renewal, waiting *waiting) *confirm {
	view := view{duty: renewal.duty, broadcast: renewal.broadcast}
	return &confirm{
		view: view, landing: &landing{view: view, freed: func() { signal(w.queued) }},
		judge: w.work.Judge, rest: w.rest, renewal: renewal, waiting: waiting,
		ages: newAges(w.Heads.Clock, confirmTimeout), ended: w.hasEnded, blocked: w.blocked(renewal.broadcast),
	}
}
