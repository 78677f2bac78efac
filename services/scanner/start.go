package scanner

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/kafka/bus"
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
	sh.Go("disputes", func(ctx context.Context) error {
		return node.KeepDisputes(ctx, kafka.KeepDispute(cfg.Keeper.ChainID))
	})

	s := New(cfg, node, kafka, sh.Log, newMetrics(sh.Registry))
	watch := func(name string, healthy func() error) {
		sh.Watch(name, func(context.Context) error { return healthy() })
	}
	watch("chain", node.Health)
	watch("venue", func() error { return s.collector.venue.Healthy() })
	watch("head", func() error { return s.status.fresh(cfg.Scanner.MaxHeadAge) })
	watch("kafka", kafka.Health)
	watch("log", s.status.following)
	watch("words", s.status.wordsAudited)
	watch("finality", func() error { return s.status.agreed(notFinalPatience) })
	sh.Ready("chain").Note(node.OneWord())
	if metrics := price.NewMetrics(sh.Registry); cfg.Scanner.Price.IsSet() {
		members, closeIdle := sources.Open(cfg.Scanner.Price, node, cfg.Venue.DataStore)
		sh.OnStop("price feed", func(context.Context) error { closeIdle(); return nil })
		p := newPrices(cfg, members, s.clock, s.static, kafka, sh.Log, metrics)
		watch("prices", p.feed.Health)
		sh.Go("prices", func(ctx context.Context) error {
			if err := kafka.Verify(ctx, bus.Specs(cfg.Keeper.Named(p.topic)...)); err != nil {
				return fmt.Errorf("checking the topics (keeperctl prepare creates missing ones): %w", err)
			}
			return p.run(ctx)
		})
	}
	sh.Handle("GET /status", s.page())
	sh.Go("scan", s.Run)
	return nil
}

// RegisterMetrics registers what the process registers, for the catalogue.
func RegisterMetrics(reg prometheus.Registerer) {
	bus.NewMetrics(reg)
	evm.NewMetrics(reg)
	price.NewMetrics(reg)
	newMetrics(reg)
}
