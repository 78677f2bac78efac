package demo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier/execution"
	"perpkeeper/pkg/tier/execution/ledger"
)

// Run shows keepers at work until ctx ends or the duration is over. With a duration it fails unless the chain then says
// that orders were executed and positions liquidated, every one of them by the Master and none twice.
func Run(ctx context.Context, cfg Config, log zerolog.Logger, screen Screen) error {
	act := Act{Name: "keepers at work", Run: Lasts(cfg.Demo.Duration)}
	if cfg.Demo.Duration == 0 {
		act.Run = Lasts(math.MaxInt64)
	}
	scenes, err := perform(ctx, cfg.Demo, log, screen,
		func(ctx context.Context, p *Play) error { return p.Perform(ctx, act) })
	if err != nil || len(scenes) == 0 {
		return err
	}
	screen.Print("")
	if err := ledger.TotalsOf(scenes[0].Rows).Report(cfg.Demo.Keepers, lossRatios).Write(screen.Out); err != nil {
		return err
	}
	screen.Print("\n" + kindsLine(scenes[0].Rows))
	return verdict(scenes[0].Rows)
}

// perform starts a stack, plays on it before the user's eyes, and stops it. It returns what was played, and nothing if
// the user ended it.
func perform(
	ctx context.Context, settings Settings, log zerolog.Logger, screen Screen, play func(context.Context, *Play) error,
) (scenes []Scene, err error) {
	s := New(settings, log)
	s.Resting, s.Console = true, true
	defer func() {
		if interrupted := ctx.Err() != nil; interrupted {
			scenes, err = nil, nil // which is no failure
		}
		screen.Print("stopping everything")
		err = errors.Join(err, s.Close())
	}()
	if err := s.Start(ctx, screen.Print); err != nil {
		return nil, err
	}
	for _, k := range s.Keepers {
		for _, p := range k.Processes {
			screen.Print(fmt.Sprintf("  %-9s %-10s http://%s/metrics", k.Role(), p.Name, p.HTTP))
		}
	}
	screen.Print("  console       " + s.Keepers[0].ConsoleLink + " (open it in a browser)")
	screen.Print("  data and logs " + s.Dir())
	screen.Print("  look inside   set -a; . " + s.Keepers[0].EnvFile() + "; set +a; " + filepath.Join(s.binaries,
		"keeperctl") + " signer list")
	w, err := newWatch(ctx, s)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	p := NewPlay(s)
	defer p.Close()
	over := make(chan error, 1)
	go func() {
		err := p.Begin(ctx)
		if err == nil {
			err = play(ctx, p)
		}
		over <- err
	}()
	if err := w.show(ctx, screen, p, over); err != nil {
		return nil, err
	}
	return p.Scenes(ctx)
}

// show shows the keepers until the play is over.
func (w *watch) show(ctx context.Context, screen Screen, p *Play, over <-chan error) error {
	tick := time.NewTicker(screen.Every())
	defer tick.Stop()
	for {
		select {
		case err := <-over:
			return err
		case <-tick.C:
			snapshot := w.Look(ctx)
			snapshot.Now = p.Now()
			screen.Show(snapshot)
		}
	}
}

// verdict reports whether the keepers did what they are for. What is under way at the end is nobody's failing.
func verdict(rows []ledger.Row) error {
	var done []ledger.Row
	orders, liquidations := 0, 0
	for _, r := range rows {
		switch {
		case r.Winner == nil:
			continue
		case r.Kind == job.Order && r.Result == execution.Executed:
			orders++
		case r.Kind == job.Liquidation:
			liquidations++
		}
		done = append(done, r)
	}
	if orders == 0 || liquidations == 0 {
		return fmt.Errorf("%d orders were executed and %d positions liquidated: at least one of each was expected "+
			"(the logs say why; keep them with --demo.dir)",
			orders, liquidations)
	}
	return Expectation{By: []int{1}}.Check(done)
}
