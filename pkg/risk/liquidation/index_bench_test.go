package liquidation

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// crowd is a large venue: many markets, each with its own index token and USDC, positions of 2 to 40 times their
// collateral, opened at prices about the present one, both sides, both collaterals.
type crowd struct {
	rows      *perp.Book
	tokens    []chain.Address
	prices    map[chain.Address]perp.Price
	positions []perp.Position
}

func newCrowd(markets, positions int) *crowd {
	random := rand.New(rand.NewPCG(1, 2))
	c := &crowd{rows: perp.NewBook(),
		prices: map[chain.Address]perp.Price{usdc: {Min: chain.Pow10(24), Max: chain.Pow10(24)}}}
	if err := c.rows.Begin(1); err != nil {
		panic(err)
	}
	v := venue{book: c.rows}
	v.set("MIN_COLLATERAL_USD", chain.Pow10(30))
	for i := range markets {
		token := chain.Address{0xaa, byte(i)}
		m := perp.Market{MarketToken: chain.Address{0xbb, byte(i)}, IndexToken: token, LongToken: token,
			ShortToken: usdc}
		c.rows.Put(m)
		c.tokens = append(c.tokens, token)
		c.price(token, 1000)
		c.parameters(v, m)
	}
	for i := range positions {
		c.positions = append(c.positions, c.position(random, uint64(i), i%markets))
	}
	return c
}

func (c *crowd) price(token chain.Address, dollars float64) {
	price := uintOf(dollars * 1e12)
	c.prices[token] = perp.Price{Min: price, Max: price.Add(price.Div(chain.U64(10_000)))}
}

// parameters are about those of GMX's larger markets.
func (c *crowd) parameters(v venue, m perp.Market) {
	key := m.MarketToken.Hash()
	v.set("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", chain.Pow10(28).Div(chain.U64(2)), key)
	v.set("FUNDING_FACTOR", chain.Pow10(22), key)
	v.set("FUNDING_EXPONENT_FACTOR", perp.One, key)
	v.set("MAX_FUNDING_FACTOR_PER_SECOND", chain.Pow10(22), key)
	for _, is := range sides {
		side := perp.BoolWord(is)
		v.set("POSITION_FEE_FACTOR", chain.Pow10(26).Mul(chain.U64(6)), key, side)
		v.set("POSITION_IMPACT_FACTOR", chain.Pow10(22), key, side)
		v.set("POSITION_IMPACT_EXPONENT_FACTOR", chain.U64(2).Mul(perp.One), key, side)
		v.set("BORROWING_FACTOR", chain.Pow10(22), key, side)
		v.set("BORROWING_EXPONENT_FACTOR", perp.One, key, side)
	}
	stamp := perp.Stamp{Block: 1, TimeMs: second * 1000}
	put := func(measure perp.Measure, token chain.Address, isLong bool, value chain.Uint) {
		c.rows.Put(perp.MarketValue{Measure: measure, Scope: key, Token: token, IsLong: isLong, Value: value.Int(),
			Stamp: stamp})
	}
	put(perp.FundingFactorPerSecond, chain.Address{}, false, chain.Uint{})
	for _, token := range []chain.Address{m.LongToken, m.ShortToken} {
		put(perp.PoolAmount, token, false, chain.U64(200_000_000).Mul(perp.One).Div(c.prices[token].Max))
		for i, isLong := range sides {
			interest := chain.U64(uint64(40_000_000 + 10_000_000*i)).Mul(perp.One)
			put(perp.OpenInterest, token, isLong, interest)
			put(perp.OpenInterestInTokens, token, isLong, interest.Div(c.prices[m.IndexToken].Max))
			put(perp.CumulativeBorrowingFactor, chain.Address{}, isLong, chain.Uint{})
		}
	}
}

func (c *crowd) position(random *rand.Rand, id uint64, market int) perp.Position {
	token := c.tokens[market]
	usd := 100 + random.Uint64N(100_000)
	p := perp.Position{
		Market: chain.Address{0xbb, byte(market)}, CollateralToken: []chain.Address{usdc, token}[random.IntN(2)],
		IsLong: random.IntN(2) == 0,
		Status: perp.Active, SizeInUsd: chain.U64(usd).Mul(perp.One),
		Account: chain.Address(binary.BigEndian.AppendUint64(make([]byte, 12), id)),
	}
	binary.BigEndian.PutUint64(p.PositionKey[:], id)
	leverage := 2 + random.Float64()*38
	opened := c.prices[token].Max.Float() * (1 + 0.4*(random.Float64()-0.5)/leverage)
	p.SizeInTokens = p.SizeInUsd.Div(uintOf(opened))
	p.CollateralAmount = uintOf(p.SizeInUsd.Float() / leverage).Div(c.prices[p.CollateralToken].Max)
	return p
}

func (c *crowd) view(seconds uint64) *perp.View {
	return perp.NewView(perp.Circumstances{Rows: c.rows, Prices: c.prices, Time: second + seconds, FireRatio: perp.One})
}

const crowdOf, crowdMarkets = 1_000_000, 40

// BenchmarkTick is one token's price moving among a million positions: from the tick to its candidates, judged. What is
// found to be liquidated leaves, as it would. An ordinary tick moves by up to 0.02 %, as much as a second does to a
// price of 60 % volatility a year; a nervous one by up to 0.1 %, which brings down dozens of positions at once.
func BenchmarkTick(b *testing.B) {
	b.Run("ordinary", func(b *testing.B) { benchmarkTick(b, crowdOf, 0.0002) })
	b.Run("nervous", func(b *testing.B) { benchmarkTick(b, crowdOf, 0.001) })
}

// BenchmarkOrdinaryTick is an ordinary tick among fewer positions and more, up to what a planner is meant for.
func BenchmarkOrdinaryTick(b *testing.B) {
	for _, positions := range []int{10_000, 100_000, 1_000_000, 2_500_000} {
		b.Run(strconv.Itoa(positions), func(b *testing.B) { benchmarkTick(b, positions, 0.0002) })
	}
}

func benchmarkTick(b *testing.B, positions int, move float64) {
	c := newCrowd(crowdMarkets, positions)
	before := heap()
	began := time.Now()
	x := NewIndex(ArmedRatio)
	for _, p := range c.positions {
		x.Put(p)
	}
	view := c.view(0)
	for _, m := range x.Markets() {
		if _, err := x.Candidates(m, view); err != nil {
			b.Fatal(err)
		}
	}
	loading, size := time.Since(began).Seconds(), float64(heap()-before)/float64(positions)
	random := rand.New(rand.NewPCG(3, 4))
	dollars := make([]float64, crowdMarkets)
	for i := range dollars {
		dollars[i] = 1000
	}
	var took []time.Duration
	candidates := 0
	for b.Loop() {
		i := random.IntN(crowdMarkets)
		dollars[i] *= 1 + 2*move*(random.Float64()-0.5)
		c.price(c.tokens[i], dollars[i])
		began := time.Now()
		found, err := x.Candidates(chain.Address{0xbb, byte(i)}, c.view(uint64(len(took)/crowdMarkets)))
		took = append(took, time.Since(began))
		if err != nil {
			b.Fatal(err)
		}
		candidates += len(found)
		for _, candidate := range found {
			if candidate.Verdict.Liquidatable {
				x.Remove(candidate.Position.PositionKey) // some keeper liquidates it
			}
		}
	}
	b.ReportMetric(loading, "load-s")
	b.ReportMetric(size, "B/position")
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds())/1e3, "p99-µs")
	b.ReportMetric(float64(took[len(took)-1].Nanoseconds())/1e3, "max-µs")
	b.ReportMetric(float64(candidates)/float64(len(took)), "candidates/tick")
}

// BenchmarkSweep is the exact judgement of a million positions.
func BenchmarkSweep(b *testing.B) {
	c := newCrowd(crowdMarkets, crowdOf)
	x := NewIndex(ArmedRatio)
	for _, p := range c.positions {
		x.Put(p)
	}
	for b.Loop() {
		r, view := NewRound([]*Index{x}, nil), c.view(0)
		for left := true; left; {
			var err error
			if _, left, err = r.Judge(b.Context(), view, runtime.NumCPU(), 8192); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
