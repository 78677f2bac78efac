package simulator

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"

	"golang.org/x/sync/errgroup"
)

// Run plays a scenario once for each of its seeds, as many at a time as there are processors. Transcribe keeps the
// transcripts.
func Run(ctx context.Context, s Scenario, transcribe bool) (Result, error) {
	if err := s.Validate(); err != nil {
		return Result{}, err
	}
	r := Result{Scenario: s, Plays: make([]Play, s.Seeds)}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range r.Plays {
		group.Go(func() (err error) {
			r.Plays[i], err = playSafely(ctx, s, uint64(i+1), transcribe)
			return err
		})
	}
	return r, group.Wait()
}

// playSafely names scenario and seed where a play breaks off: they are all that is needed to see it again.
func playSafely(ctx context.Context, s Scenario, seed uint64, transcribe bool) (p Play, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("%v\n%s", value, debug.Stack())
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			err = fmt.Errorf("playing %s with seed %d: %w", s.Name, seed, err)
		}
	}()
	return newSimulation(s, seed, transcribe).play(ctx)
}
