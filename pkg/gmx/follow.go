package gmx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

const (
	// lookEvery is how often the venue is looked at while nothing asks for it.
	lookEvery = time.Minute
	// urgentEvery is how often it is looked at after the venue has refused a call for want of a role, and urgentFor for
	// how long: what has changed is seen once its block is final.
	urgentEvery = time.Second
	urgentFor   = 10 * time.Second
	// oldAfter is how long after the last look that was answered the venue counts as not known.
	oldAfter = 3 * lookEvery
)

// Follower keeps a [Venue] as the chain has it at final blocks, from the one address that is configured: it looks when
// it begins, again every minute, and at once when it is told that something has changed (PIPE-11). It is safe for
// concurrent use.
//
// Guaranteed: a handler that has the role CONTROLLER at a final block is in use a minute later, and one that has lost
// it is not; a look that is not answered in full changes nothing.
//
// Not guaranteed: that a handler may act which a call goes to. Between two looks it may lose its role; then the
// simulated call says so.
type Follower struct {
	final   final
	store   chain.Address
	signers []chain.Address
	log     zerolog.Logger
	now     func() time.Time
	wake    chan struct{}

	looking sync.Mutex // one look at a time
	finder  Finder

	mu       sync.Mutex
	venue    Venue
	emitters []chain.Address // all that were ever found
	at       time.Time       // of the last look that was answered; zero = none was
	failure  error           // why the last look was not
	missed   map[missing]bool
}

// missing is a role that a signer needs and does not hold.
type missing struct {
	signer chain.Address
	role   string
}

// Chain shows the newest final block, and the state after it, which is to be believed: where there are several
// endpoints, it is not one's word alone.
type Chain[S State] interface {
	Finalized(ctx context.Context) (chain.BlockRef, error)
	Settled(block chain.Hash) S
}

type final func(ctx context.Context) (chain.BlockRef, State, error)

func finalOf[S State](node Chain[S]) final {
	return func(ctx context.Context) (chain.BlockRef, State, error) {
		block, err := node.Finalized(ctx)
		return block, node.Settled(block.Hash), err
	}
}

// Locate looks once at the exchange with a DataStore, and at the roles of some signers.
func Locate[S State](ctx context.Context, node Chain[S], store chain.Address, signers ...chain.Address) (Venue, error) {
	f := Follow(store, signers, node, zerolog.Nop())
	return f.find(ctx)
}

// Follow makes a follower of the exchange with a DataStore, which also looks at the roles of some signers.
func Follow[S State](store chain.Address, signers []chain.Address, node Chain[S], log zerolog.Logger) *Follower {
	return newFollower(store, signers, finalOf(node), log)
}

func newFollower(store chain.Address, signers []chain.Address, final final, log zerolog.Logger) *Follower {
	return &Follower{final: final, store: store, signers: signers, log: log, now: time.Now,
		wake: make(chan struct{}, 1), missed: map[missing]bool{}}
}

// Fixed is a follower that has found a venue and never looks again.
func Fixed(v Venue) *Follower {
	f := newFollower(v.DataStore, nil, nil, zerolog.Nop())
	f.venue, f.emitters, f.at = v, v.EventEmitters(), f.now()
	return f
}

// Venue returns the exchange as it was found last; an empty one before the first look.
func (f *Follower) Venue() Venue {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.venue
}

// EventEmitters are all contracts by which handlers emit, or did when they were found: their logs are still to be read.
func (f *Follower) EventEmitters() []chain.Address {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.emitters
}

// Lacks is [Venue.Lacks], and notes that the role is missed.
func (f *Follower) Lacks(signer chain.Address, j job.Job) (role string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if role = f.venue.Lacks(signer, j); role != "" {
		f.miss(missing{signer, role})
	}
	return role
}

// miss notes that a role is missed. The lock is held.
func (f *Follower) miss(m missing) {
	if !f.missed[m] {
		f.missed[m] = true
		f.log.Error().Str("signer", m.signer.Hex()).Str("role", m.role).
			Msg("the signer does not hold a role that its jobs need: they wait until the venue grants it")
	}
}

// Healthy returns an error while the venue is not known, lacks a contract for one of the kinds, or has taken from a
// signer a role that it held or needs.
func (f *Follower) Healthy(kinds ...job.Kind) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var problems []error
	switch {
	case f.at.IsZero():
		problems = append(problems, errors.New("the venue's contracts have not been found yet"), f.failure)
	case f.failure != nil && f.now().Sub(f.at) > oldAfter:
		problems = append(problems, fmt.Errorf("the venue's contracts have not been read for %s: %w", oldAfter,
			f.failure))
		fallthrough
	default:
		problems = append(problems, f.venue.Demand(kinds...))
	}
	byText := func(a, b missing) int { return strings.Compare(a.signer.Hex()+a.role, b.signer.Hex()+b.role) }
	for _, m := range slices.SortedFunc(maps.Keys(f.missed), byText) {
		problems = append(problems, fmt.Errorf("signer %s does not hold the role %s (RoleStore %s): its jobs wait",
			m.signer, m.role, f.venue.RoleStore))
	}
	return errors.Join(problems...)
}

// Changed has the next look at the venue come now, and one every second for a while: somebody was told that a role has
// moved.
func (f *Follower) Changed() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Run looks again and again until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	last := f.now()
	next, urgent := last.Add(lookEvery), last // until when it looks every second
	for {
		timer := time.NewTimer(next.Sub(f.now()))
		select {
		case <-timer.C:
			if err := f.Look(ctx); err != nil && ctx.Err() == nil {
				f.log.Warn().Err(err).Msg("the venue's contracts cannot be read now; those that were found are used")
			}
			if last = f.now(); last.Before(urgent) {
				next = last.Add(urgentEvery)
			} else {
				next = last.Add(lookEvery)
			}
		case <-f.wake:
			timer.Stop()
			urgent = f.now().Add(urgentFor)
			next = last.Add(urgentEvery)
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		}
	}
}

// Look looks once.
func (f *Follower) Look(ctx context.Context) error {
	if f.final == nil {
		return nil
	}
	f.looking.Lock()
	defer f.looking.Unlock()
	v, err := f.find(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failure = err; err != nil {
		return err
	}
	f.found(v)
	return nil
}

func (f *Follower) find(ctx context.Context) (v Venue, err error) {
	block, state, err := f.final(ctx)
	if err != nil {
		return v, err
	}
	if v, err = f.finder.Find(ctx, state, f.store, f.signers); err != nil {
		return v, fmt.Errorf("looking for the venue's contracts at block %d: %w", block.Number, err)
	}
	v.Block = block
	return v, nil
}

// found takes a venue into use. The lock is held.
func (f *Follower) found(v Venue) {
	before := f.venue
	f.venue, f.at = v, f.now()
	for _, h := range v.Handlers {
		if !slices.Contains(before.Executors(), h.Address) {
			f.log.Info().Str("handler", h.Address.Hex()).Any("executes", h.Kinds).Uint64("block", v.Block.Number).
				Msg("the venue has this handler")
		}
	}
	for _, h := range before.Handlers {
		if !slices.Contains(v.Executors(), h.Address) {
			f.log.Info().Str("handler", h.Address.Hex()).Any("executes", h.Kinds).Uint64("block", v.Block.Number).
				Msg("the venue has taken its role from this handler: it is left")
		}
	}
	for _, e := range v.EventEmitters() {
		if slices.Contains(f.emitters, e) {
			continue
		}
		if len(f.emitters) > 0 {
			f.log.Error().Str("emitter", e.Hex()).Uint64("block", v.Block.Number).
				Msg("the venue emits by another contract as well: its events are recorded from now on; rebuild from " +
					"the first block if it had emitted before")
		}
		f.emitters = append(slices.Clone(f.emitters), e)
	}
	for signer, held := range v.Held {
		for _, role := range keeperRoles {
			m := missing{signer, role}
			switch {
			case slices.Contains(held, role) && f.missed[m]:
				delete(f.missed, m)
				f.log.Info().Str("signer", signer.Hex()).Str("role", role).Msg("the signer holds the role again")
			case !slices.Contains(held, role) && slices.Contains(before.Held[signer], role):
				f.miss(m)
			}
		}
	}
}
