package exchange

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/services/devnet/contracts"
)

func (v *venue) liquidate(trader, collateral common.Address, m Market, isLong bool) call {
	return v.executeLiquidation(trader, m.Address, collateral, isLong, v.reports(m, v.now()))
}

func TestLiquidation(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("ETH/USD"), v.account()
	v.open(trader, m, true, 90_000, 2_000)
	stop := closing(m, true)
	stop.Type, stop.TriggerPrice, stop.AutoCancel = StopLossDecrease, USD30(2_000_000_000, 18), true
	protective := v.order(trader, stop)
	account := addressOf(trader)
	v.refused(v.keeper, v.liquidate(account, m.Short, m, true), "PositionShouldNotBeLiquidated")
	v.refused(v.keeper, v.liquidate(account, m.Short, m, false), "EmptyOrder")

	// 1937 USDC − 1080 loss − 45 fee = 812, below 1 % of 90 000.
	v.setPrice("WETH", 2_964_000_000, 2_964_000_000)
	before := v.balance(m.Short, account)
	first, second := v.race(v.liquidate(account, m.Short, m, true))
	if first.Status != types.ReceiptStatusSuccessful || second.Status != types.ReceiptStatusFailed {
		t.Fatalf("statuses %d and %d", first.Status, second.Status)
	}
	events := v.events(first)
	want := []string{
		"OraclePriceUpdate", "OraclePriceUpdate", "OrderCreated", "PoolAmountUpdated", "PoolAmountUpdated", "CollateralSumUpdated",
		"OpenInterestUpdated", "OpenInterestInTokensUpdated", "PositionFeesCollected", "PositionDecrease", "OrderExecuted",
		"OrderCancelled", "KeeperExecutionFee", "ExecutionFeeRefund",
	}
	if got := names(events); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	created, decreased := v.has(events, "OrderCreated"), v.has(events, "PositionDecrease")
	if created.int("orderType").Int64() != 7 || decreased.int("orderType").Int64() != 7 || decreased.int("sizeInUsd").Sign() != 0 {
		t.Errorf("created %v, decreased %v", created.items, decreased.items)
	}
	if e := v.has(events, "OrderCancelled"); e.topics[2] != protective || e.items["reason"] != "AUTO_CANCEL" {
		t.Errorf("the stop-loss was not cancelled: %v", e.items)
	}
	// Fees: 0.05 % position fee, 0.2 % liquidation fee.
	fees := v.has(events, "PositionFeesCollected")
	if fees.int("positionFeeAmount").Cmp(big.NewInt(45e6)) != 0 || fees.int("liquidationFeeAmount").Cmp(big.NewInt(180e6)) != 0 {
		t.Errorf("fees %v", fees.items)
	}
	if got := new(big.Int).Sub(v.balance(m.Short, account), before); got.Cmp(big.NewInt(632e6)) != 0 {
		t.Errorf("the trader got %s USDC units back, want 632e6", got)
	}
	v.refused(v.keeper, v.liquidate(account, m.Short, m, true), "EmptyOrder")
}

func TestInsolventClose(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("ETH/USD"), v.account()
	v.open(trader, m, true, 90_000, 2_000)
	v.setPrice("WETH", 2_900_000_000, 2_900_000_000)
	receipt := v.run(v.keeper, v.liquidate(addressOf(trader), m.Short, m, true))
	events := v.events(receipt)
	want := []string{
		"OraclePriceUpdate", "OraclePriceUpdate", "OrderCreated", "PoolAmountUpdated", "PositionFeesInfo", "InsolventClose",
		"CollateralSumUpdated", "OpenInterestUpdated", "OpenInterestInTokensUpdated", "PositionFeesCollected", "PositionDecrease",
		"OrderExecuted",
	}
	if got := names(events); !slices.Equal(got, want) {
		t.Fatalf("events %v, want %v", got, want)
	}
	insolvent, order := v.has(events, "InsolventClose"), v.has(events, "OrderCreated")
	if insolvent.kind != "EventLog" || insolvent.items["step"] != "pnl" || common.Hash(insolvent.items["orderKey"].([32]byte)) != order.topics[2] {
		t.Errorf("%s %v", insolvent.kind, insolvent.items)
	}
	// A loss of 3000 USD against 1937 USDC.
	if insolvent.int("remainingCostUsd").Cmp(usd(1_063)) != 0 || insolvent.int("basePnlUsd").Cmp(usd(-3_000)) != 0 {
		t.Errorf("%v", insolvent.items)
	}
	if fees := v.has(events, "PositionFeesCollected"); fees.int("totalCostAmount").Sign() != 0 || fees.items["trader"] != (common.Address{}) {
		t.Errorf("fees of an insolvent close: %v", fees.items)
	}
	v.sumsAddUp()
}

// TestInsolventOnFees: the loss is covered, the fees are not.
func TestInsolventOnFees(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("ETH/USD"), v.account()
	v.open(trader, m, true, 90_000, 2_000)
	v.setPrice("WETH", 2_936_000_000, 2_936_000_000) // A loss of 1920 USD leaves 17 USDC for 225 of fees.
	events := v.events(v.run(v.keeper, v.liquidate(addressOf(trader), m.Short, m, true)))
	if e := v.has(events, "InsolventClose"); e.items["step"] != "fees" || e.int("remainingCostUsd").Cmp(usd(208)) != 0 {
		t.Errorf("%v", e.items)
	}
	v.sumsAddUp()
}

// TestInsolventTraderCloseIsRefused: only a liquidation may leave costs unpaid.
func TestInsolventTraderCloseIsRefused(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("ETH/USD"), v.account()
	v.open(trader, m, true, 10_000, 200)
	v.setPrice("WETH", 2_900_000_000, 2_900_000_000)
	cancelled := v.has(v.fill(v.order(trader, closing(m, true)), m), "OrderCancelled")
	if reason, _, _ := contracts.RevertReason(cancelled.items["reasonBytes"].([]byte)); reason != "InsufficientFundsToPayForCosts" {
		t.Errorf("cancelled for %q", reason)
	}
}

func TestLiquidationNeedsPricesSinceTheLastChange(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("ETH/USD"), v.account()
	v.open(trader, m, true, 90_000, 2_000)
	increased := v.position(trader, m, true).IncreasedAtTime.Uint64()
	v.setPrice("WETH", 2_964_000_000, 2_964_000_000)
	early := v.executeLiquidation(addressOf(trader), m.Address, m.Short, true, v.reports(m, increased-1))
	v.refused(v.keeper, early, "OracleTimestampsAreSmallerThanRequired")
}

// TestThresholdIsExact: what remains is exactly the threshold at one price, and the least bit below it at the next lower one.
func TestThresholdIsExact(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("ETH/USD"), v.account()
	// 30 WETH at 3000; of 1998 USDC, 63 pay the fee of opening and 45 that of closing, which leaves 1890 − 30·(3000 − price).
	v.open(trader, m, true, 90_000, 1_998)
	for _, c := range []struct {
		name, parameter string
		value           *big.Int
		threshold       int64 // USD; 1890 − threshold is a multiple of 30.
	}{
		{"1 % of the size", "LIQUIDATION_RATIO_FACTOR", usd(1), 900},
		{"110 % of it", "LIQUIDATION_RATIO_FACTOR", factor(11, 10), 990},
		{"ratios below 100 % change nothing", "LIQUIDATION_RATIO_FACTOR", factor(1, 2), 900},
		{"a minimum above 1 %", "MIN_COLLATERAL_USD", usd(1_200), 1_200},
	} {
		v.must(v.client.SetUint(v.ctx, v.deployer, c.parameter, c.value))
		boundary := USD30((3_000-(1_890-c.threshold)/30)*1_000_000, 18)
		for _, price := range []*big.Int{boundary, new(big.Int).Sub(boundary, big.NewInt(1))} {
			v.prices[m.Index] = Price{Min: price, Max: price}
			name, args := v.simulate(v.keeper, v.liquidate(addressOf(trader), m.Short, m, true))
			healthy := price == boundary
			if healthy && (name != "PositionShouldNotBeLiquidated" || args[1].(*big.Int).Cmp(usd(c.threshold)) != 0) {
				t.Errorf("%s: at %s: %s %v, want a refusal with %d USD remaining", c.name, price, name, args, c.threshold)
			}
			if !healthy && name != "" {
				t.Errorf("%s: at %s: refused with %s %v", c.name, price, name, args)
			}
		}
	}
}

// verdict is the outcome of the liquidation rule, computed here from the documented formula alone.
type verdict struct {
	liquidatable                          bool
	remaining, minimum, minimumOnLeverage *big.Int
}

// ruleTwin is the rule of PositionRisk.sol in Go. interest are the two sides' open interest in USD, the position's included.
func ruleTwin(p Position, index, collateral Price, interest map[bool]*big.Int, terms Parameters) verdict {
	mulDiv := func(a, b *big.Int) *big.Int {
		product := new(big.Int).Mul(a, b)
		return product.Quo(product, factor(1, 1))
	}
	distance := func(a, b *big.Int) *big.Int { d := new(big.Int).Sub(a, b); return d.Abs(d) }
	own, other := interest[p.IsLong], interest[!p.IsLong]
	feeFactor := terms.PositionFeeFactorWorsened
	if distance(new(big.Int).Sub(own, p.SizeInUsd), other).Cmp(distance(own, other)) < 0 {
		feeFactor = terms.PositionFeeFactorImproved
	}
	fee := mulDiv(p.SizeInUsd, feeFactor)
	fee.Quo(fee, collateral.Min)

	pnl := new(big.Int)
	if p.IsLong {
		pnl.Mul(p.SizeInTokens, index.Min).Sub(pnl, p.SizeInUsd)
	} else {
		pnl.Mul(p.SizeInTokens, index.Max).Sub(p.SizeInUsd, pnl)
	}
	remaining := new(big.Int).Sub(p.CollateralAmount, fee)
	remaining.Mul(remaining, collateral.Min).Add(remaining, pnl)

	leverage := mulDiv(p.SizeInUsd, terms.MinCollateralFactorForLiquidation)
	required := leverage
	if terms.MinCollateralUSD.Cmp(required) > 0 {
		required = terms.MinCollateralUSD
	}
	threshold := mulDiv(required, terms.LiquidationRatioFactor)
	if threshold.Cmp(required) < 0 {
		threshold = required
	}
	return verdict{
		liquidatable: remaining.Sign() <= 0 || remaining.Cmp(threshold) < 0,
		remaining:    remaining, minimum: terms.MinCollateralUSD, minimumOnLeverage: leverage,
	}
}

// TestVerdictMatchesTheRule compares the contract's verdict with the twin's over random positions, prices and ratios, most of
// them close to the threshold.
func TestVerdictMatchesTheRule(t *testing.T) {
	v := newVenue(t, func(c *Config) { c.Parameters.MinCollateralUSD = usd(150) })
	terms := DefaultParameters()
	terms.MinCollateralUSD = usd(150)
	random := rand.New(rand.NewPCG(7, 11))
	positions := v.randomPositions(random)
	interest := v.openInterest()

	cases, liquidatable := 0, 0
	for _, ratio := range []*big.Int{new(big.Int), factor(1, 2), factor(1, 1), factor(11, 10), factor(1_234_567, 1_000_000)} {
		terms.LiquidationRatioFactor = ratio
		v.must(v.client.SetUint(v.ctx, v.deployer, "LIQUIDATION_RATIO_FACTOR", ratio))
		for range 9 {
			for _, p := range positions {
				m := v.marketAt(p.Market)
				v.randomPrices(random, p, m)
				want := ruleTwin(p, v.prices[m.Index], v.prices[p.CollateralToken], interest[p.Market], terms)
				v.compare(p, m, want)
				cases++
				if want.liquidatable {
					liquidatable++
				}
			}
		}
	}
	t.Logf("%d cases, %d liquidatable", cases, liquidatable)
	if cases < 500 || liquidatable < cases/5 || liquidatable > cases*4/5 {
		t.Errorf("%d of %d cases are liquidatable: too one-sided a sample", liquidatable, cases)
	}
}

// compare runs the liquidation as a call and checks the verdict, and the numbers that a refusal carries.
func (v *venue) compare(p Position, m Market, want verdict) {
	v.t.Helper()
	name, args := v.simulate(v.keeper, v.liquidate(p.Account, p.CollateralToken, m, p.IsLong))
	if want.liquidatable {
		if name != "" {
			v.t.Errorf("refused with %s %v, the rule says liquidatable with %s remaining", name, args, want.remaining)
		}
		return
	}
	numbers := fmt.Sprint(want.remaining, want.minimum, want.minimumOnLeverage)
	if name != "PositionShouldNotBeLiquidated" || fmt.Sprint(args[1], args[2], args[3]) != numbers {
		v.t.Errorf("got %s %v, want a refusal with %s", name, args, numbers)
	}
}

// randomPositions opens twelve positions of both sides, markets and kinds of collateral.
func (v *venue) randomPositions(random *rand.Rand) []Position {
	v.t.Helper()
	var positions []Position
	for i := range 12 {
		m, isLong := v.d.Markets[i%2], i/2%2 == 0
		collateral := m.Short
		if i >= 6 {
			collateral = m.Long
		}
		trader := v.account()
		size := random.Int64N(200_000_000_000) + 1_000_000_000 // Millionths of a dollar.
		sizeUSD := new(big.Int).Quo(new(big.Int).Mul(usd(1), big.NewInt(size)), big.NewInt(1_000_000))
		value := new(big.Int).Quo(sizeUSD, big.NewInt(random.Int64N(40)+3))
		order := v.order(trader, OrderRequest{
			Market: m.Address, Collateral: collateral, Type: MarketIncrease, IsLong: isLong, SizeUSD: sizeUSD,
			CollateralAmount: value.Quo(value.Add(value, usd(200)), v.prices[collateral].Min),
		})
		v.has(v.fill(order, m), "PositionIncrease")
		p, _, err := v.client.Position(v.ctx, addressOf(trader), m.Address, collateral, isLong)
		if err != nil {
			v.t.Fatal(err)
		}
		positions = append(positions, p)
	}
	return positions
}

// randomPrices moves the index price to where the position has between −0.5 % and 3 % of its size left, with a random spread.
func (v *venue) randomPrices(random *rand.Rand, p Position, m Market) {
	v.setPrice("USDC", 990_000+random.Int64N(10_000), 1_000_000+random.Int64N(10_000))
	entry := new(big.Int).Quo(p.SizeInUsd, p.SizeInTokens)
	lever := new(big.Int).Mul(p.CollateralAmount, v.prices[p.CollateralToken].Min)
	// In millionths of the size: the move that eats the collateral, less what is to remain of it.
	move := lever.Mul(lever, big.NewInt(1_000_000)).Quo(lever, p.SizeInUsd).Int64() - (random.Int64N(35_000) - 5_000)
	if p.IsLong {
		move = -move
	}
	price := func(move int64) *big.Int {
		moved := new(big.Int).Mul(entry, big.NewInt(1_000_000+move))
		return moved.Quo(moved, big.NewInt(1_000_000))
	}
	v.prices[m.Index] = Price{Min: price(move - random.Int64N(500)), Max: price(move + random.Int64N(500))}
}

func (v *venue) marketAt(address common.Address) Market {
	return v.d.Markets[slices.IndexFunc(v.d.Markets, func(m Market) bool { return m.Address == address })]
}

// openInterest reads both sides' open interest of every market.
func (v *venue) openInterest() map[common.Address]map[bool]*big.Int {
	v.t.Helper()
	all := map[common.Address]map[bool]*big.Int{}
	for _, m := range v.d.Markets {
		all[m.Address] = map[bool]*big.Int{}
		for _, isLong := range []bool{true, false} {
			sum := new(big.Int)
			for _, collateral := range []common.Address{m.Long, m.Short} {
				part, err := v.client.Uint(v.ctx, "OPEN_INTEREST", m.Address, collateral, isLong)
				if err != nil {
					v.t.Fatal(err)
				}
				sum.Add(sum, part)
			}
			all[m.Address][isLong] = sum
		}
	}
	return all
}
