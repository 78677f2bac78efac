package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/pg"
)

// Run shows keepers at work until ctx ends or the duration is over. With a duration it fails unless at least one order was executed and one
// position liquidated by then.
func Run(ctx context.Context, cfg Config, log zerolog.Logger, screen Screen) (err error) {
	s := New(cfg.Demo, log)
	defer func() {
		screen.Say("stopping everything")
		err = errors.Join(err, s.Close())
	}()
	if err := s.Start(ctx, screen.Say); err != nil {
		if interrupted := ctx.Err() != nil; interrupted {
			return nil // the user ended it, which is no failure
		}
		return err
	}
	for _, k := range s.Keepers {
		for _, p := range k.Processes {
			screen.Say(fmt.Sprintf("  %-9s %-10s http://%s/metrics", k.Role(), p.Name, p.HTTP))
		}
	}
	screen.Say("  data and logs " + s.Dir())
	w, err := NewWatch(ctx, s)
	defer w.Close()
	if err != nil {
		return err
	}
	return w.show(ctx, cfg.Demo.Duration, screen)
}

// show shows the keepers until the time is over, and then asks for the verdict.
func (w *Watch) show(ctx context.Context, duration time.Duration, screen Screen) error {
	var over <-chan time.Time
	if duration > 0 {
		timer := time.NewTimer(duration)
		defer timer.Stop()
		over = timer.C
	}
	tick := time.NewTicker(screen.Every())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-w.stack.failed:
			return err
		case <-tick.C:
			screen.Show(w.Look(ctx))
		case <-over:
			last := w.Look(ctx)
			screen.Show(last)
			return verdict(last.State())
		}
	}
}

// verdict says whether the keepers did what they are for.
func verdict(o pg.Overview) error {
	if o.Orders["Executed"] == 0 || o.Liquidations["Executed"] == 0 {
		return fmt.Errorf("the keepers executed %d orders and liquidated %d positions: at least one of each was expected "+
			"(the logs say why; keep them with --demo.dir)",
			o.Orders["Executed"], o.Liquidations["Executed"])
	}
	return nil
}
