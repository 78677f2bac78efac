package sender

import (
	"context"
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/pg"
)

// settle is the freshness gate (TIER-8): nothing is sent by a keeper that does not see what happens. It is asked before every send, so that a keeper that
// has just started, or has fallen behind, holds back exactly as long as it must.
//
// All ages are on the chain's clock, but for that of the head itself. Reasons name limits and not measures, so that a lasting one stays the same text.
type settle struct {
	horizon *horizon
	quotes  *quotes
	state   interface {
		// Standing tells up to which block Postgres has come.
		Standing(ctx context.Context) (pg.Standing, error)
	}
	// held is why the nodes would take nothing more of the signer, or empty.
	held                                 func() string
	headMaxAge, stateMaxLag, priceMaxAge time.Duration
}

func (s settle) run(ctx context.Context, t *task) (verdict, error) {
	if reason := s.held(); reason != "" {
		return shut(reason), nil
	}
	if v := s.head(); v.kind != onward {
		return v, nil
	}
	if v, err := s.watermark(ctx); err != nil || v.kind != onward {
		return v, err
	}
	return s.prices(t), nil
}

// healthy returns why the gate is closed for everybody, for readiness.
func (s settle) healthy(ctx context.Context) error {
	v, err := s.run(ctx, &task{})
	if err == nil && v.kind == closed {
		err = errors.New(v.reason)
	}
	return err
}

func (s settle) head() verdict {
	if _, age := s.horizon.newest(); age > s.headMaxAge {
		return shut(fmt.Sprintf("no new block for more than %s", s.headMaxAge))
	}
	return verdict{}
}

func (s settle) watermark(ctx context.Context) (verdict, error) {
	standing, err := s.state.Standing(ctx)
	if err != nil {
		return verdict{}, fmt.Errorf("asking how far the state is: %w", err)
	}
	at := standing.Watermark
	if standing.Halted != "" {
		return shut("the state is halted: " + standing.Halted), nil
	}
	if at.Hash.IsZero() {
		return shut("the state has no block yet"), nil
	}
	if s.horizon.age(at.TimeMs) > s.stateMaxLag {
		return shut(fmt.Sprintf("the state is more than %s behind the chain, at block %d", s.stateMaxLag, at.Number)), nil
	}
	return verdict{}, nil
}

func (s settle) prices(t *task) verdict {
	if !s.quotes.complete.Load() {
		return shut("price reports are still being read")
	}
	for _, token := range t.job().Tokens {
		newest, known := s.quotes.Latest(token)
		if !known {
			return wait("no price report of " + token.Hex())
		}
		if s.horizon.age(newest.TimeMs) > s.priceMaxAge {
			return wait(fmt.Sprintf("the newest price report of %s is more than %s old", token, s.priceMaxAge))
		}
	}
	return verdict{}
}
