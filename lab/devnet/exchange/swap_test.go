package exchange

import (
	"errors"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/lab/devnet/contracts"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// longestPath leads from USDC to WBTC through every market.
func (v *venue) longestPath() []common.Address {
	return []common.Address{v.market("ETH/USD").Address, v.market("WETH-USDC").Address, v.market("BTC/USD").Address}
}

// everything are the tokens of all markets, for executions that touch several.
func (v *venue) everything() Market {
	return Market{Index: v.token("WETH"), Long: v.token("WBTC"), Short: v.token("USDC")}
}

// reason is why an order, a deposit or a withdrawal was ended by an execution that succeeded, by the name of the
// contracts' error.
func (v *venue) reason(events []event, name string) string {
	v.t.Helper()
	reason, _, _ := contracts.RevertReason(v.has(events, name).items["reasonBytes"].([]byte))
	return reason
}

// swapWords are the words that no event carries and swaps depend on.
func (v *venue) withSwapWords(book *perp.Book) *perp.Book {
	v.t.Helper()
	for _, m := range v.d.Markets {
		out, err := v.client.read(v.ctx, contracts.DataStore, v.d.Contracts.DataStore, "getBytes32",
			contracts.Key("VIRTUAL_MARKET_ID", m.Address))
		if err != nil {
			v.t.Fatal(err)
		}
		word := perp.Parameter{Key: chain.Hash(contracts.Key("VIRTUAL_MARKET_ID", m.Address)), Value: out[0].([32]byte),
			Source: perp.FromCall}
		if err := perp.Apply(book, perp.ParameterSet{Parameter: word}); err != nil {
			v.t.Fatal(err)
		}
	}
	return book
}

// quotes are the present prices as a keeper has them.
func (v *venue) quotes() map[chain.Address]perp.Price {
	prices := map[chain.Address]perp.Price{}
	for token, price := range v.prices {
		prices[chain.Address(token)] = perp.Price{Min: v.number(price.Min), Max: v.number(price.Max)}
	}
	return prices
}

// TestSwapsMatchTheRule swaps at random along random paths. What the keeper's rule foretells, from the logs alone, is
// what the trader gets, and what it says of pools, impact pools and the virtual inventory is what the contracts keep:
// to the last unit.
func TestSwapsMatchTheRule(t *testing.T) {
	v := newVenue(t, nil)
	random := rand.New(rand.NewPCG(17, 19))
	trader, receiver := v.account(), v.account()
	v.must(v.client.SetUint(v.ctx, v.deployer, "UI_FEE_FACTOR", factor(3, 10_000), addressOf(receiver)))
	v.open(trader, v.market("ETH/USD"), true, 1_000_000, 100_000)
	for _, token := range v.d.Tokens {
		plenty := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(token.Decimals)+10), nil)
		v.must(v.client.Mint(v.ctx, trader, token.Address, plenty))
	}
	executed, refused := 0, map[string]int{}
	for range 40 {
		v.setPrice("WETH", 2_900_000_000+random.Int64N(50_000_000), 2_950_000_000+random.Int64N(50_000_000))
		v.setPrice("WBTC", 59_000_000_000+random.Int64N(500_000_000), 59_500_000_000+random.Int64N(500_000_000))
		v.setPrice("USDC", 998_000+random.Int64N(1_000), 999_000+random.Int64N(1_000))
		r := v.randomSwap(random)
		if random.IntN(2) == 0 {
			r.UIFeeReceiver = addressOf(receiver)
		}
		want, err := v.foretell(r)
		events := v.fill(v.order(trader, r), v.everything())
		if refusal, isRefusal := errors.AsType[perp.Refusal](err); isRefusal {
			if got := v.reason(events, "OrderCancelled"); got != refusal.Name {
				t.Errorf("cancelled for %q, the keeper says %v", got, refusal)
			}
			refused[refusal.Name]++
			continue
		}
		executed++
		v.compareHops(events, want)
		v.compareMeasures()
		v.sumsAddUp()
	}
	t.Logf("%d swaps executed, refused %v", executed, refused)
	if executed < 20 || len(refused) == 0 {
		t.Errorf("%d executed, refused %v: too one-sided a sample", executed, refused)
	}
}

// randomSwap is along one to three markets, from a dollar to twenty million, sometimes with a minimum that is out of
// reach.
func (v *venue) randomSwap(random *rand.Rand) OrderRequest {
	path := v.longestPath()
	path = [][]common.Address{path, path[:1], path[:2], path[2:], path[1:]}[random.IntN(5)]
	tokens := []common.Address{v.token("WETH"), v.token("USDC")}
	if path[0] == v.market("BTC/USD").Address {
		tokens[0] = v.token("WBTC")
	}
	r := OrderRequest{Type: MarketSwap, Collateral: tokens[random.IntN(2)], SwapPath: path}
	value := usd([]int64{1, 1_000, 100_000, 2_000_000, 20_000_000}[random.IntN(5)] * (random.Int64N(3) + 1))
	r.CollateralAmount = value.Quo(value, v.prices[r.Collateral].Max)
	if random.IntN(8) == 0 {
		r.MinOutput = coins(1_000_000_000)
	}
	return r
}

// foretell is the keeper's own answer to what a swap order will do.
func (v *venue) foretell(r OrderRequest) (perp.Swapped, error) {
	v.t.Helper()
	s := perp.Swap{
		TokenIn: chain.Address(r.Collateral), AmountIn: v.number(r.CollateralAmount),
		MinOutput:     v.number(orZero(r.MinOutput)),
		UIFeeReceiver: chain.Address(r.UIFeeReceiver),
	}
	for _, m := range r.SwapPath {
		s.Path = append(s.Path, chain.Address(m))
	}
	return s.Execute(v.withSwapWords(v.fold()), v.quotes())
}

func (v *venue) compareHops(events []event, want perp.Swapped) {
	v.t.Helper()
	infos := slices.DeleteFunc(slices.Clone(events), func(e event) bool { return e.name != "SwapInfo" })
	if len(infos) != len(want.Hops) {
		v.t.Fatalf("%d hops in %v, the keeper says %d", len(infos), names(events), len(want.Hops))
	}
	for i, hop := range want.Hops {
		for item, number := range map[string]string{
			"amountOut": hop.AmountOut.String(), "amountInAfterFees": hop.AmountInAfterFees.String(),
			"priceImpactUsd":           hop.PriceImpactUsd.String(),
			"priceImpactAmount":        hop.PriceImpactAmount.String(),
			"tokenInPriceImpactAmount": hop.TokenInPriceImpactAmount.String(),
		} {
			if got := infos[i].int(item).String(); got != number {
				v.t.Errorf("hop %d: %s is %s, the keeper says %s", i, item, got, number)
			}
		}
	}
}

// compareMeasures holds the keeper's fold against the DataStore.
func (v *venue) compareMeasures() {
	v.t.Helper()
	book := v.fold()
	folded := func(m perp.Measure, scope common.Hash, token common.Address, isLong bool) string {
		value, _ := book.Get(perp.MarketValueKey(m, chain.Hash(scope), chain.Address(token), isLong)).(perp.MarketValue)
		return value.Value.String()
	}
	stored := func(name string, args ...any) string {
		value, err := v.client.Uint(v.ctx, name, args...)
		if err != nil {
			v.t.Fatal(err)
		}
		return value.String()
	}
	for _, m := range v.d.Markets {
		for _, token := range []common.Address{m.Long, m.Short} {
			scope := common.BytesToHash(m.Address[:])
			if got, want := folded(perp.PoolAmount, scope, token, false),
				stored("POOL_AMOUNT", m.Address, token); got != want {
				v.t.Errorf("pool of %s folded as %s, stored as %s", m.Name, got, want)
			}
			if got, want := folded(perp.SwapImpactPoolAmount, scope, token, false),
				stored("SWAP_IMPACT_POOL_AMOUNT", m.Address, token); got != want {
				v.t.Errorf("impact pool of %s folded as %s, stored as %s", m.Name, got, want)
			}
		}
	}
	id := virtualMarketID(v.market("WETH-USDC"))
	for _, isLong := range []bool{true, false} {
		want := stored("VIRTUAL_INVENTORY_FOR_SWAPS", id, isLong)
		if got := folded(perp.VirtualInventoryForSwaps, id, common.Address{}, isLong); got != want || want == "0" {
			v.t.Errorf("virtual inventory folded as %s, stored as %s", got, want)
		}
	}
}

// TestSwapOrders: a market swap below its minimum is cancelled, a limit swap frozen, and only keepers of frozen orders
// may execute one at all.
func TestSwapOrders(t *testing.T) {
	v := newVenue(t, nil)
	trader, all := v.account(), v.everything()
	swap := OrderRequest{
		Type: MarketSwap, Collateral: v.token("USDC"), CollateralAmount: big.NewInt(6_000e6), SwapPath: v.longestPath(),
		MinOutput: big.NewInt(9_900_000),
	}
	before := v.balance(v.token("WBTC"), addressOf(trader))
	v.has(v.fill(v.order(trader, swap), all), "OrderExecuted")
	got := new(big.Int).Sub(v.balance(v.token("WBTC"), addressOf(trader)), before)
	if got.Cmp(swap.MinOutput) < 0 || got.Cmp(big.NewInt(10_000_000)) > 0 {
		t.Errorf("6000 USD bought %s of WBTC, want a little less than 0.1", got)
	}

	swap.MinOutput = big.NewInt(10_000_001)
	before = v.balance(v.token("USDC"), addressOf(trader))
	if reason := v.reason(v.fill(v.order(trader, swap), all),
		"OrderCancelled"); reason != "InsufficientSwapOutputAmount" {
		t.Errorf("cancelled for %q", reason)
	}
	if v.balance(v.token("USDC"), addressOf(trader)).Cmp(before) != 0 {
		t.Error("the tokens were not returned")
	}
	swap.Type = LimitSwap
	order := v.order(trader, swap)
	execute := func() call { return v.executeOrder(order, v.reports(all, v.now())) }
	v.refused(v.keeper, execute(), "InvalidKeeperForFrozenOrder")
	if reason := v.reason(v.events(v.run(v.freezer, execute())),
		"OrderFrozen"); reason != "InsufficientSwapOutputAmount" {
		t.Errorf("frozen for %q", reason)
	}
	v.refused(v.freezer, execute(), "InsufficientSwapOutputAmount")
	v.setPrice("WBTC", 59_500_000_000, 59_500_000_000)
	v.has(v.events(v.run(v.freezer, execute())), "OrderExecuted")

	swap.Type, swap.MinOutput, swap.SwapPath = MarketSwap, nil, []common.Address{v.longestPath()[0], v.longestPath()[0]}
	if reason := v.reason(v.fill(v.order(trader, swap), all),
		"OrderCancelled"); reason != "DuplicatedMarketInSwapPath" {
		t.Errorf("cancelled for %q", reason)
	}
	swap.SwapPath = v.longestPath()[2:]
	swap.Collateral, swap.CollateralAmount = v.token("WETH"), coins(1)
	if reason := v.reason(v.fill(v.order(trader, swap), all), "OrderCancelled"); reason != "InvalidTokenIn" {
		t.Errorf("cancelled for %q", reason)
	}
	v.sumsAddUp()
}
