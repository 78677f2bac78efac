package sender

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/execution"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/nonce"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/signer"
	"perpkeeper/pkg/txm"
)

// Parts are what a sender works with whom somebody else drives.
type Parts struct {
	Log     zerolog.Logger
	Metrics *Metrics
	Owner   lease.Owner
	Keys    []signer.Signer
	Node    node
	State   state
	Leases  leases
	Nonces  nonce.Store
	Intents txm.Store
	// Tell takes what has ended. After an error it is told again.
	Tell func([]txm.Ended) error
	// Clock is the machine's, which may be wrong and may jump. Steady only goes forward: leases are kept by it, and
	// pauses.
	Clock, Steady func() time.Time
}

// Stepper is a sender that somebody else drives: what its loops do when they are woken is done when the caller says so.
// It has no goroutine and no timer that waits; where time is simulated it is the whole sender, but for the wire. It is
// for one goroutine at a time.
type Stepper struct {
	sender  *Sender
	workers []*steppedWorker
	ready   []job.Job // whose turn has come, and that are not stored yet
}

// NewStepper wires a sender and makes its signers known to the store. Of the configuration, what concerns the wire is
// not looked at.
func NewStepper(ctx context.Context, cfg Config, p Parts) (*Stepper, error) {
	s := newSender(cfg, p.Log, p.Metrics, p.Owner, p.Keys, p.Clock)
	s.node, s.state, s.leases, s.nonces, s.intents = p.Node, p.State, p.Leases, p.Nonces, p.Intents
	s.tellers = func() (ended, givenUp teller) { return outlet(p.Tell), outlet(tellNobody) }
	s.market, s.preflight = s.newMarket(), s.newPreflight()
	stepped := &Stepper{sender: s}
	for _, key := range p.Keys {
		if err := s.register(ctx, key); err != nil {
			return nil, err
		}
		w := s.worker(key)
		s.roster.join(w)
		stepped.workers = append(stepped.workers, &steppedWorker{worker: w, steady: p.Steady})
	}
	return stepped, nil
}

// outlet tells by a function.
type outlet func([]txm.Ended) error

func (o outlet) publish(_ context.Context, ended []txm.Ended) error { return o(ended) }

// tellNobody is for what is told elsewhere as well.
func tellNobody([]txm.Ended) error { return nil }

// Head takes in the newest block.
func (s *Stepper) Head(at chain.BlockRef) { s.sender.horizon.Set(at, s.sender.clock()) }

// Report takes in a price report.
func (s *Stepper) Report(r price.Report) { s.sender.quotes.Add(r) }

// ReportsRead says that all reports of the past have been taken in.
func (s *Stepper) ReportsRead() { s.sender.quotes.Complete() }

// Heard takes in a job of the job topic. After an error it has to be taken in again.
func (s *Stepper) Heard(ctx context.Context, j job.Job) error {
	if !s.sender.turns.Admit(j) {
		return nil
	}
	return s.sender.store(ctx, j)
}

// Witnessed takes in a job of the past, which other keepers may have had the time to execute. Nothing is done about it.
func (s *Stepper) Witnessed(j job.Job) { s.sender.turns.Heard(j) }

// Executed takes in what a block of the log topic shows to have been executed. Past says that blocks follow that are
// there already: while they are being read nothing is sent.
func (s *Stepper) Executed(at chain.BlockRef, found []execution.Execution, past bool) {
	s.sender.turns.Executed(found)
	if !past {
		s.sender.turns.Read(at.TimeMs)
	}
}

// Pass makes every pass that is due or was woken, and returns how long to rest if nothing new is taken in.
func (s *Stepper) Pass(ctx context.Context) (rest time.Duration) {
	s.takeTurns(ctx)
	rest = again
	for _, w := range s.workers {
		rest = min(rest, w.step(ctx))
	}
	return rest
}

// takeTurns stores the jobs whose turn has come.
func (s *Stepper) takeTurns(ctx context.Context) {
	s.ready = append(s.ready, s.sender.turns.Ready()...)
	// while the database is away they are kept for the next pass
	for len(s.ready) > 0 && s.sender.store(ctx, s.ready[0]) == nil {
		s.ready = s.ready[1:]
	}
}

// Trouble returns why parts of the sender are not doing their work, as readiness does, or nil.
func (s *Stepper) Trouble(ctx context.Context) error { return s.sender.notices.healthy(ctx) }

// steppedWorker is a worker without loops.
type steppedWorker struct {
	*worker
	steady func() time.Time

	tenure *lease.Tenure // nil while it has none
	due    time.Time     // when to renew the lease, or to ask for it again
	passes []*steppedPass
}

// steppedPass is a pass, and what has been remembered since it was last made.
type steppedPass struct {
	pass
	said    string
	signals [2]<-chan struct{}
	due     time.Time
}

// step does what is due, and returns how long nothing more is.
func (w *steppedWorker) step(ctx context.Context) (rest time.Duration) {
	if err := w.hold(ctx); err != nil {
		w.lose(ctx, err)
	}
	if w.tenure == nil {
		return w.due.Sub(w.steady())
	}
	rest = w.due.Sub(w.steady())
	for _, p := range w.passes {
		if err := w.turn(ctx, p); err != nil {
			w.lose(ctx, err)
			return 0
		}
		rest = min(rest, p.due.Sub(w.steady()))
	}
	return rest
}

// hold keeps the lease, or tries to get it.
func (w *steppedWorker) hold(ctx context.Context) error {
	now, ttl := w.steady(), w.cfg.Sender.LeaseTTL
	if now.Before(w.due) {
		return nil
	}
	if w.tenure != nil {
		rest, err := w.tenure.Tend(ctx)
		w.due = now.Add(rest)
		return err
	}
	t, err := lease.AcquireBy(ctx, w.steady, w.leases, w.key.Address(), w.owner, ttl, w.metrics.Leases)
	if err != nil {
		w.notices.set(w.name, err.Error())
		w.due = now.Add(ttl / 10)
		return nil
	}
	w.notices.set(w.name, "")
	w.tenure, w.due, w.passes = t, now.Add(ttl/3), nil
	for _, p := range w.worker.passes(t, w.broadcast(t)) {
		w.passes = append(w.passes, &steppedPass{pass: p})
	}
	return nil
}

// turn makes a pass if it was woken or is due.
func (w *steppedWorker) turn(ctx context.Context, p *steppedPass) (err error) {
	select {
	case <-p.signals[0]:
	case <-p.signals[1]:
	default:
		if w.steady().Before(p.due) {
			return nil
		}
	}
	var rest time.Duration
	p.signals, rest, err = w.once(ctx, p.pass, &p.said)
	p.due = w.steady().Add(rest)
	return err
}

// lose ends a tenure.
func (w *steppedWorker) lose(ctx context.Context, why error) {
	w.leave(ctx, w.tenure, why)
	w.tenure, w.passes, w.due = nil, nil, w.steady()
}
