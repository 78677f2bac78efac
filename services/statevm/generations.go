package statevm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
)

// longestPause is between two tries at what has been refused.
const longestPause = time.Minute

// assignment is this process's work on one generation.
type assignment struct {
	stop  context.CancelFunc
	ended chan struct{}
}

// end stops the work and waits for its end.
func (a *assignment) end() {
	a.stop()
	<-a.ended
}

// supervise keeps the active generation up to date and every other one that is marked: one that is being filled, and
// the one to go back to. It looks once every poll interval what they are; a switch of the active one changes nothing
// here but whose state readiness speaks of. It also looks at once when the list of generations has changed.
func (s *Statevm) supervise(ctx context.Context) error {
	running := map[int]*assignment{}
	listener := s.db.GenerationListener()
	defer listener.Close()
	defer func() {
		for _, a := range running {
			a.end()
		}
	}()
	for {
		wanted, err := s.wanted(ctx)
		if errors.Is(err, pg.ErrSchema) {
			return err
		}
		if err == nil {
			s.adjust(ctx, running, wanted)
		}
		if listener.WaitChange(ctx) != nil {
			return nil
		}
	}
}

// keepUp works on a generation until ctx ends. Whatever else ends the work is said and tried again: what a broker
// refuses now it may be allowed later, and readers may be switched to a generation that was refused once.
func (s *Statevm) keepUp(ctx context.Context, generation int) {
	ready := s.partitions.of(generation, "group")
	defer ready("")
	tries := retry.New(retry.Policy{Initial: time.Second, Max: longestPause,
		OnRetry: func(_ int, err error, pause time.Duration) {
			ready(err.Error())
			s.log.Error().Err(err).Int("generation", generation).Dur("pause", pause).
				Msg("the generation is not kept up to date; trying again")
		}})
	for tries.Next(ctx) {
		began := time.Now()
		err := s.join(ctx, generation, ready)
		if time.Since(began) > longestPause {
			tries.Reset()
		}
		tries.Failed(err)
	}
}

// wanted lists the generations to keep up to date, and tells readiness which one readers use.
func (s *Statevm) wanted(ctx context.Context) (wanted map[int]bool, err error) {
	all, err := s.db.Generations(ctx)
	if err != nil {
		s.schema(err.Error())
		return nil, err
	}
	s.schema("")
	wanted, served := map[int]bool{}, false
	for _, g := range all {
		if g.Active {
			served = true
			s.partitions.serve(g.Number, s.misfit(g))
		}
		if g.KeptUpToDate(s.cfg.Keeper.LogPartitions) {
			wanted[g.Number] = true
		}
	}
	if !served {
		return nil, fmt.Errorf("the database has no active generation: %w (run `keeperctl prepare`)", pg.ErrSchema)
	}
	return wanted, nil
}

// misfit reports why this process cannot serve a generation. It may still fill another one.
func (s *Statevm) misfit(g pg.Generation) string {
	const remedy = "(fill a new one with `keeperctl rebuild` and switch to it)"
	switch {
	case !g.Fits():
		return fmt.Sprintf("generation %d, which readers use, has state layout %d, not this build's %s", g.Number,
			g.Layout, remedy)
	case !g.Reads(s.cfg.Keeper.LogPartitions):
		return fmt.Sprintf("generation %d, which readers use, is of a log topic of %d partitions, and "+
			"keeper.log_partitions is %d %s", g.Number, g.Partitions, s.cfg.Keeper.LogPartitions, remedy)
	}
	return ""
}

// adjust starts work on what is wanted and ends it on what is no longer.
func (s *Statevm) adjust(ctx context.Context, running map[int]*assignment, wanted map[int]bool) {
	for generation, a := range running {
		if !wanted[generation] {
			a.end()
			delete(running, generation)
			s.log.Info().Int("generation", generation).Msg("letting go")
		}
	}
	for generation := range wanted {
		if running[generation] != nil {
			continue
		}
		own, cancel := context.WithCancel(ctx)
		a := &assignment{stop: cancel, ended: make(chan struct{})}
		running[generation] = a
		go func() {
			defer close(a.ended)
			s.keepUp(own, generation)
		}()
		s.log.Info().Int("generation", generation).Msg("keeping up to date")
	}
}
