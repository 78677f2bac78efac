package sender

import (
	"context"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/tier"
	"perpkeeper/services/sender/shadow"
)

// newShadow makes this process one that tries jobs out and sends nothing; see package shadow.
func (s *Sender) newShadow(store shadow.Store) *shadow.Sender {
	s.preflight = s.newPreflight()
	return shadow.New(shadow.Config{MaxAge: s.cfg.Sender.MaxJobAge, Batch: s.cfg.Sender.Batch}, shadow.Parts{
		Gate: s.gate().Stage(func() string { return "" }, func() bool { return true }),
		Check: func(signer chain.Address, look func()) shadow.Check {
			return s.preflight.Checker(signer, look)
		},
		Head: s.headTracker, GasPrice: s.node.GasPrice, Store: store, Clock: s.clock, Log: s.log,
	})
}

// asShadow is the configuration of a shadow: it has no key, and shares with nobody, so that every job is tried as soon
// as a Master would send it.
func (c Config) asShadow() Config {
	if c.Sender.Mode == Shadow {
		c.Tier = tier.DefaultConfig()
	}
	return c
}

// runShadow waits for a database and topics it can work with, and then tries jobs out until ctx ends.
func (s *Sender) runShadow(ctx context.Context) error {
	if err := s.awaitParts(ctx); err != nil {
		return err
	}
	s.log.Info().Msg("a shadow: jobs are simulated, and nothing is ever sent")
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.shadow.Run(ctx) })
	s.follow(ctx, group)
	return group.Wait()
}
