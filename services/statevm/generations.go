package statevm

import (
	"context"
	"errors"
	"fmt"

	"perpkeeper/pkg/pg"
)

// tenure is this process's work on one generation.
type tenure struct {
	stop  context.CancelFunc
	ended chan error
}

// end stops the work and waits for its end.
func (t *tenure) end() {
	t.stop()
	<-t.ended //nolint:errcheck // what was stopped ends with the stop's own error
}

// supervise keeps the active generation up to date and every other one that is marked: one that is being filled, and
// the one to go back to. It looks once every poll interval what they are; a switch of the active one changes nothing
// here but whose state readiness speaks of. It also looks at once when the list of generations has changed.
func (s *Statevm) supervise(ctx context.Context) error {
	running := map[int]*tenure{}
	failed := map[int]bool{} // not to be tried again
	listener := s.db.GenerationListener()
	defer listener.Close()
	defer func() {
		for _, t := range running {
			t.end()
		}
	}()
	for {
		wanted, active, err := s.wanted(ctx)
		if errors.Is(err, pg.ErrSchema) {
			return err
		}
		if err == nil {
			s.adjust(ctx, running, wanted, failed)
		}
		for generation, t := range running {
			select {
			case err := <-t.ended:
				delete(running, generation)
				failed[generation] = err != nil
				if err != nil && generation == active {
					return err
				}
				if err != nil {
					s.log.Error().Err(err).Int("generation", generation).Msg("the generation is not kept up to date")
				}
			default:
			}
		}
		if listener.WaitChange(ctx) != nil {
			return nil
		}
	}
}

// wanted lists the generations to keep up to date, and returns which one readers use.
func (s *Statevm) wanted(ctx context.Context) (wanted map[int]bool, active int, err error) {
	all, err := s.db.Generations(ctx)
	if err != nil {
		s.schema(err.Error())
		return nil, 0, err
	}
	s.schema("")
	wanted = map[int]bool{}
	for _, g := range all {
		if g.Active {
			active = g.Number
			s.partitions.serve(active, s.misfit(g))
		}
		if g.KeptUpToDate(s.cfg.Keeper.LogPartitions) {
			wanted[g.Number] = true
		}
	}
	if active == 0 {
		return nil, 0, fmt.Errorf("the database has no active generation: %w (run `keeperctl prepare`)", pg.ErrSchema)
	}
	return wanted, active, nil
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
func (s *Statevm) adjust(ctx context.Context, running map[int]*tenure, wanted, failed map[int]bool) {
	for generation, t := range running {
		if !wanted[generation] {
			t.end()
			delete(running, generation)
			s.log.Info().Int("generation", generation).Msg("letting go")
		}
	}
	for generation := range wanted {
		if running[generation] != nil || failed[generation] {
			continue
		}
		own, cancel := context.WithCancel(ctx)
		t := &tenure{stop: cancel, ended: make(chan error, 1)}
		running[generation] = t
		go func() { t.ended <- s.join(own, generation) }()
		s.log.Info().Int("generation", generation).Msg("keeping up to date")
	}
	for generation := range failed {
		if !wanted[generation] {
			delete(failed, generation)
		}
	}
}
