// Package liquidation finds the positions that have to be liquidated (LIQ).
//
// The [Index] finds them tick by tick, looking only at those a tick can have brought near. The [Sweep] judges every
// position by the venue's integers: it is complete by construction, and so it stays as the proof of the index. [Modes]
// says how often it is due. Nothing here decides when or by whom a liquidation is sent.
package liquidation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Candidate is a position with its verdict.
type Candidate struct {
	Position perp.Position
	Verdict  perp.Verdict
}

// Swept is what a sweep found.
type Swept struct {
	// Liquidatable are the positions to be liquidated, lowest margin ratio first (LIQ-6).
	Liquidatable []Candidate
	// Armed and Watch count the positions below 110 % and 200 % of what is required, those of the tiers below included
	// (LIQ-5).
	Armed, Watch int
	// Risky are the keys of the positions below 200 %: the next sweep begins with them (LIQ-3).
	Risky []chain.Hash
}

// The tiers of risk by margin ratio (LIQ-5), as 30-decimal factors.
var (
	watchRatio = chain.U64(2).Mul(perp.One)
	ArmedRatio = chain.U64(11).Mul(chain.Pow10(29))
)

// Sweep judges every active position by the same view (LIQ-4), in the order given. Positions that could not be judged
// are left out and named in the error, by their market where it is the market that cannot be judged, and a hundred of
// them at most; the others' verdicts stand beside it, so that one bad market never blocks the rest.
func Sweep(ctx context.Context, positions []perp.Position, view *perp.View, workers int) (all Swept, err error) {
	parts := make([]Swept, workers)
	failed := make([]error, workers)
	group, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		group.Go(func() error {
			failed[w] = parts[w].judgeEvery(ctx, positions, w, workers, view)
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return Swept{}, err
	}
	for _, part := range parts {
		all.Add(part)
	}
	slices.SortFunc(all.Liquidatable, moreUrgent)
	return all, errors.Join(failed...)
}

// judgeEvery judges the positions first, first+step, ….
func (s *Swept) judgeEvery(ctx context.Context, positions []perp.Position, first, step int, view *perp.View) error {
	var failures failures
	for i := first; i < len(positions) && ctx.Err() == nil; i += step {
		if p := &positions[i]; p.Status == perp.Active {
			verdict, err := view.Judge(*p)
			if err != nil {
				failures.add(p.Market, view, err)
				continue
			}
			s.note(p, verdict)
		}
	}
	return failures.join()
}

// failures are what kept positions from being judged. There may be millions, when prices are missing.
type failures struct {
	markets map[chain.Address]bool // that could not be judged at all
	named   []error
	more    bool
}

// mostNamed is how many failures are named.
const mostNamed = 100

func (f *failures) add(market chain.Address, view *perp.View, err error) {
	if f.markets[market] {
		return
	}
	if _, whole := view.Terms(market); whole != nil {
		if f.markets == nil {
			f.markets = map[chain.Address]bool{}
		}
		f.markets[market] = true
		err = fmt.Errorf("judging the positions of market %s: %w", market, whole)
	}
	if len(f.named) == mostNamed {
		f.more = true
		return
	}
	f.named = append(f.named, err)
}

func (f *failures) join() error {
	if f.more {
		f.named = append(f.named, errors.New("further positions could not be judged"))
	}
	return errors.Join(f.named...)
}

func (s *Swept) note(p *perp.Position, v perp.Verdict) {
	if v.Liquidatable {
		s.Liquidatable = append(s.Liquidatable, Candidate{*p, v})
	}
	if v.Ratio.Less(ArmedRatio) {
		s.Armed++
	}
	if v.Ratio.Less(watchRatio) {
		s.Watch++
		s.Risky = append(s.Risky, p.PositionKey)
	}
}

// moreUrgent orders by margin ratio, then by what is missing, then by key, so that the order is the same everywhere.
func moreUrgent(a, b Candidate) int {
	return moreUrgentOf(&a.Verdict, &b.Verdict, a.Position.PositionKey, b.Position.PositionKey)
}

func moreUrgentOf(a, b *perp.Verdict, first, second chain.Hash) int {
	if c := a.Ratio.Cmp(b.Ratio); c != 0 {
		return c
	}
	if c := a.RemainingCollateralUsd.Cmp(b.RemainingCollateralUsd); c != 0 {
		return c
	}
	return slices.Compare(first[:], second[:])
}
