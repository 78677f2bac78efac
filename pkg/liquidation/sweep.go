// Package liquidation finds the positions that have to be liquidated (LIQ).
//
// It holds the exact sweep: every position judged by the venue's integers against one set of mark prices. The sweep is complete by
// construction, and so it stays as the proof of every faster way of finding positions. It decides nothing about when or by whom a
// liquidation is sent.
package liquidation

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/perp"
)

// Candidate is a position with its verdict.
type Candidate struct {
	Position perp.Position
	Verdict  perp.Verdict
}

// Sweep judges every active position and returns the liquidatable ones, lowest margin ratio first (LIQ-6). All are judged against the same
// circumstances (LIQ-4). Positions that could not be judged are left out and named in the error; the others' verdicts stand beside it, so
// that one bad market never blocks the rest.
func Sweep(ctx context.Context, positions []perp.Position, c perp.Circumstances, workers int) ([]Candidate, error) {
	parts := make([][]Candidate, workers)
	failures := make([]error, workers)
	view := perp.NewView(c)
	group, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		group.Go(func() error {
			parts[w], failures[w] = judgeEvery(ctx, positions, w, workers, view)
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found := slices.Concat(parts...)
	slices.SortFunc(found, moreUrgent)
	return found, errors.Join(failures...)
}

// judgeEvery judges the positions first, first+step, ….
func judgeEvery(ctx context.Context, positions []perp.Position, first, step int, view *perp.View) (found []Candidate, _ error) {
	var failures []error
	for i := first; i < len(positions) && ctx.Err() == nil; i += step {
		p := positions[i]
		if p.Status != perp.Active {
			continue
		}
		verdict, liquidatable, err := view.Liquidatable(p)
		switch {
		case err != nil:
			failures = append(failures, err)
		case liquidatable:
			found = append(found, Candidate{p, verdict})
		}
	}
	return found, errors.Join(failures...)
}

// moreUrgent orders by margin ratio, then by what is missing, then by key, so that the order is the same everywhere.
func moreUrgent(a, b Candidate) int {
	if c := a.Verdict.Ratio.Cmp(b.Verdict.Ratio); c != 0 {
		return c
	}
	if c := a.Verdict.RemainingCollateralUsd.Cmp(b.Verdict.RemainingCollateralUsd); c != 0 {
		return c
	}
	return slices.Compare(a.Position.PositionKey[:], b.Position.PositionKey[:])
}
