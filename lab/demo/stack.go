package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"
)

// Stack is a chain and the keepers that work on it, running on this machine. The keepers share the chain and its price
// feed, and nothing else.
type Stack struct {
	Devnet Devnet
	// Keepers by tier: the first is the Master. They are there before they run.
	Keepers []*Keeper
	// Shadow is a further keeper that has no keys and tries out what the Master would send; nil without
	// Settings.Shadow.
	Shadow *Keeper
	// Resting, set before Start, lets the traders rest until somebody wakes them: what is asked for before keepers run
	// is executed late, and nobody's fault.
	Resting bool
	// Console, set before Start, gives the Master the operators' console beside its services.
	Console bool
	// Adapt, set before Start, changes the configuration of every keeper once the chain is there: settings by their
	// names in the environment, without the prefix (an empty one is left out), and further tables of the configuration
	// file.
	Adapt func(Devnet) (settings map[string]string, tables string)

	// Chain, set before Start, are further settings of the devnet, by their names in the environment without the
	// prefix.
	Chain map[string]string

	settings Settings
	log      zerolog.Logger
	dir      string
	binaries string
	closers  []func() error
	running  sync.WaitGroup
	failed   chan error
	cancel   context.CancelFunc
}

// New describes a stack that is not running yet.
func New(settings Settings, log zerolog.Logger) *Stack {
	s := &Stack{settings: settings, log: log, failed: make(chan error, 1)}
	for i := range settings.Keepers {
		s.Keepers = append(s.Keepers, &Keeper{Tier: i + 1, stack: s})
	}
	if settings.Shadow {
		s.Shadow = &Keeper{stack: s}
	}
	return s
}

// Start brings everything up, one step after the other, and reports each. It returns when the services have been
// started; whether they are ready is theirs to say. Close must be called also after an error.
func (s *Stack) Start(ctx context.Context, report func(string)) error {
	ctx, s.cancel = context.WithCancel(ctx)
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"preparing a folder", s.openDir},
		{fmt.Sprintf("starting the chain, deploying the exchange; starting Postgres and a Kafka-protocol broker (%d "+
			"each)", len(s.Keepers)), s.startParts},
		{"creating topics and schema", s.each((*Keeper).prepare)},
		{"starting scanner, statevm, planner and sender", s.each((*Keeper).startServices)},
	} {
		report(step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// startParts starts what waits for nobody, all at once: a server takes its time to make its files.
func (s *Stack) startParts(ctx context.Context) error {
	var starting errgroup.Group
	starting.Go(func() error {
		if err := s.startDevnet(ctx); err != nil || !s.Resting {
			return err
		}
		return s.Devnet.Trade(ctx, false)
	})
	starting.Go(func() error { return s.each((*Keeper).startStores)(ctx) })
	return starting.Wait()
}

// all are the keepers that share the jobs, and the one that only looks on.
func (s *Stack) all() []*Keeper {
	if s.Shadow == nil {
		return s.Keepers
	}
	return append(slices.Clone(s.Keepers), s.Shadow)
}

// each does something for every keeper, all at once.
func (s *Stack) each(do func(*Keeper, context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		var doing errgroup.Group
		for _, k := range s.all() {
			doing.Go(func() error {
				if err := do(k, ctx); err != nil {
					return fmt.Errorf("%s: %w", k.Name(), err)
				}
				return nil
			})
		}
		return doing.Wait()
	}
}

// adapted is what Adapt changes, nothing without one.
func (s *Stack) adapted() (settings map[string]string, tables string) {
	if s.Adapt == nil {
		return nil, ""
	}
	return s.Adapt(s.Devnet)
}

// UseBinaries has keeperctl be run from another folder from now on. Processes go on; see [Process.Exchange].
func (s *Stack) UseBinaries(folder string) { s.binaries = folder }

// Failed delivers the error of a process that cannot be started again.
func (s *Stack) Failed() <-chan error { return s.failed }

// Dir is the folder of data and logs.
func (s *Stack) Dir() string { return s.dir }

// Close stops everything, youngest first, and removes the folder unless it was named by the configuration.
func (s *Stack) Close() error {
	if s.cancel != nil {
		s.cancel()
	}
	s.running.Wait()
	var problems []error
	for _, k := range s.all() {
		problems = append(problems, k.close())
	}
	for _, closer := range slices.Backward(s.closers) {
		problems = append(problems, closer())
	}
	s.closers = nil
	return errors.Join(problems...)
}

func (s *Stack) openDir(context.Context) (err error) {
	if s.binaries = s.settings.Binaries; s.binaries == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("finding this program: %w", err)
		}
		s.binaries = filepath.Dir(self)
	}
	if s.dir = s.settings.Dir; s.dir == "" {
		if s.dir, err = os.MkdirTemp("", "perpkeeper-demo-"); err != nil {
			return err
		}
		s.closers = append(s.closers, func() error { return os.RemoveAll(s.dir) })
	}
	for _, k := range s.all() {
		k.dir = filepath.Join(s.dir, k.Name())
		if err := os.MkdirAll(filepath.Join(k.dir, "logs"), 0o700); err != nil {
			return err
		}
	}
	return nil
}

// patience is how long keepers may take to get ready. It is a guard against waiting for ever.
const patience = 3 * time.Minute

// AwaitReady waits until every process of the given keepers is ready.
func (s *Stack) AwaitReady(ctx context.Context, keepers ...*Keeper) error {
	return s.await(ctx, patience, func(ctx context.Context) error {
		for _, k := range keepers {
			if err := k.Ready(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// errPatience is the end of a wait whose condition did not come true.
var errPatience = errors.New("the longest wait is over")

// await asks until nothing is missing any more, no process has failed, and no longer than the given time.
func (s *Stack) await(ctx context.Context, most time.Duration, missing func(context.Context) error) error {
	late := time.NewTimer(most)
	defer late.Stop()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		what := missing(ctx)
		if what == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-s.failed:
			return err
		case <-late.C:
			return fmt.Errorf("%w, which is %s: %w", errPatience, most, what)
		case <-tick.C:
		}
	}
}

// supervise runs a keeper's process from here on.
func (s *Stack) supervise(ctx context.Context, k *Keeper, p *Process) {
	s.running.Go(func() {
		if err := p.Run(ctx); err != nil {
			s.fail(fmt.Errorf("%s: %w", k.Name(), err))
		}
	})
}

// fail delivers the first failure.
func (s *Stack) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}
