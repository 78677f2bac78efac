package scanner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/retry"
)

// Scanner copies the chain to the log topic. Run it once.
type Scanner struct {
	cfg         Config
	topic       string
	chain       *evm.Client
	kafka       *bus.Client
	collector   *collector
	newProducer func(topic string) producer
	status      *status
	clock       *chainClock
	static      *staticPrices
	log         zerolog.Logger
	metrics     *Metrics
	stuckAt     uint64 // a block of which this configuration cannot publish a record; 0 = none
	epoch       uint64 // the highest that this process has tried to claim, or found claimed
	// decidingSpan is in milliseconds; a test may shorten it
	decidingSpan uint64
}

// New wires a scanner. It asks nothing yet.
func New(cfg Config, node *evm.Client, kafka *bus.Client, log zerolog.Logger, metrics *Metrics) *Scanner {
	at, venue, clock := newStatus(metrics), followVenue(cfg.Venue, node, log), newChainClock()
	store := dataStore{cfg.Venue.DataStore, node, at.newest}
	return &Scanner{
		cfg: cfg, topic: wire.LogTopic(cfg.Keeper.ChainID), chain: node, kafka: kafka, log: log, metrics: metrics,
		status: at, decidingSpan: decidingSpan,
		clock:       clock,
		static:      newStaticPrices(venue, store, node.Head, clock.now, log),
		newProducer: func(topic string) producer { return kafka.Producer(topic) },
		collector: &collector{
			chain: node,
			venue: venue, handlers: &handlers{node: node}, own: cfg.Scanner,
			store: store, log: log, metrics: metrics,
			readers: make(chan struct{}, cfg.Scanner.Backfill.Workers),
			router:  gmx.NewRouter(remembered),
			decoder: cfg.Venue.Decoder(), named: map[string]bool{},
		},
	}
}

// Run publishes the chain until ctx ends. Nodes and brokers that are away are waited for. It fails where waiting does
// not help: a topic that is missing at the start or has another number of partitions, another chain, a topic it cannot
// make sense of. A topic that is lost later is waited for, and claimed anew, and so is one that this user may not use
// for now.
func (s *Scanner) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	heads := s.watchHeads(ctx)
	go func() { _ = s.collector.venue.Run(ctx) }()
	tries := retry.New(retry.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second})
	for tries.Next(ctx) {
		err := s.verify(ctx)
		if err == nil {
			break
		}
		if !bus.Denied(err) {
			return fmt.Errorf("checking the topics (keeperctl prepare creates missing ones): %w", err)
		}
		s.denied(err)
		tries.Failed(err)
	}
	tries.Reset()
	for tries.Next(ctx) {
		err := s.lead(ctx, heads)
		lasting := err
		switch rival, isReplaced := replaced(err); {
		case isReplaced:
			s.epoch = max(s.epoch, rival.epoch)
			if lasting = s.standBy(ctx, heads, rival); lasting == nil {
				tries.Reset()
			}
		case bus.LostLog(err):
			lasting = s.awaitTopic(ctx, err)
		case unclear(err):
			s.log.Warn().Err(err).Msg("claiming the topic anew, which settles what was written")
			lasting = nil
		}
		switch {
		case lasting == nil || ctx.Err() != nil:
		case bus.Denied(lasting):
			s.denied(lasting)
		default:
			return lasting
		}
		tries.Failed(err)
	}
	return context.Cause(ctx)
}

func (s *Scanner) verify(ctx context.Context) error {
	return s.kafka.Verify(ctx, bus.Specs(s.cfg.Keeper.Named(s.topic)...))
}

// denied says in readiness what the brokers refuse this user. It is waited for.
func (s *Scanner) denied(err error) {
	err = fmt.Errorf("the brokers refuse this user what it needs (kafka-acls.sh gives it the right): %w", err)
	s.status.fail(err)
	s.log.Error().Err(err).Msg("nothing is published until it is given")
}

// awaitTopic waits for a log topic that was lost beneath a writer to be there again.
func (s *Scanner) awaitTopic(ctx context.Context, lost error) error {
	s.log.Error().Err(lost).
		Msg("the log topic is not the one that was claimed; its epoch ends, and it is claimed anew")
	policy := retry.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second,
		OnRetry: func(_ int, err error, _ time.Duration) {
			s.status.fail(fmt.Errorf("the log topic is gone (keeperctl prepare creates it): %w", err))
		}}
	return retry.Do(ctx, policy, func(ctx context.Context) error {
		err := s.verify(ctx)
		if err != nil && !bus.NoTopic(err) {
			return retry.Stop(fmt.Errorf("checking the topics: %w", err))
		}
		return err
	})
}

// watchHeads delivers the newest head. Each is noted when it comes, also while nothing can be published: brokers that
// are away do not make the chain look silent.
func (s *Scanner) watchHeads(ctx context.Context) <-chan chain.BlockRef {
	heads, newest := s.chain.Heads(ctx), make(chan chain.BlockRef, 1)
	go func() {
		defer close(newest)
		for head := range heads {
			s.status.saw(head)
			s.clock.head(head.TimeMs, time.Now())
			select {
			case <-newest: // nobody has taken the one before
			default:
			}
			newest <- head
		}
	}()
	return newest
}

// lead is one epoch, from the claim to its end.
func (s *Scanner) lead(ctx context.Context, heads <-chan chain.BlockRef) error {
	if err := s.awaitChain(ctx); err != nil {
		return err
	}
	w, err := s.claim(ctx)
	if err != nil {
		return err
	}
	return w.run(ctx, heads)
}

// awaitChain waits until a node answers and the exchange is found: whoever cannot publish anything, for a wrong address
// perhaps, must not take the topic from one who can.
func (s *Scanner) awaitChain(ctx context.Context) error {
	policy := retry.Policy{Initial: 100 * time.Millisecond, Max: 5 * time.Second,
		OnRetry: func(attempt int, err error, _ time.Duration) {
			s.status.fail(err)
			if attempt == 1 {
				s.log.Warn().Err(err).Msg("no node answers; the log topic is claimed when one does")
			}
		}}
	return retry.Do(ctx, policy, func(ctx context.Context) error {
		head, err := s.chain.Head(ctx)
		if err != nil {
			return final(err)
		}
		s.status.saw(head)
		return final(s.collector.venue.Look(ctx))
	})
}

// standBy waits until the topic has stayed behind the chain for the configured time: then its owner is gone, or cannot
// reach what it needs. Before a block that this scanner itself could not publish it leaves the topic to others.
func (s *Scanner) standBy(ctx context.Context, heads <-chan chain.BlockRef, rival *replacedError) error {
	s.log.Warn().Uint64("epoch", rival.epoch).Str("owner", rival.owner).Msg("another scanner owns the log topic; " +
		"standing by")
	for {
		s.status.standBy(rival)
		err := s.watchOwner(ctx, heads)
		switch {
		case errors.Is(err, errSilent):
			return nil
		case ctx.Err() != nil || !bus.LostLog(err):
			return fmt.Errorf("standing by: %w", err)
		}
		if err := s.awaitTopic(ctx, err); err != nil { // its owner claims it anew
			return fmt.Errorf("standing by: %w", err)
		}
	}
}

// watchOwner follows a topic that is somebody else's, until it is silent.
func (s *Scanner) watchOwner(ctx context.Context, heads <-chan chain.BlockRef) error {
	tail, err := readTail(ctx, s.kafka, s.topic, 0, nil)
	if err != nil {
		return err
	}
	s.static.look()
	tips := make(chan uint64)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.followTip(ctx, tail, tips) })
	group.Go(func() error { return s.awaitSilence(ctx, heads, tips) })
	return group.Wait()
}

// errSilent ends a stand-by.
var errSilent = errors.New("the log topic stays behind the chain")

// awaitSilence returns errSilent when the tip of the topic has not moved for the configured time although the chain's
// head is above it.
func (s *Scanner) awaitSilence(ctx context.Context, heads <-chan chain.BlockRef, tips <-chan uint64) error {
	var head, tip uint64
	patience := s.cfg.Scanner.TakeoverAfter
	silence := time.NewTimer(patience)
	defer silence.Stop()
	for {
		select {
		case tip = <-tips:
			silence.Reset(patience)
		case h := <-heads:
			s.status.saw(h)
			if head <= tip { // until now there was nothing to publish
				silence.Reset(patience)
			}
			head = h.Number
		case <-silence.C:
			if head > tip && tip >= s.stuckAt {
				s.log.Warn().Uint64("head", head).Uint64("topic", tip).Msg("the log topic stays behind the chain; " +
					"claiming it")
				return errSilent
			}
			silence.Reset(patience)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// followTip delivers the number of the newest block of partition 0, whenever it moves. A halted topic is behind
// nothing: nobody may publish.
func (s *Scanner) followTip(ctx context.Context, tail *stream, tips chan<- uint64) error {
	for last := uint64(0); ; {
		if tip := tail.newest(); tip != last {
			last = tip
			select {
			case tips <- last:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		if err := tail.readTo(ctx, s.kafka, s.topic, tail.next+1, s.static.observe); err != nil {
			return err
		}
	}
}
