package txmanager

import (
	"context"
	"time"

	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/signer"
)

// Stepper works one signer without a goroutine or a timer that waits: what its loops do when they are woken is done
// when the caller asks for one. It is for one goroutine at a time.
type Stepper struct {
	worker *worker
	steady func() time.Time

	term   *lease.Term // nil while it has none
	due    time.Time   // when to renew the lease, or to ask for it again
	passes []*steppedPass
}

// Stepper begins to work a signer by steps. Steady is a clock that only goes forward: leases are kept by it, and
// pauses.
func (m *Manager) Stepper(key signer.Signer, steady func() time.Time) *Stepper {
	w := m.worker(key)
	m.roster.join(w)
	return &Stepper{worker: w, steady: steady}
}

// steppedPass is a pass, and what has been remembered since it was last made.
type steppedPass struct {
	pass
	reported string
	signals  [2]<-chan struct{}
	due      time.Time
}

// Step does what is due, and returns how long nothing more is unless something wakes it.
func (s *Stepper) Step(ctx context.Context) (rest time.Duration) {
	if err := s.hold(ctx); err != nil {
		s.lose(ctx, err)
	}
	if s.term == nil {
		return s.due.Sub(s.steady())
	}
	rest = s.due.Sub(s.steady())
	for _, p := range s.passes {
		if err := s.turn(ctx, p); err != nil {
			s.lose(ctx, err)
			return 0
		}
		rest = min(rest, p.due.Sub(s.steady()))
	}
	return rest
}

// hold keeps the lease, or tries to get it.
func (s *Stepper) hold(ctx context.Context) error {
	now, ttl := s.steady(), s.worker.cfg.TTL
	if now.Before(s.due) {
		return nil
	}
	if s.term != nil {
		rest, err := s.term.RenewOnce(ctx)
		s.due = now.Add(rest)
		return err
	}
	w := s.worker
	t, err := lease.AcquireBy(ctx, s.steady, w.Leases, w.key.Address(), w.cfg.Owner, ttl, w.Metrics.Leases)
	if err != nil {
		s.worker.Notice(s.worker.name, err.Error())
		s.due = now.Add(ttl / 10)
		return nil
	}
	s.worker.Notice(s.worker.name, "")
	s.term, s.due, s.passes = t, now.Add(ttl/3), nil
	for _, p := range s.worker.passes(s.worker.broadcast(t)) {
		s.passes = append(s.passes, &steppedPass{pass: p})
	}
	return nil
}

// turn makes a pass if it was woken or is due.
func (s *Stepper) turn(ctx context.Context, p *steppedPass) (err error) {
	select {
	case <-p.signals[0]:
	case <-p.signals[1]:
	default:
		if s.steady().Before(p.due) {
			return nil
		}
	}
	var rest time.Duration
	p.signals, rest, err = s.worker.once(ctx, p.pass, &p.reported)
	p.due = s.steady().Add(rest)
	return err
}

func (s *Stepper) lose(ctx context.Context, why error) {
	s.worker.leave(ctx, s.term, why)
	s.term, s.passes, s.due = nil, nil, s.steady()
}
