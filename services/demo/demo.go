package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/secret"
)

// Run shows a keeper at work until ctx ends or the duration is over. With a duration it fails unless at least one order was executed and one
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
	for _, p := range s.Processes {
		screen.Say(fmt.Sprintf("  %-10s http://%s/metrics", p.Name, p.HTTP))
	}
	screen.Say("  logs       " + s.Dir() + "/logs")
	db, err := pg.Open(ctx, databaseOf(s.Postgres), "demo")
	if err != nil {
		return err
	}
	defer db.Close()
	return s.watch(ctx, db, cfg.Demo.Duration, screen)
}

func (s *Stack) watch(ctx context.Context, db *pg.DB, duration time.Duration, screen Screen) error {
	began := time.Now()
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
		case err := <-s.failed:
			return err
		case <-tick.C:
			screen.Show(s.Look(ctx, db, began))
		case <-over:
			last := s.Look(ctx, db, began)
			screen.Show(last)
			return verdict(last.Overview)
		}
	}
}

// verdict says whether the keeper did what it is for.
func verdict(o pg.Overview) error {
	if o.Orders["Executed"] == 0 || o.Liquidations["Executed"] == 0 {
		return fmt.Errorf("the keeper executed %d orders and liquidated %d positions: at least one of each was expected "+
			"(the logs say why; keep them with --demo.dir)",
			o.Orders["Executed"], o.Liquidations["Executed"])
	}
	return nil
}

func databaseOf(url string) pg.Config {
	cfg := pg.DefaultConfig()
	cfg.URL = secret.MustURL(url)
	cfg.MaxConns = 2
	return cfg
}

// Screen is where the demo shows itself: a page that is drawn anew on a terminal, lines elsewhere.
type Screen struct {
	Out      io.Writer
	Terminal bool
}

// Every is how often a sight is shown.
func (s Screen) Every() time.Duration {
	if s.Terminal {
		return time.Second
	}
	return 5 * time.Second
}

// Say prints a line.
func (s Screen) Say(line string) { _, _ = fmt.Fprintln(s.Out, line) }

// Show prints a sight.
func (s Screen) Show(v Sight) {
	if !s.Terminal {
		s.Say(v.Line())
		return
	}
	const toTop, clearLine, clearRest = "\x1b[H", "\x1b[K\n", "\x1b[J"
	_, _ = fmt.Fprint(s.Out, toTop+strings.ReplaceAll(v.Screen(), "\n", clearLine)+clearRest)
}
