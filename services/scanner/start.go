package scanner

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/price/sources"
	"perpkeeper/pkg/service"
)

// Start acquires what the scanner needs and hands its members to the shell.
func Start(sh *service.Shell, cfg Config) error {
	kafka, err := bus.New(cfg.Kafka, sh.Log, bus.NewMetrics(sh.Registry))
	if err != nil {
		return fmt.Errorf("preparing the kafka client: %w", err)
	}
	sh.OnStop("kafka", func(context.Context) error { kafka.Close(); return nil })
	node, err := evm.Dial(sh.Context(), cfg.Keeper.ChainID, cfg.Chain, sh.Log, evm.NewMetrics(sh.Registry))
	if err != nil {
		return fmt.Errorf("connecting to the chain: %w", err)
	}
	sh.OnStop("chain", func(context.Context) error { node.Close(); return nil })

	s := New(cfg, node, kafka, sh.Log, NewMetrics(sh.Registry))
	checks := []check{
		{"chain", node.Health}, {"head", func() error { return s.status.fresh(cfg.Scanner.MaxHeadAge) }},
		{"kafka", kafka.Health}, {"log", s.status.following},
		{"words", s.status.wordsAudited}, {"finality", func() error { return s.status.agreed(notFinalPatience) }},
	}
	sh.Ready("chain").Note(node.OneWord())
	if metrics := price.NewMetrics(sh.Registry); cfg.Scanner.Price.IsSet() {
		members, closeIdle := sources.Open(cfg.Scanner.Price, node)
		sh.OnStop("price feed", func(context.Context) error { closeIdle(); return nil })
		p := newPrices(cfg, members, s.clock, kafka, sh.Log, metrics)
		checks = append(checks, check{"prices", p.feed.Health})
		sh.Go("prices", func(ctx context.Context) error {
			if err := kafka.Verify(ctx, bus.Specs(cfg.Keeper.Named(p.topic)...)); err != nil {
				return fmt.Errorf("checking the topics (keeperctl prepare creates missing ones): %w", err)
			}
			return p.run(ctx)
		})
	}
	sh.Handle("GET /status", s.Page())
	sh.Go("scan", s.Run)
	sh.Go("readiness", func(ctx context.Context) error { return watch(ctx, sh, checks) })
	return nil
}

// RegisterMetrics registers what the process registers, for the catalogue.
func RegisterMetrics(reg prometheus.Registerer) {
	bus.NewMetrics(reg)
	evm.NewMetrics(reg)
	price.NewMetrics(reg)
	NewMetrics(reg)
}

// check is something that must hold for the process to be ready.
type check struct {
	name string
	ask  func() error
}

// watch keeps the conditions of the process up to date until ctx ends.
func watch(ctx context.Context, sh *service.Shell, checks []check) error {
	conditions := make([]*service.Condition, len(checks))
	for i, c := range checks {
		conditions[i] = sh.Ready(c.name)
	}
	const often = 250 * time.Millisecond
	tick := time.NewTicker(often)
	defer tick.Stop()
	for {
		for i, c := range checks {
			if err := c.ask(); err != nil {
				conditions[i].Fail(err.Error())
			} else {
				conditions[i].OK()
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
