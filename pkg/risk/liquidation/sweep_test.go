package liquidation

import (
	"context"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

var (
	eth, usdc = chain.Address{1}, chain.Address{2}
	market    = perp.Market{MarketToken: chain.Address{3}, IndexToken: eth, LongToken: eth, ShortToken: usdc}
)

func circumstances(t interface{ Fatal(...any) }, ethPrice uint64) perp.Circumstances {
	book := perp.NewBook()
	factor := perp.Parameter{
		Key:   perp.DataStoreKey("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", market.MarketToken.Hash()),
		Value: chain.Pow10(28).Bytes32(), // 1 %
	}
	if err := book.Begin(1); err != nil {
		t.Fatal(err)
	}
	book.Put(market)
	book.Put(factor)
	price := chain.U64(ethPrice).Mul(chain.Pow10(12))
	return perp.Circumstances{Rows: book, FireRatio: perp.One, Prices: map[chain.Address]perp.Price{
		eth: {Min: price, Max: price}, usdc: {Min: chain.Pow10(24), Max: chain.Pow10(24)},
	}}
}

// sweep sweeps and returns who is to be liquidated.
func sweep(t interface{ Context() context.Context }, positions []perp.Position, c perp.Circumstances,
	workers int) ([]Candidate, error) {
	swept, err := Sweep(t.Context(), positions, perp.NewView(c), workers)
	return swept.Liquidatable, err
}

// long is a long of $10 000 on ETH opened at $5000 with so many dollars of collateral.
func long(id byte, collateralUSD uint64) perp.Position {
	return perp.Position{
		PositionKey: chain.Hash{id}, Market: market.MarketToken, CollateralToken: usdc, IsLong: true,
		Status:    perp.Active,
		SizeInUsd: chain.U64(10_000).Mul(perp.One), SizeInTokens: chain.U64(2).Mul(chain.Pow10(18)),
		CollateralAmount: chain.U64(collateralUSD).Mul(chain.Pow10(6)),
	}
}

// LIQ-6: lowest margin ratio first; LIQ-3: only open positions.
func TestSweepOrdersByUrgency(t *testing.T) {
	closed := long(9, 0)
	closed.Status = perp.Closed
	positions := []perp.Position{long(1, 1090), long(2, 5000), long(3, 1010), closed, long(4, 900), long(5, 950)}
	got, err := sweep(t, positions, circumstances(t, 4500), 3) // every long has lost $1000 and needs $100
	if err != nil {
		t.Fatal(err)
	}
	var ids []byte
	for _, c := range got {
		ids = append(ids, c.Position.PositionKey[0])
	}
	if !slices.Equal(ids, []byte{4, 5, 3, 1}) {
		t.Errorf("found %v, want 4 5 3 1", ids)
	}
}

// LIQ-4: positions are judged by one view in parallel, and the verdicts are those of one worker.
func TestSweepIsTheSameForAnyNumberOfWorkers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var positions []perp.Position
		for i := range rapid.IntRange(0, 40).Draw(t, "positions") {
			positions = append(positions, long(byte(i), rapid.Uint64Range(800, 1300).Draw(t, "collateral")))
		}
		c := circumstances(t, 4500)
		want, err := sweep(t, positions, c, 1)
		if err != nil {
			t.Fatal(err)
		}
		got, err := sweep(t, positions, c, rapid.IntRange(2, 16).Draw(t, "workers"))
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v, want %v (%v)", got, want, err)
		}
		for _, p := range positions {
			v, err := perp.NewView(c).Judge(p)
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(got, func(c Candidate) bool { return c.Position.PositionKey == p.PositionKey })
			if found != v.Liquidatable {
				t.Fatalf("position %v: found %v, liquidatable %v", p.PositionKey, found, v.Liquidatable)
			}
		}
	})
}

// LIQ-5: a venue that liquidates at 110 % is configuration.
func TestFireRatio(t *testing.T) {
	p := long(1, 1105) // $105 remain of the $100 required
	c := circumstances(t, 4500)
	if got, err := sweep(t, []perp.Position{p}, c, 1); err != nil || len(got) != 0 {
		t.Fatalf("at 105 %% the plain rule refuses: %v, %v", got, err)
	}
	cfg := DefaultConfig()
	if err := cfg.FireRatio.UnmarshalText([]byte("1.10")); err != nil {
		t.Fatal(err)
	}
	c.FireRatio = cfg.FireRatio.Factor
	if got, err := sweep(t, []perp.Position{p}, c, 1); err != nil || len(got) != 1 {
		t.Fatalf("at 105 %% a venue of 110 %% liquidates: %v, %v", got, err)
	}
}

func TestRatioText(t *testing.T) {
	const least = "0.000000000000000000000000000001"
	for text, want := range map[string]string{"1": "1", "1.10": "1.1", "1.05": "1.05", "2.0": "2", least: least} {
		var r Ratio
		if err := r.UnmarshalText([]byte(text)); err != nil || r.String() != want {
			t.Errorf("%s: %s, %v", text, r, err)
		}
	}
	for _, bad := range []string{"", ".", ".5", "1,1", "-1", "1e1", "1.0000000000000000000000000000001", "110%"} {
		var r Ratio
		if err := r.UnmarshalText([]byte(bad)); err == nil {
			t.Errorf("%q was read as %s", bad, r)
		}
	}
	c := DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.FireRatio, c.Workers = Ratio{chain.U64(1)}, 0
	if err := c.Validate(); err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("both problems are named at once: %v", err)
	}
}

// LIQ-3, LIQ-5: the tiers are counted, and the positions below 200 % are the first of the next sweep.
func TestSweepCountsTiers(t *testing.T) {
	x := NewIndex(ArmedRatio)
	// each needs $100 and has lost $1000
	for id, collateral := range map[byte]uint64{1: 1090, 2: 1105, 3: 1150, 4: 1199, 5: 1300} {
		x.Put(long(id, collateral))
	}
	view := perp.NewView(circumstances(t, 4500))
	got, left, err := NewRound([]*Index{x}, nil).Judge(t.Context(), view, 3, 100)
	if err != nil || left || len(got.Liquidatable) != 1 || got.Armed != 2 || got.Watch != 4 || len(got.Risky) != 4 {
		t.Fatalf("%d liquidatable, %d armed, %d watched: %v", len(got.Liquidatable), got.Armed, got.Watch, err)
	}
	next := NewRound([]*Index{x}, append(got.Risky, chain.Hash{99}))
	var first []perp.Position
	for left := true; left; {
		if _, left, err = next.Judge(t.Context(), view, 3, 2); err != nil {
			t.Fatal(err)
		}
		first = append(first, next.slice...)
	}
	if len(first) != 5 {
		t.Fatalf("%d positions are judged, want 5", len(first))
	}
	for i, p := range first {
		if (p.PositionKey[0] == 5) != (i == 4) {
			t.Errorf("position %x comes as number %d", p.PositionKey[0], i)
		}
	}
}

// A market without a price is one failure and not one for each of its positions; of positions that fail each by itself
// a hundred are named.
func TestSweepNamesNoMillions(t *testing.T) {
	c := circumstances(t, 4500)
	lost := long(1, 1000)
	lost.Market = chain.Address{99}
	broken := long(2, 1000)
	broken.SizeInTokens = chain.Uint{}
	positions := make([]perp.Position, 0, 1001)
	for range 500 {
		positions = append(positions, lost, broken)
	}
	positions = append(positions, long(3, 1000))
	found, err := sweep(t, positions, c, 2)
	lines := strings.Count(err.Error(), "\n") + 1
	if lines > 2*(mostNamed+1) || !strings.Contains(err.Error(), "further") {
		t.Errorf("%d lines", lines)
	}
	if strings.Count(err.Error(), lost.Market.String()) > 2 || len(found) != 1 {
		t.Errorf("%d found, and the market is named %d times", len(found),
			strings.Count(err.Error(), lost.Market.String()))
	}
}
