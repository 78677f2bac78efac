package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
)

// DefaultFailover is the demo with as many jobs as are easily followed: about one a second.
func DefaultFailover() Config {
	cfg := DefaultConfig()
	cfg.Demo.Rate = 1
	return cfg
}

// How long the acts take, in windows.
const (
	normalWindows = 2
	downWindows   = 3
)

// returning is how long the act of the Master's return takes: it suspects itself until it has executed a probe, of
// which there is one in each minute of chain time.
func returning(window time.Duration) time.Duration { return max(3*window, 100*time.Second) }

// failoverLength is about how long the acts take together, with start and end.
func failoverLength(window time.Duration) time.Duration {
	return 2*(normalWindows+downWindows)*window + returning(window) + time.Minute
}

// slack is what an execution may take beyond the beginning of its window: the head, the broadcast, a block, on a
// machine that runs everything at once.
const slack = 10 * time.Second

// failover are the acts: the keepers fail one after the other, return, and all fail together.
func failover(window time.Duration) []Act {
	return []Act{
		{
			Name: "normal", Run: Lasts(normalWindows * window),
			Expect: Expectation{By: []int{1}, P99: 3 * time.Second},
		},
		{
			Name: "Master down", Open: Kill(1), Run: Lasts(downWindows * window),
			Expect: Expectation{By: []int{2, 3}, Heir: 2, Oldest: window + slack},
		},
		{
			Name: "Master and Backup-1 down", Open: Kill(2), Run: Lasts(downWindows * window),
			Expect: Expectation{By: []int{3}, Oldest: 2*window + slack},
		},
		{
			Name: "Master returns", Open: Restore(1), Run: Lasts(returning(window)),
			Expect: Expectation{By: []int{1, 3}, Heir: 1, Oldest: 2*window + slack, Duplicates: 1},
		},
		{
			Name: "all restart together", Open: restartAll, Run: Lasts(normalWindows * window),
			Expect: Expectation{By: []int{1, 2, 3}, Heir: 1, Oldest: 2*window + slack},
		},
	}
}

// restartAll ends every keeper and starts all of them at once.
func restartAll(ctx context.Context, p *Play) error {
	p.Down(1, 2, 3)
	const dark = 5 * time.Second
	if err := p.Wait(ctx, dark); err != nil {
		return err
	}
	p.Up(1, 2, 3)
	return nil
}

// Failover plays how three keepers fail and return, shows what the chain says of it, and fails unless every act went as
// it should.
func Failover(ctx context.Context, cfg Config, log zerolog.Logger, screen Screen) error {
	const keepers = 3
	if cfg.Demo.Keepers != keepers {
		return fmt.Errorf("keepers: a failover is played by %d, not by %d", keepers, cfg.Demo.Keepers)
	}
	screen.Print(fmt.Sprintf("this takes about %s", failoverLength(cfg.Demo.Window)))
	scenes, err := perform(ctx, cfg.Demo, log, screen, func(ctx context.Context, p *Play) error {
		for _, act := range failover(cfg.Demo.Window) {
			if err := p.Perform(ctx, act); err != nil {
				return err
			}
		}
		return p.AwaitIdle(ctx)
	})
	if err != nil || len(scenes) == 0 {
		return err
	}
	if err := WriteScenes(screen.Out, scenes, keepers); err != nil {
		return err
	}
	return Judge(scenes)
}

// Judge holds each scene against what was expected of it, and joins what was otherwise.
func Judge(scenes []Scene) error {
	var problems []error
	for _, s := range scenes {
		if err := s.Expect.Check(s.Rows); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", s.Name, err))
		}
	}
	return errors.Join(problems...)
}
