package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/tier/execution/ledger"
)

// Scene is an act that was played.
type Scene struct {
	Act
	// From and To are its blocks. What was under way when it was opened, and landed, is the scene's before it.
	From, To uint64
	// OpenedMs is the chain's time (Unix ms) when it was opened.
	OpenedMs uint64
	// Rows are the jobs that were executed in it, whenever they were born.
	Rows []ledger.Row
}

// Play drives keepers through acts. It begins when they are ready, and asks the chain, and nobody else, who has
// executed what.
type Play struct {
	stack  *Stack
	node   *evm.Client
	down   map[int]func() // by tier: what lets the keeper run again
	scenes []Scene

	mu  sync.Mutex
	now string // what is being played
}

// Now names what is being played, for people.
func (p *Play) Now() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now
}

func (p *Play) announce(what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = what
}

// NewPlay is a play on a stack that was started.
func NewPlay(s *Stack) *Play {
	return &Play{stack: s, down: map[int]func(){}, now: "waiting for every process to be ready"}
}

// Begin waits until every keeper is ready, and wakes the traders. Close must be called also after an error.
func (p *Play) Begin(ctx context.Context) error {
	s := p.stack
	if err := s.AwaitReady(ctx, s.Keepers...); err != nil {
		return fmt.Errorf("waiting for the keepers: %w", err)
	}
	var err error
	if p.node, err = s.Node(ctx); err != nil {
		return err
	}
	return s.Devnet.Trade(ctx, true)
}

// Close ends the connection to the chain.
func (p *Play) Close() {
	if p.node != nil {
		p.node.Close()
	}
}

// Down kills keepers, all of their processes at once, and keeps them down.
func (p *Play) Down(tiers ...int) {
	for _, tier := range tiers {
		if p.down[tier] == nil {
			p.down[tier] = p.stack.Keepers[tier-1].Hold()
		}
	}
}

// Up lets keepers run again.
func (p *Play) Up(tiers ...int) {
	for _, tier := range tiers {
		if release := p.down[tier]; release != nil {
			release()
			delete(p.down, tier)
		}
	}
}

// Running are the keepers that are not kept down.
func (p *Play) Running() (keepers []*Keeper) {
	for _, k := range p.stack.Keepers {
		if p.down[k.Tier] == nil {
			keepers = append(keepers, k)
		}
	}
	return keepers
}

// Wait waits, and fails if a process does that cannot be started again.
func (p *Play) Wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case err := <-p.stack.failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// AwaitReady waits until every process of the keepers that run is ready, and returns the chain's time (Unix ms) then.
func (p *Play) AwaitReady(ctx context.Context) (uint64, error) {
	if err := p.stack.AwaitReady(ctx, p.Running()...); err != nil {
		return 0, err
	}
	head, err := p.node.Head(ctx)
	return head.TimeMs, err
}

// landing is how many blocks a transaction may take that was broadcast when its keeper was killed.
const landing = 4

// Perform plays an act.
func (p *Play) Perform(ctx context.Context, a Act) error {
	p.announce(a.Name)
	head, err := p.node.Head(ctx)
	if err != nil {
		return err
	}
	scene := Scene{Act: a, OpenedMs: head.TimeMs}
	if a.Open != nil {
		if err := a.Open(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", a.Name, err)
		}
		if head, err = p.awaitBlock(ctx, head.Number+landing); err != nil {
			return err
		}
	}
	scene.From = head.Number + 1
	p.scenes = append(p.scenes, scene)
	if err := a.Run(ctx, p); err != nil {
		return fmt.Errorf("%s: %w", a.Name, err)
	}
	return nil
}

// idlePatience is how long what is left may take once nobody trades any more. Trigger orders and liquidations become
// due as prices move, for ever.
const idlePatience = 90 * time.Second

// AwaitIdle lets the traders rest and waits until the keepers that run have nothing left to do. What is left over after
// a while is in the rows as such: it is for the expectations to judge.
func (p *Play) AwaitIdle(ctx context.Context) error {
	p.announce("nobody trades any more: finishing what is left")
	if err := p.stack.Devnet.Trade(ctx, false); err != nil {
		return err
	}
	if err := p.stack.await(ctx, idlePatience, p.idle); !errors.Is(err, errPatience) {
		return err
	}
	return nil
}

// Scenes returns what was played, with what the chain shows of each scene up to now.
func (p *Play) Scenes(ctx context.Context) ([]Scene, error) {
	head, err := p.node.Head(ctx)
	if err == nil {
		head, err = p.awaitBlock(ctx, head.Number+landing)
	}
	if err != nil {
		return nil, err
	}
	rows, err := p.stack.Audit(ctx, p.node, p.scenes[0].From, head.Number)
	if err != nil {
		return nil, err
	}
	return divide(slices.Clone(p.scenes), head.Number, rows), nil
}

// divide gives each row to the scene in which its job was executed. What nobody has executed is the last scene's.
func divide(scenes []Scene, head uint64, rows []ledger.Row) []Scene {
	for i := range scenes {
		s := &scenes[i]
		if s.To = head; i+1 < len(scenes) {
			s.To = scenes[i+1].From - 1
		}
		for _, r := range rows {
			switch {
			case r.Winner != nil && s.From <= r.Winner.Block && r.Winner.Block <= s.To, r.Winner == nil &&
				i == len(scenes)-1:
				s.Rows = append(s.Rows, r)
			}
		}
	}
	return scenes
}

// idle returns which keeper has something to do, or nil.
func (p *Play) idle(ctx context.Context) error {
	for _, k := range p.Running() {
		for _, process := range k.Processes {
			m := process.Metrics(ctx)
			if m == nil {
				return fmt.Errorf("%s's %s does not show its metrics", k.Role(), process.Name)
			}
			if n := m["planner_jobs_live"] + m["sender_in_flight"]; n > 0 {
				return fmt.Errorf("%s's %s has %.0f jobs", k.Role(), process.Name, n)
			}
		}
	}
	return nil
}

// awaitBlock waits until the chain has a block, and returns the head.
func (p *Play) awaitBlock(ctx context.Context, number uint64) (head chain.BlockRef, err error) {
	err = p.stack.await(ctx, patience, func(ctx context.Context) error {
		if head, err = p.node.Head(ctx); err == nil && head.Number < number {
			err = fmt.Errorf("the head is block %d and not %d", head.Number, number)
		}
		return err
	})
	return head, err
}
