package exchange

import (
	"math/big"
	"testing"
	"time"

	"perpkeeper/lab/devnet/contracts"
)

// savedFactor reads the adaptive factor, which no event tells.
func (v *venue) savedFactor(m Market) *big.Int {
	v.t.Helper()
	out, err := v.client.read(v.ctx, contracts.DataStore, v.d.Contracts.DataStore, "getInt",
		contracts.Key("SAVED_FUNDING_FACTOR_PER_SECOND", m.Address))
	if err != nil {
		v.t.Fatal(err)
	}
	return out[0].(*big.Int)
}

// fundedBy makes a market's factor grow by so much per second of full skew, and gives both sides interest: 30 000 USD
// long, 10 000 short, a skew of one half.
func fundedBy(t *testing.T, version contracts.Version) (v *venue, m Market) {
	t.Helper()
	v = anotherVenue(t, func(c *Config) { c.Version = version })
	m = v.market("ETH/USD")
	v.must(v.client.SetUint(v.ctx, v.deployer, "FUNDING_EXPONENT_FACTOR", factor(1, 1), m.Address))
	v.must(v.client.SetUint(v.ctx, v.deployer, "FUNDING_INCREASE_FACTOR_PER_SECOND", factor(1, 1e15), m.Address))
	return v, m
}

// elapsed returns the seconds from an execution's block to the next one's, and what that says.
func (v *venue) elapsed(since uint64, events []event, m Market) (seconds *big.Int, factor *big.Int) {
	v.t.Helper()
	return new(big.Int).SetUint64(v.now() - since), v.has(events, "Funding").int("fundingFactorPerSecond")
}

// The factor grows with the skew, no slower than its floor and within the bounds of the side that pays; a side that is
// empty leaves it as it is. v2.2b has no floor, and forgets.
func TestFundingFactor(t *testing.T) {
	t.Parallel()
	least := defaultParameters().MinFundingFactorPerSecond
	for version, rate := range map[contracts.Version]*big.Int{
		contracts.V22C: defaultParameters().MinFundingIncreaseRatePerSecond, // half of 1e-15 is below the floor
		contracts.V22B: factor(1, 2e15),
	} {
		v, m := fundedBy(t, version)
		long, short := v.account(), v.account()
		v.open(short, m, false, 10_000, 2_000)
		v.open(long, m, true, 30_000, 5_000)
		start := v.now()
		v.advance(100 * time.Second)
		seconds, got := v.elapsed(start, v.fill(v.order(long, trade(m, MarketIncrease, true)), m), m)
		saved := new(big.Int).Mul(rate, seconds)
		if v.savedFactor(m).Cmp(saved) != 0 || got.Cmp(bigMax(saved, least)) != 0 {
			t.Errorf("%s: after %s s the factor is %s and the saved one %s, want %s", version, seconds, got,
				v.savedFactor(m), saved)
		}
		v.fill(v.order(short, closing(m, false)), m)
		kept := v.savedFactor(m)
		v.advance(100 * time.Second)
		events := v.fill(v.order(long, closing(m, true)), m)
		want := kept
		if version == contracts.V22B {
			want = new(big.Int)
		}
		if shown := v.has(events, "Funding").int("fundingFactorPerSecond"); kept.Sign() <= 0 ||
			shown.Cmp(want) != 0 || v.savedFactor(m).Cmp(want) != 0 {
			t.Errorf("%s: with an empty side the factor %s becomes %s and shows %s", version, kept, v.savedFactor(m),
				shown)
		}
	}
}

// The larger side pays, each position in proportion to its size; who cannot any more is liquidated.
func TestFundingIsPaid(t *testing.T) {
	t.Parallel()
	v, m := fundedBy(t, contracts.V22C)
	v.must(v.client.SetUint(v.ctx, v.deployer, "MAX_FUNDING_FACTOR_PER_SECOND", factor(1, 1_000_000), m.Address, true))
	v.must(v.client.SetUint(v.ctx, v.deployer, "FUNDING_INCREASE_FACTOR_PER_SECOND", factor(1, 1e6), m.Address))
	long, short := v.account(), v.account()
	v.open(short, m, false, 10_000, 2_000)
	v.open(long, m, true, 30_000, 5_000)
	v.advance(1_000 * time.Second)
	events := v.fill(v.order(long, closing(m, true)), m)
	grown, fees := v.has(events, "FundingFeeAmountPerSizeUpdated"), v.has(events, "PositionFeesCollected")
	if grown.items["isLong"] != true || grown.items["collateralToken"] != m.Short {
		t.Errorf("who pays: %v", grown.items)
	}
	// At most a millionth each second of 30 000 USD: 30 USDC in a thousand seconds.
	paid := fees.int("fundingFeeAmount")
	exact := new(big.Int).Mul(usd(30_000), grown.int("delta"))
	exact.Add(exact, new(big.Int).Sub(perSize, big.NewInt(1))).Quo(exact, perSize)
	if paid.Cmp(exact) != 0 || paid.Cmp(big.NewInt(29e6)) < 0 || paid.Cmp(big.NewInt(32e6)) > 0 {
		t.Errorf("paid %s, want %s, about 30 USDC", paid, exact)
	}
	left := v.position(long, m, true)
	if left.FundingFeeAmountPerSize.Cmp(grown.int("value")) != 0 {
		t.Errorf("the position has paid up to %s of %s", left.FundingFeeAmountPerSize, grown.int("value"))
	}
	if e := v.has(v.fill(v.order(short, closing(m, false)), m), "PositionFeesCollected"); e.
		int("fundingFeeAmount").Sign() != 0 {
		t.Errorf("the smaller side pays %v", e.items)
	}
	v.open(short, m, false, 10_000, 2_000)
	v.refused(v.keeper, v.liquidate(addressOf(long), m.Short, m, true), "PositionShouldNotBeLiquidated")
	v.advance(250_000 * time.Second) // A quarter of the 20 000 USD, and the position has 5 000.
	v.has(v.events(v.run(v.keeper, v.liquidate(addressOf(long), m.Short, m, true))), "PositionDecrease")
	v.decodeAsKeeper()
	compareWithList(t, v.history())
}

var perSize = new(big.Int).Exp(big.NewInt(10), big.NewInt(45), nil)

func bigMax(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}
