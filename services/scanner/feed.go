package scanner

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/price"
)

// prices copies price reports to the price topic (PIPE-9). It goes its own road: neither the chain nor the log topic
// can hold it up, nor it them.
type prices struct {
	feed        *price.Feed
	topic       string
	newProducer func(topic string) producer
	static      *staticPrices // nil in tests of the feed alone

	mu       sync.Mutex // guards producer: fixed prices are published beside the feed's
	producer producer
}

// newPrices judges reports by the chain's clock.
func newPrices(cfg Config, sources []price.Member, clock *chainClock, static *staticPrices, kafka *bus.Client,
	log zerolog.Logger, metrics *price.Metrics) *prices {
	feed := price.NewFeed(sources, cfg.Scanner.Price.Gates, cfg.Scanner.Price.Failover, log, metrics)
	feed.SetClock(clock.now)
	return &prices{
		feed: feed, topic: wire.PriceTopic(cfg.Keeper.ChainID),
		newProducer: func(topic string) producer { return kafka.Producer(topic) }, static: static,
	}
}

// run publishes reports until ctx ends.
func (p *prices) run(ctx context.Context) error {
	p.producer = p.newProducer(p.topic)
	if p.static == nil {
		return p.feed.Run(ctx, p.publish)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.feed.Run(ctx, p.fromFeeds) })
	group.Go(func() error { return p.static.run(ctx, p.publish) })
	return group.Wait()
}

// fromFeeds publishes reports but for those of tokens whose price is fixed: the exchange refuses them.
func (p *prices) fromFeeds(ctx context.Context, reports []price.Report) error {
	reports = slices.DeleteFunc(slices.Clone(reports), func(r price.Report) bool { return p.static.fixed(r.Token) })
	if len(reports) == 0 {
		return nil
	}
	return p.publish(ctx, reports)
}

// publish writes reports to the topic's only partition. After a lost reply they are written again by the feed: readers
// know a report by its token and time. The epoch is that of no scanner, because scanners that stand by publish prices
// too.
func (p *prices) publish(ctx context.Context, reports []price.Report) error {
	records := make([]wire.Record, len(reports))
	for i, r := range reports {
		var err error
		if records[i], err = wire.Encode(r.Token[:], r.Message(), 0, filterVersion); err != nil {
			return err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	const onlyPartition = 0
	_, err := p.producer.Produce(ctx, onlyPartition, records)
	if bus.OutcomeUnknown(err) {
		p.producer = p.newProducer(p.topic)
	}
	if err != nil {
		return fmt.Errorf("publishing price reports: %w", err)
	}
	return nil
}
