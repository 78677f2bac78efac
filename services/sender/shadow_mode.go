package sender

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/wire"
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
		Head: s.horizon, GasPrice: s.node.GasPrice, Store: store, Clock: s.clock, Log: s.log,
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
	const parts = "parts"
	s.notices.set(parts, "starting")
	if err := s.awaitParts(ctx, func(reason string) { s.notices.set(parts, reason) }); err != nil {
		return err
	}
	s.notices.set(parts, "")
	s.log.Info().Msg("a shadow: jobs are simulated, and nothing is ever sent")
	id := s.cfg.Keeper.ChainID
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.horizon.Follow(ctx, s.node.Heads(ctx)) })
	group.Go(func() error { return s.shadow.Run(ctx) })
	group.Go(func() error { return s.quotes.Follow(ctx, s.client, wire.PriceTopic(id), s.unreadable.price) })
	group.Go(func() error {
		return s.client.Join(ctx, bus.GroupConfig{ID: fmt.Sprintf("perp.%d.sender", id), Topic: wire.JobTopic(id)},
			s.consume)
	})
	return group.Wait()
}
