package web_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/wire"
)

var someMarket = perp.Market{MarketToken: chain.Address{0xe1, 19: 1}, IndexToken: chain.Address{2},
	LongToken: chain.Address{2}, ShortToken: chain.Address{3}}

// expose gives the state open positions, each nearer to liquidation than the one before it, and prices.
func (s *site) expose(part *pg.Partition, next int64, block chain.BlockRef, positions int) {
	s.t.Helper()
	rows := []pg.Change{{After: someMarket}}
	for n := range positions {
		key := chain.Hash{0xcc, byte(n >> 16), byte(n >> 8), byte(n)}
		rows = append(rows, pg.Change{After: perp.Position{PositionKey: key, Account: chain.Address{0xac, 19: byte(n)},
			Market: someMarket.MarketToken, CollateralToken: someMarket.ShortToken, IsLong: n%2 == 0,
			Status: perp.Active, SizeInUsd: perp.U64(10_000).Mul(perp.One), SizeInTokens: perp.U64(10),
			CollateralAmount: perp.U64(uint64(100 + 5000/(n+1)))}})
	}
	s.must(part.Commit(s.t.Context(), pg.Commit{Next: next, Blocks: []pg.AppliedBlock{{Block: pg.Block{BlockRef: block},
		Changes: rows}}}))
	for token, price := range map[chain.Address]perp.Uint{someMarket.IndexToken: perp.U64(1000).Mul(perp.One),
		someMarket.ShortToken: perp.One} {
		report := wire.Price{Token: token, Min: price, Max: price, TimeMs: uint64(time.Now().UnixMilli())}
		r, err := wire.Encode(token[:], report, 0, 0)
		s.must(err)
		_, err = s.client.Producer(wire.PriceTopic(s.deps.Keeper.ChainID)).Produce(s.t.Context(), 0, []bus.Record{r})
		s.must(err)
	}
}

// The positions that stand nearest to liquidation come first, with the planner's own sentence.
func TestPositionsAreRanked(t *testing.T) {
	s := newSite(t)
	part, err := s.db.Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partitions: 1})
	s.must(err)
	s.expose(part, 1, chain.BlockRef{Number: 7, Hash: chain.Hash{7}, Parent: chain.Hash{6},
		TimeMs: uint64(time.Now().UnixMilli())}, 5)
	vera := s.as("vera")
	page := ""
	waiting, cancel := context.WithTimeout(t.Context(), 90*time.Second) // guards against a hang
	defer cancel()
	for tick := time.NewTicker(50 * time.Millisecond); !strings.Contains(page, "5 open positions"); {
		select {
		case <-tick.C:
			_, page = vera.get("/positions")
		case <-waiting.Done():
			t.Fatal(page)
		}
	}
	last := 0
	for n := 4; n >= 0; n-- {
		at := strings.Index(page, fmt.Sprintf("position-%s", chain.Hash{0xcc, 3: byte(n)}))
		if at <= last {
			t.Errorf("position %d is not where it should be:\n%s", n, page)
		}
		last = at
	}
	if !strings.Contains(page, "it is healthy: margin ratio") {
		t.Errorf("no sentence:\n%s", page)
	}
}
