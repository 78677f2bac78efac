package exchange

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/lab/devnet/contracts"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

func (v *venue) updateAdl(m Market, isLong bool) call {
	data := pack(contracts.AdlHandler, "updateAdlState", m.Address, isLong, v.reports(m, v.now()))
	return call{to: &v.d.Contracts.AdlHandler, data: data, gas: keeperGas}
}

func (v *venue) executeAdl(account common.Address, m Market, isLong bool, size *big.Int) call {
	data := pack(contracts.AdlHandler, "executeAdl", account, m.Address, m.Short, isLong, size, v.reports(m, v.now()))
	return call{to: &v.d.Contracts.AdlHandler, data: data, gas: keeperGas}
}

// TestAdl: a side that has gained too much is deleveraged, by as much as is needed and no more, and only while the
// venue says so.
func TestAdl(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("SOL/USD"), v.account()
	account := addressOf(trader)
	v.open(trader, m, true, 400_000, 40_000)
	protect := closing(m, true)
	protect.Type, protect.SizeUSD, protect.TriggerPrice, protect.AutoCancel = LimitDecrease, usd(400_000),
		USD30(300_000_000, 9), true
	v.order(trader, protect)
	v.refused(v.keeper, v.executeAdl(account, m, true, usd(1)), "AdlNotEnabled")
	v.refused(trader, v.updateAdl(m, true), "Unauthorized")

	v.setPrice("SOL", 156_000_000, 156_000_000) // 16 000 USD gained, 0.8 % of a pool of 2 000 000; the limit is 0.5 %
	e := v.has(v.events(v.run(v.keeper, v.updateAdl(m, true))), "AdlStateUpdated")
	if e.items["shouldEnableAdl"] != true || e.items["isLong"] != true || e.int("maxPnlFactor").
		Cmp(factor(5, 1_000)) != 0 {
		t.Errorf("the update says %v", e.items)
	}
	v.refused(v.keeper, v.executeAdl(account, m, true, usd(400_001)), "InvalidSizeDeltaForAdl")
	v.refused(v.keeper, v.executeAdl(account, m, true, usd(400_000)), "PnlOvercorrected")
	v.refused(v.keeper, v.executeAdl(account, m, false, usd(1)), "AdlNotEnabled")

	stand := v.deleveraging(v.fold(), m, true)
	size := new(big.Int).Quo(new(big.Int).Mul(usd(400_000), stand.Excess().Big()), stand.PnlUsd.Uint().Big())
	first, second := v.run(v.keeper, v.executeAdl(account, m, true, size)), v.executeAdl(account, m, true, size)
	events := v.events(first)
	if e := v.has(events, "OrderExecuted"); e.int("secondaryOrderType").Int64() != 1 {
		t.Errorf("the order says %v", e.items)
	}
	if e := v.has(events, "OrderCreated"); e.int("orderType").Int64() != int64(MarketDecrease) {
		t.Errorf("the order is %v", e.items)
	}
	v.refused(v.keeper, second, "AdlNotRequired")
	e = v.has(v.events(v.run(v.keeper, v.updateAdl(m, true))), "AdlStateUpdated")
	floor := new(big.Int).Add(factor(2, 1_000), factor(5, 10_000))
	if e.items["shouldEnableAdl"] != false || e.int("pnlToPoolFactor").Cmp(floor) > 0 {
		t.Errorf("after the deleveraging the update says %v", e.items)
	}
	v.refused(v.keeper, v.executeAdl(account, m, true, usd(1)), "AdlNotEnabled")
	v.sumsAddUp()
}

// deleveraging is how a side stands by the keeper's state, at the present prices.
func (v *venue) deleveraging(book *perp.Book, m Market, isLong bool) perp.Deleveraging {
	v.t.Helper()
	c := perp.Circumstances{Rows: book, Prices: map[chain.Address]perp.Price{}, Time: v.now()}
	for token, price := range v.prices {
		c.Prices[chain.Address(token)] = perp.Price{Min: v.number(price.Min), Max: v.number(price.Max)}
	}
	terms, err := perp.NewView(c).Terms(chain.Address(m.Address))
	if err != nil {
		v.t.Fatal(err)
	}
	stand, err := terms.Deleveraging(book, isLong)
	if err != nil {
		v.t.Fatal(err)
	}
	return stand
}

// marketPrices has the layout of the contracts' Market.Prices.
type marketPrices struct{ IndexTokenPrice, LongTokenPrice, ShortTokenPrice Price }

// TestAdlVerdictMatchesTheContracts: whether a side has gained too much, and by how much, follows from the logs alone.
func TestAdlVerdictMatchesTheContracts(t *testing.T) {
	v := newVenue(t, nil)
	random := rand.New(rand.NewPCG(17, 3))
	m := v.market("SOL/USD")
	v.open(v.account(), m, true, 700_000, 70_000)
	v.open(v.account(), m, false, 600_000, 70_000)
	book := v.fold()
	exceeded := 0
	for range 60 {
		low := 142_000_000 + random.Int64N(16_000_000)
		v.setPrice("SOL", low, low+random.Int64N(300_000))
		v.setPrice("WETH", 2_900_000_000+random.Int64N(50_000_000), 2_950_000_000+random.Int64N(50_000_000))
		v.setPrice("USDC", 990_000+random.Int64N(10_000), 1_000_000+random.Int64N(10_000))
		for _, isLong := range []bool{true, false} {
			stand := v.deleveraging(book, m, isLong)
			at := v.d.Contracts.Reader
			out, err := v.client.read(v.ctx, contracts.Reader, at, "getAdlState", v.d.Contracts.DataStore, m.Address,
				isLong, marketPrices{
					IndexTokenPrice: v.prices[m.Index], LongTokenPrice: v.prices[m.Long],
					ShortTokenPrice: v.prices[m.Short],
				})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := fmt.Sprint(out[1:]...),
				fmt.Sprint(stand.Exceeded(), stand.Factor, stand.Limit); got != want {
				t.Errorf("the contract says %s, the keeper %s", got, want)
			}
			if stand.Exceeded() {
				exceeded++
			}
		}
	}
	if exceeded < 20 || exceeded > 100 {
		t.Errorf("%d of 120 are exceeded: too one-sided a sample", exceeded)
	}
}
