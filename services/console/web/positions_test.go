package web_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/naming/namingtest"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/services/console/web"
)

var someMarket = namingtest.Market

// somePosition is an open one, nearer to liquidation than those of lower numbers.
func somePosition(n int) perp.Position {
	return perp.Position{PositionKey: chain.Hash{0xcc, byte(n >> 16), byte(n >> 8), byte(n)},
		Account: chain.Address{0xac, 19: byte(n)}, Market: someMarket.MarketToken,
		CollateralToken: someMarket.ShortToken, IsLong: n%2 == 0, Status: perp.Active,
		SizeInUsd: chain.U64(10_000).Mul(perp.One), SizeInTokens: chain.Pow10(19),
		CollateralAmount: chain.U64(uint64(100 + 5000/(n+1))).Mul(chain.Pow10(6))}
}

// expose gives the state open positions in a block, from a number on, and has their tokens reported.
func (s *site) expose(part *pg.Partition, next int64, block chain.BlockRef, from, count int) {
	s.t.Helper()
	rows := []pg.Change{{After: someMarket}}
	for n := range count {
		rows = append(rows, pg.Change{After: somePosition(from + n)})
	}
	s.must(part.Commit(s.t.Context(), pg.Commit{Next: next, Blocks: []pg.AppliedBlock{{BlockRef: block,
		Changes: rows}}}))
	s.price()
}

// exposeNow gives a state that has nothing yet open positions in a block of now.
func (s *site) exposeNow(count int) {
	s.t.Helper()
	part, err := s.db.Claim(s.t.Context(), pg.ClaimRequest{Generation: 1, Partitions: 1})
	s.must(err)
	s.expose(part, 1, chain.BlockRef{Number: 7, Hash: chain.Hash{7}, Parent: chain.Hash{6},
		TimeMs: uint64(time.Now().UnixMilli())}, 0, count)
}

// price has the tokens of the positions reported as of now.
func (s *site) price() {
	s.t.Helper()
	for token, price := range map[chain.Address]chain.Uint{someMarket.IndexToken: chain.U64(1000).Mul(chain.Pow10(12)),
		someMarket.ShortToken: chain.Pow10(24)} {
		report := wire.Price{Token: token, Source: "stream-1", Min: price, Max: price,
			TimeMs: uint64(time.Now().UnixMilli())}
		r, err := wire.Encode(token[:], report, 0, 0)
		s.must(err)
		_, err = s.client.Producer(wire.PriceTopic(s.deps.Keeper.ChainID)).Produce(s.t.Context(), 0, []bus.Record{r})
		s.must(err)
	}
}

// awaitPage asks for a page until it says so, and returns it.
func (b *browser) awaitPage(path, says string) (page string) {
	b.t.Helper()
	waiting, cancel := context.WithTimeout(b.t.Context(), 90*time.Second) // guards against a hang
	defer cancel()
	for tick := time.NewTicker(50 * time.Millisecond); !strings.Contains(page, says); {
		select {
		case <-tick.C:
			_, page = b.get(path)
		case <-waiting.Done():
			b.t.Fatalf("%s never says %q:\n%s", path, says, page)
		}
	}
	return page
}

// The positions that stand nearest to liquidation come first, with the planner's own sentence.
func TestPositionsAreRanked(t *testing.T) {
	s := newSite(t)
	s.exposeNow(5)
	page := s.as("vera").awaitPage("/positions", "5 open positions")
	last := 0
	for n := 4; n >= 0; n-- {
		at := strings.Index(page, fmt.Sprintf("position-%s", chain.Hash{0xcc, 3: byte(n)}))
		if at <= last {
			t.Errorf("position %d is not where it should be:\n%s", n, page)
		}
		last = at
	}
	for _, want := range []string{"it is healthy: margin ratio", `class="line s1"`, "by market: 1 of 1"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s:\n%s", want, page)
		}
	}
}

// Positions are sorted by whatever is asked for, one way and the other, and each head leads to the other way.
func TestPositionsAreSorted(t *testing.T) {
	s := newSite(t)
	s.exposeNow(5)
	vera := s.as("vera")
	vera.awaitPage("/positions", "5 open positions")
	for query, want := range map[string]string{"": "4 3 2 1 0", "?sort=distance&order=desc": "0 1 2 3 4",
		"?sort=account": "0 1 2 3 4", "?sort=account&order=desc": "4 3 2 1 0", "?sort=side": "4 2 0 3 1",
		"?sort=size&order=desc": "4 3 2 1 0", // all equal: as they were
		"?sort=liquidation":     "0 2 4 3 1"} {
		_, page := vera.get("/positions" + query)
		var order []string
		for _, row := range regexp.MustCompile(`position-0xcc0000(..)`).FindAllStringSubmatch(page, -1) {
			order = append(order, strings.TrimPrefix(row[1], "0"))
		}
		if got := strings.Join(order, " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	page := vera.awaitPage("/positions?sort=size&order=asc", "ETH/USD [WETH-USDC]")
	for _, want := range []string{"$10,000.00", "$1,000", `aria-sort="ascending"`,
		`href="/positions?order=desc&amp;sort=size"`, `href="/positions?order=asc&amp;sort=liquidation"`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	for _, query := range []string{"?sort=colour", "?sort=size&order=up"} {
		if status, _ := vera.get("/positions" + query); status != http.StatusBadRequest {
			t.Errorf("%s: %d", query, status)
		}
	}
}

// Who looks after nobody has for long is not shown how things stood then.
func TestOutdatedRankingIsNotShown(t *testing.T) {
	var passed atomic.Int64
	s := newSite(t, func(d *web.Deps) {
		d.Now = func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	})
	s.exposeNow(5)
	vera := s.as("vera")
	vera.awaitPage("/positions", "5 open positions")
	passed.Store(int64(time.Hour))
	if _, page := vera.get("/positions"); strings.Contains(page, "open positions") ||
		!strings.Contains(page, "they will be here in a moment") {
		t.Errorf("after an hour:\n%s", page)
	}
	vera.awaitPage("/positions", "5 open positions")
}
