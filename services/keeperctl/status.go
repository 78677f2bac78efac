package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"perpkeeper/pkg/tier"
)

// finding is one line of the status: what was looked at, what was seen, and whether somebody has to do something about
// it.
type finding struct {
	wrong bool
	what  string
	seen  string
}

// looks collects findings of several who look at the same time.
type looks struct {
	mutex sync.Mutex
	found []finding
}

func (l *looks) addf(wrong bool, what, format string, args ...any) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.found = append(l.found, finding{wrong, what, fmt.Sprintf(format, args...)})
}

const (
	lookPatience = 4 * time.Second // for one source; the others are shown all the same
	watchEvery   = 2 * time.Second
)

// statusCommand shows a keeper on one screen: what is wrong first.
func statusCommand(cmd *cobra.Command) runner {
	watch := cmd.Flags().Bool("watch", false, "look again every 2 s, until it is interrupted")
	return func(ctx context.Context, s *session, _ []string) error {
		if !*watch {
			return s.show(s.look(ctx))
		}
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			found := s.look(ctx)
			if s.terminal != nil {
				_, _ = fmt.Fprint(s.terminal, "\x1b[H\x1b[2J") // home, and nothing below
			}
			if err := s.show(found); err != nil && !errors.As(err, new(wrongError)) {
				return err
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil // somebody has seen enough
			}
		}
	}
}

// wrongError says that there are findings.
type wrongError struct{ error }

// show prints findings, those somebody has to do something about first.
func (s *session) show(found []finding) error {
	rows, wrong := newTable("ok", "what", "seen"), 0
	slices.SortStableFunc(found, func(a, b finding) int {
		switch {
		case a.wrong == b.wrong:
			return 0
		case a.wrong:
			return -1
		}
		return 1
	})
	for _, f := range found {
		mark := any("ok")
		if f.wrong {
			wrong, mark = wrong+1, "!!"
		}
		if s.out.json {
			mark = !f.wrong
		}
		rows.add(mark, f.what, f.seen)
	}
	if err := s.out.note(fmt.Sprintf("keeper of chain %d, %s, at %s", s.Keeper.ChainID, s.place(),
		moment(time.Now()))); err != nil {
		return err
	}
	if err := s.out.table(rows); err != nil || wrong == 0 {
		return err
	}
	return wrongError{fmt.Errorf("things that somebody has to look at: %d", wrong)}
}

// look asks every source at the same time. One that cannot be reached is a finding.
func (s *session) look(ctx context.Context) []finding {
	var wait sync.WaitGroup
	sources := []struct {
		what string
		ask  func(context.Context, *looks) error
	}{{"chain", s.lookAtChain}, {"database", s.lookAtDatabase}, {"prices", s.lookAtPrices}}
	all := make([]looks, len(sources)+len(s.Own.Processes))
	ask := func(i int, what string, ask func(context.Context, *looks) error) {
		wait.Go(func() {
			ctx, cancel := context.WithTimeoutCause(ctx, lookPatience, fmt.Errorf("no answer within %s", lookPatience))
			defer cancel()
			if err := ask(ctx, &all[i]); err != nil {
				all[i].addf(true, what, "not reached: %v", err)
			}
		})
	}
	for i, source := range sources {
		ask(i, source.what, source.ask)
	}
	for i, process := range s.Own.Processes {
		name, address := process.parts()
		ask(len(sources)+i, name,
			func(ctx context.Context, l *looks) error { return lookAtProcess(ctx, name, address, l) })
	}
	wait.Wait()
	var found []finding
	for i := range all {
		found = append(found, all[i].found...)
	}
	if len(s.Own.Processes) == 0 {
		found = append(found, finding{what: "processes", seen: "not asked: keeperctl.processes names none " +
			"(readiness, jobs due, and who is suspected are theirs to say)"})
	}
	return found
}

// place is this keeper's among those of its exchange, and when it acts.
func (s *session) place() string {
	switch t := s.Tier; {
	case !t.Enabled:
		return "alone: every job is its turn"
	case t.Monitor:
		return "a monitor: it sends nothing"
	case t.Policy == tier.PolicyWindows:
		first := time.Duration(t.Priority-1) * t.Window
		return fmt.Sprintf("tier %d of %d: its turn is when a job is %s to %s old", t.Priority, t.Tiers, first,
			first+t.Window)
	default:
		return fmt.Sprintf("tier %d of %d: its turn is when a job is %s old", t.Priority, t.Tiers, t.ExecutionDelay)
	}
}
