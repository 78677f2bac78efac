package scanner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
)

// staticPrices are the tokens whose price the exchange's managers have fixed (v2.2c): executions have to name the
// static provider for them, and no feed's. They are read from the chain at start, at every event that changes a token's
// provider or its fixed price, after a reorg, and each hour. It is safe for concurrent use.
type staticPrices struct {
	store dataStore
	// oracles are those of the exchange's handlers: each has its own providers. None are known before they were found.
	oracles func() []chain.Address
	head    func(context.Context) (chain.BlockRef, error)
	asked   func(context.Context, chain.BlockRef) ([]chain.Address, error) // the tokens that markets need
	clock   func(time.Time) uint64
	log     zerolog.Logger
	wake    chan struct{}

	mu     sync.Mutex
	tokens map[chain.Address]fixedPrice
	since  uint64 // the block of the newest event; a node behind it is asked again
}

// fixedPrice is a token's price and the provider that gives it, which exchanges its two sides.
type fixedPrice struct {
	provider chain.Address
	perp.Price
}

func newStaticPrices(venue *gmx.Follower, store dataStore, head func(context.Context) (chain.BlockRef, error),
	clock func(time.Time) uint64, log zerolog.Logger) *staticPrices {
	s := &staticPrices{store: store, head: head, asked: store.tokens, clock: clock, log: log,
		wake: make(chan struct{}, 1)}
	s.oracles = func() (all []chain.Address) {
		for _, h := range venue.Venue().Handlers {
			if !h.Oracle.IsZero() && !slices.Contains(all, h.Oracle) {
				all = append(all, h.Oracle)
			}
		}
		return all
	}
	s.look()
	return s
}

// look has the chain asked anew.
func (s *staticPrices) look() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// observe notes a message of the log topic.
func (s *staticPrices) observe(m wire.Message) {
	switch m := m.(type) {
	case wire.Log:
		if gmx.SetsProvider(m.Log) {
			s.mu.Lock()
			s.since = max(s.since, m.Block)
			s.mu.Unlock()
			s.look()
		}
	case wire.Reorg:
		s.look()
	}
}

// The pace at which reports of fixed prices are given: prices are judged in whole seconds; and how often the chain is
// asked without an event, and after a failure.
const (
	staticPace  = 500 * time.Millisecond
	staticFresh = time.Hour
	staticRetry = time.Second
)

// run keeps the tokens up to date and gives a report of each of them, as of now, until ctx ends.
func (s *staticPrices) run(ctx context.Context, give func(context.Context, []price.Report) error) error {
	next := time.NewTimer(staticFresh)
	defer next.Stop()
	pace := time.NewTicker(staticPace)
	defer pace.Stop()
	for {
		ask := false
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.wake:
			ask = true
		case <-next.C:
			ask = true
		case <-pace.C:
		}
		if ask {
			next.Reset(staticFresh)
			if err := s.refresh(ctx); err != nil {
				s.log.Debug().Err(err).Msg("cannot read which tokens have a fixed price")
				next.Reset(staticRetry)
			}
		}
		if reports := s.reports(); len(reports) > 0 {
			if err := give(ctx, reports); err != nil && ctx.Err() == nil {
				s.log.Warn().Err(err).Msg("cannot publish fixed prices, trying again")
			}
		}
	}
}

// fixed reports whether a token's price is fixed: what feeds say of it counts for nothing.
func (s *staticPrices) fixed(token chain.Address) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, is := s.tokens[token]
	return is
}

// reports are the fixed prices as the exchange takes them at the chain's present second.
func (s *staticPrices) reports() (all []price.Report) {
	now := time.Now()
	ms := s.clock(now)
	s.mu.Lock()
	defer s.mu.Unlock()
	for token, p := range s.tokens {
		if ms > 0 {
			all = append(all, price.Report{Token: token, Provider: p.provider, Min: p.Min, Max: p.Max, TimeMs: ms,
				Source: price.StaticSource, ReceivedMs: uint64(now.UnixMilli())})
		}
	}
	return all
}

// refresh reads the tokens of all markets.
func (s *staticPrices) refresh(ctx context.Context) error {
	head, err := s.head(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	since := s.since
	s.mu.Unlock()
	if head.Number < since {
		return fmt.Errorf("the node is at block %d, and what is asked for is of block %d", head.Number, since)
	}
	oracles := s.oracles()
	if len(oracles) == 0 {
		return errors.New("the exchange's oracle is not known yet")
	}
	tokens, err := s.asked(ctx, head)
	if err != nil {
		return err
	}
	found := map[chain.Address]fixedPrice{}
	for _, token := range tokens {
		for _, oracle := range oracles {
			p, fixed, err := s.read(ctx, oracle, token, head)
			if err != nil {
				return err
			}
			if fixed {
				found[token] = p
			}
		}
	}
	s.take(found)
	return nil
}

// take puts what was found in the place of what was, and says what has changed.
func (s *staticPrices) take(found map[chain.Address]fixedPrice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token, p := range found {
		if s.tokens[token] != p {
			s.log.Warn().Stringer("token", token).Stringer("min", p.Min).Stringer("max", p.Max).
				Stringer("provider", p.provider).Msg("the exchange's managers have fixed the price of a token")
		}
	}
	for token := range s.tokens {
		if _, still := found[token]; !still {
			s.log.Warn().Stringer("token", token).Msg("the price of a token is no longer fixed")
		}
	}
	s.tokens = found
}

// read reads a token's price at the static provider, and whether that is the token's provider: it answers with the very
// words that are stored for it.
func (s *staticPrices) read(ctx context.Context, oracle, token chain.Address, at chain.BlockRef) (p fixedPrice,
	fixed bool, err error) {
	words, err := s.store.all(ctx, []perp.Word{
		{Key: perp.StaticPriceKey(token, false), Kind: perp.UintWord, Name: "the fixed minimum of " + token.Hex()},
		{Key: perp.StaticPriceKey(token, true), Kind: perp.UintWord, Name: "the fixed maximum of " + token.Hex()},
		{Key: perp.DataStoreKey("ORACLE_PROVIDER_FOR_TOKEN", oracle.Hash(), token.Hash()), Kind: perp.AddressWord,
			Name: "the provider of " + token.Hex()},
	}, at)
	if err != nil || words[0].IsZero() || words[1].IsZero() || words[2].IsZero() {
		return p, false, err
	}
	p = fixedPrice{words[2].Address(), perp.Price{Min: chain.UintFromBytes(words[0][:]),
		Max: chain.UintFromBytes(words[1][:])}}
	out, err := s.store.caller.Call(ctx, p.provider, getOraclePrice(token), at.Hash)
	if _, reverted := evm.RevertData(err); reverted {
		return p, false, nil // a provider that wants a report: no static one
	}
	if err != nil {
		return p, false, fmt.Errorf("asking the provider of %s for its price: %w", token, err)
	}
	return p, len(out) >= 3*32 && bytes.Equal(out[32:64], words[1][:]) && bytes.Equal(out[64:96], words[0][:]), nil
}

// getOraclePrice is the call of a provider without any data.
func getOraclePrice(token chain.Address) []byte {
	return message("getOraclePrice(address,bytes)", token.Hash(), chain.Hash{31: 64}, chain.Hash{})
}
