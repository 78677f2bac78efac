package sender

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/tier/execution"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/signer"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/pkg/txmgr/txmanager"
	"perpkeeper/services/sender/preflight"
)

// Parts are the dependencies of a sender that its caller drives.
type Parts struct {
	Log     zerolog.Logger
	Metrics *Metrics
	Owner   lease.Owner
	Keys    []signer.Signer
	Node    node
	Venue   gmx.Venue
	State   preflight.State
	Leases  leases
	Nonces  nonce.Store
	Intents txm.Store
	// Publish takes attempts that have ended. After an error it is called with them again.
	Publish func([]txm.Ended) error
	// Clock is the machine's, which may be wrong and may jump. Steady only goes forward: leases are kept by it, and
	// pauses.
	Clock, Steady func() time.Time
}

// Stepper is a sender that somebody else drives: what its loops do when they are woken is done when the caller asks for
// it. It has no goroutine and no timer that waits; where time is simulated it is the whole sender, but for the wire. It
// is for one goroutine at a time.
type Stepper struct {
	sender  *Sender
	signers []*txmanager.Stepper
	ready   []job.Job // whose turn has come, and that are not stored yet
}

// NewStepper wires a sender and makes its signers known to the store. Of the configuration, what concerns the wire is
// not looked at.
func NewStepper(ctx context.Context, cfg Config, p Parts) (*Stepper, error) {
	s := newSender(cfg, p.Log, p.Metrics, p.Owner, p.Keys, p.Clock)
	s.outside = outside{node: p.Node, venue: gmx.Fixed(p.Venue), state: p.State, leases: p.Leases, nonces: p.Nonces,
		intents: p.Intents,
		results: func() (ended, givenUp txmanager.Publisher) { return publishBy(p.Publish), publishBy(toNobody) }}
	s.preflight = s.newPreflight()
	s.manager = s.newManager()
	stepped := &Stepper{sender: s}
	for _, key := range p.Keys {
		if err := s.register(ctx, key); err != nil {
			return nil, err
		}
		stepped.signers = append(stepped.signers, s.manager.Stepper(key, p.Steady))
	}
	return stepped, nil
}

type publishBy func([]txm.Ended) error

// Publish hands over what has ended.
func (p publishBy) Publish(_ context.Context, ended []txm.Ended) error { return p(ended) }

// toNobody is for what is published elsewhere as well.
func toNobody([]txm.Ended) error { return nil }

// Head takes in the newest block.
func (s *Stepper) Head(at chain.BlockRef) { s.sender.headTracker.Set(at, s.sender.clock()) }

// Report takes in a price report.
func (s *Stepper) Report(r price.Report) { s.sender.quotes.Add(r) }

// ReportsRead reports that all reports of the past have been taken in.
func (s *Stepper) ReportsRead() { s.sender.quotes.Complete() }

// Job takes in a job of the job topic. After an error it has to be taken in again.
func (s *Stepper) Job(ctx context.Context, j job.Job) error {
	if !s.sender.turns.Admit(j) {
		return nil
	}
	return s.sender.store(ctx, j)
}

// PastJob takes in a job of the past, which other keepers may have had the time to execute. Nothing is done about it.
func (s *Stepper) PastJob(j job.Job) { s.sender.turns.Published(j) }

// Executed takes in what a block of the log topic shows to have been executed. Past means that blocks follow that are
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
	for _, signer := range s.signers {
		rest = min(rest, signer.Step(ctx))
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
