// Package shadow is the sender of a keeper without keys: each job is checked as the real sender would check it, at the
// moment it would have been sent, by the same gate and the same simulated call; nothing is signed and nothing is sent.
// What came of it is kept for keeperctl shadow report.
//
// Calls are simulated as the address that the planner routed a job to (keeper.signers): name a signer of the venue's
// real keepers there, which has the roles. Nobody needs its key for that.
//
// Guaranteed: a job's first success is kept, with the head it was on, however often the planner publishes it again. Not
// guaranteed: what a real sender is held back by beside the venue: prices of gas, money, nonces, places in flight.
package shadow

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/shadow"
	"perpkeeper/pkg/txmgr/headtrack"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/pkg/txmgr/txmanager"
)

// Config is the settings of a sender without keys.
type Config struct {
	MaxAge time.Duration // for how long a job is looked at, on the chain's clock
	Batch  int           // most jobs that are looked at side by side
}

// Parts are what it works with.
type Parts struct {
	// Gate holds everything back while this keeper does not see what happens.
	Gate txmanager.Stage
	// Check opens the last look of a signer. Look is to be called when something is to be looked at again.
	Check func(signer chain.Address, look func()) Check
	Head  *headtrack.Tracker
	// GasPrice is what nodes suggest, in wei per gas.
	GasPrice func(ctx context.Context) (uint64, error)
	Store    Store
	Clock    func() time.Time
	Log      zerolog.Logger
}

// Check is the last look before a transaction: it makes the call and simulates it.
type Check interface {
	Run(ctx context.Context, t *txmanager.Task) (txmanager.Verdict, error)
	Close()
}

// Store keeps trials.
type Store interface {
	Save(ctx context.Context, trials []shadow.Trial) error
}

// Sender tries jobs out. Offer may be called by anybody.
type Sender struct {
	cfg   Config
	parts Parts
	wake  chan struct{}

	mu     sync.Mutex
	next   int64
	trials map[dueJob]*trial
	checks map[chain.Address]Check
}

type dueJob struct {
	id         string
	dueSinceMs uint64
}

// trial is one due time of a job while it is watched.
type trial struct {
	number  int64 // stands for the intent's
	job     job.Job
	kept    shadow.Trial
	offered time.Time
	closed  bool
	// reverted is the head on which the call last reverted for good; what the planner found later opens it again.
	reverted uint64
	dirty    bool // not stored yet as it stands
	rest     time.Time
	restTo   uint64 // head before which it is not looked at again
}

// New asks nothing of anybody yet.
func New(cfg Config, p Parts) *Sender {
	return &Sender{cfg: cfg, parts: p, wake: make(chan struct{}, 1), trials: map[dueJob]*trial{},
		checks: map[chain.Address]Check{}}
}

// Offer takes in a job that the planner has found due.
func (s *Sender) Offer(j job.Job) {
	now := max(s.parts.Head.Time(), j.Evidence.Block.TimeMs)
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.trials[dueJob{j.ID, j.DueSinceMs}]
	if t == nil {
		s.next++
		t = &trial{number: s.next, offered: s.parts.Clock(), dirty: true, kept: shadow.Trial{
			JobID: j.ID, DueSinceMs: j.DueSinceMs, Kind: j.Kind, Key: j.Key, Account: j.Account, Market: j.Market,
			IsLong: j.IsLong, ObservedMs: now}}
		s.trials[dueJob{j.ID, j.DueSinceMs}] = t
	}
	t.job = j
	if t.closed && t.reverted > 0 && j.Evidence.Block.Number > t.reverted {
		t.closed, t.kept.Outcome = false, ""
	}
	if !t.closed {
		s.look()
	}
}

func (s *Sender) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// again is how long to rest where neither a head nor a job comes.
const again = 250 * time.Millisecond

// Run tries until ctx ends.
func (s *Sender) Run(ctx context.Context) error {
	defer func() {
		for _, c := range s.checks {
			c.Close()
		}
	}()
	for {
		head := s.parts.Head.Next()
		if err := s.pass(ctx); err != nil && ctx.Err() == nil {
			s.parts.Log.Warn().Err(err).Msg("what would have been sent is not kept yet")
		}
		select {
		case <-head:
		case <-s.wake:
		case <-time.After(again):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pass looks at every job that is to be looked at now, and keeps what has changed.
func (s *Sender) pass(ctx context.Context) error {
	group := errgroup.Group{}
	group.SetLimit(s.cfg.Batch)
	for _, t := range s.due() {
		group.Go(func() error {
			s.try(ctx, t)
			return nil
		})
	}
	_ = group.Wait() // no try returns its error this way
	return s.keep(ctx)
}

// due lists what is to be looked at now, and forgets what is old.
func (s *Sender) due() (due []*trial) {
	now, head := s.parts.Clock(), s.parts.Head.Number()
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.trials, func(_ dueJob, t *trial) bool {
		return !t.dirty && now.Sub(t.offered) > 2*s.cfg.MaxAge
	})
	for _, t := range s.trials {
		if t.closed || now.Before(t.rest) || head < t.restTo {
			continue
		}
		if now.Sub(t.offered) > s.cfg.MaxAge {
			t.closed, t.dirty = true, true
			t.kept.Reason = "too old: " + t.kept.Reason
			continue
		}
		due = append(due, t)
	}
	return due
}

// try takes one job through the stages of a real sender, as far as the claim. Who cannot be asked is asked again.
func (s *Sender) try(ctx context.Context, t *trial) {
	head, _ := s.parts.Head.Newest()
	s.mu.Lock()
	j, waited := t.job, s.parts.Clock().Sub(t.offered)
	check := s.checks[j.Signer]
	if check == nil {
		check = s.parts.Check(j.Signer, s.look)
		s.checks[j.Signer] = check
	}
	s.mu.Unlock()
	task := &txmanager.Task{Intent: txm.Intent{ID: t.number, Job: j, Signer: j.Signer, Waited: waited}}
	v, err := s.parts.Gate.Run(ctx, task)
	if err == nil && v.Kind == txmanager.Proceed {
		v, err = check.Run(ctx, task)
	}
	if err != nil {
		v = txmanager.Wait(err.Error())
	}
	var gasPrice uint64
	if v.Kind == txmanager.Proceed {
		if gasPrice, err = s.parts.GasPrice(ctx); err != nil {
			v = txmanager.Wait(err.Error())
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(t, task, v, head, gasPrice)
}

func (s *Sender) note(t *trial, task *txmanager.Task, v txmanager.Verdict, head chain.BlockRef, gasPrice uint64) {
	if v.Reason != t.kept.Reason {
		t.dirty, t.kept.Reason = true, v.Reason
	}
	switch v.Kind {
	case txmanager.Proceed:
		t.closed, t.dirty = true, true
		t.kept.SentBlock, t.kept.SentMs, t.kept.Gas, t.kept.GasPrice = head.Number, head.TimeMs, task.Call.Gas, gasPrice
		s.parts.Log.Info().Str("job", t.kept.JobID).Uint64("head", head.Number).Uint64("gas", task.Call.Gas).
			Msg("would have been sent")
	case txmanager.Drop:
		t.closed, t.dirty, t.kept.Outcome = true, true, v.Outcome
		if len(task.Call.Data) > 0 { // the call was made, and reverted
			t.kept.Reverts++
			t.reverted = head.Number
		}
		s.parts.Log.Info().Str("job", t.kept.JobID).Str("outcome", string(v.Outcome)).Str("reason", v.Reason).
			Msg("would not have been sent")
	default:
		t.restTo = head.Number + v.Heads
		t.rest = s.parts.Clock().Add(max(v.Pause, 50*time.Millisecond))
	}
}

func (s *Sender) keep(ctx context.Context) error {
	s.mu.Lock()
	var changed []shadow.Trial
	var of []*trial
	for _, t := range s.trials {
		if t.dirty {
			changed, of = append(changed, t.kept), append(of, t)
			t.dirty = false
		}
	}
	s.mu.Unlock()
	if len(changed) == 0 {
		return nil
	}
	err := s.parts.Store.Save(ctx, changed)
	if err != nil {
		s.mu.Lock()
		for _, t := range of {
			t.dirty = true
		}
		s.mu.Unlock()
	}
	return err
}
