package exchange

import (
	"crypto/ecdsa"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"perpkeeper/lab/devnet/contracts"
)

// trade is an order that would execute at the test's prices.
func trade(m Market, t OrderType, isLong bool) OrderRequest {
	return OrderRequest{
		Market: m.Address, Collateral: m.Short, Type: t, IsLong: isLong, SizeUSD: usd(10_000),
		CollateralAmount: big.NewInt(1_000e6),
	}
}

// closing is a market order that closes 10 000 USD.
func closing(m Market, isLong bool) OrderRequest {
	return OrderRequest{Market: m.Address, Collateral: m.Short, Type: MarketDecrease, IsLong: isLong,
		SizeUSD: usd(10_000)}
}

func TestMarketOrderLife(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("ETH/USD"), v.account()
	events := v.open(trader, m, true, 90_000, 2_000)
	want := []string{
		"OraclePriceUpdate", "OraclePriceUpdate", "Funding", "CollateralSumUpdated", "OpenInterestUpdated",
		"OpenInterestInTokensUpdated",
		"PoolAmountUpdated", "VirtualSwapInventoryUpdated", "PositionFeesCollected", "PositionIncrease",
		"OrderExecuted", "KeeperExecutionFee", "ExecutionFeeRefund",
	}
	if got := names(events); !slices.Equal(got, want) {
		t.Errorf("events of an increase: %v, want %v", got, want)
	}
	fee := big.NewInt(63e6) // 0.07 % of 90 000 USD.
	position := v.position(trader, m, true)
	if position.CollateralAmount.Cmp(new(big.Int).Sub(big.NewInt(2_000e6), fee)) != 0 ||
		position.SizeInTokens.Cmp(coins(30)) != 0 {
		t.Errorf("position %+v, want 1937 USDC and 30 WETH", position)
	}

	before := v.balance(m.Long, addressOf(trader))
	v.setPrice("WETH", 3_030_000_000, 3_030_000_000)
	request := closing(m, true)
	request.SizeUSD = usd(90_000)
	events = v.fill(v.order(trader, request), m)
	if e := v.has(events, "PositionDecrease"); e.int("basePnlUsd").Cmp(usd(900)) != 0 || e.int("sizeInUsd").
		Sign() != 0 {
		t.Errorf("close at +1 %%: %v", e.items)
	}
	profit := new(big.Int).Sub(v.balance(m.Long, addressOf(trader)), before)
	if wanted := new(big.Int).Quo(usd(900), v.prices[m.Long].Max); profit.Cmp(wanted) != 0 {
		t.Errorf("profit of %s WETH units, want %s", profit, wanted)
	}
	if _, open, err := v.client.Position(v.ctx, addressOf(trader), m.Address, m.Short, true); err != nil || open {
		t.Errorf("the position is still open (%v)", err)
	}
}

// TestTriggers walks every waiting order over its trigger, on both sides of the spread.
func TestTriggers(t *testing.T) {
	v := newVenue(t, nil)
	m := v.market("ETH/USD")
	const trigger = 3_000_000_000
	for _, c := range []struct {
		kind   OrderType
		isLong bool
		// The spread [min, max] in micro-dollars that just reaches the trigger, and the one that just misses it.
		reached, missed [2]int64
	}{
		{LimitIncrease, true, [2]int64{trigger - 9, trigger}, [2]int64{trigger - 9, trigger + 1}},
		{LimitIncrease, false, [2]int64{trigger, trigger + 9}, [2]int64{trigger - 1, trigger + 9}},
		{StopIncrease, true, [2]int64{trigger - 9, trigger}, [2]int64{trigger - 9, trigger - 1}},
		{StopIncrease, false, [2]int64{trigger, trigger + 9}, [2]int64{trigger + 1, trigger + 9}},
		{LimitDecrease, true, [2]int64{trigger, trigger + 9}, [2]int64{trigger - 1, trigger + 9}},
		{LimitDecrease, false, [2]int64{trigger - 9, trigger}, [2]int64{trigger - 9, trigger + 1}},
		{StopLossDecrease, true, [2]int64{trigger, trigger + 9}, [2]int64{trigger + 1, trigger + 9}},
		{StopLossDecrease, false, [2]int64{trigger - 9, trigger}, [2]int64{trigger - 9, trigger - 1}},
	} {
		t.Run(fmt.Sprintf("%d long=%v", c.kind, c.isLong), func(t *testing.T) {
			v := v.in(t)
			trader := v.account()
			v.setPrice("WETH", trigger, trigger)
			if !c.kind.Increases() {
				v.open(trader, m, c.isLong, 10_000, 1_000)
			}
			request := trade(m, c.kind, c.isLong)
			request.TriggerPrice = USD30(trigger, 18)
			if !c.kind.Increases() {
				request.CollateralAmount = nil
			}
			order := v.order(trader, request)
			v.setPrice("WETH", c.missed[0], c.missed[1])
			v.refused(v.keeper, v.executeOrder(order, v.reports(m, v.now())), "InvalidOrderPrices")
			v.setPrice("WETH", c.reached[0], c.reached[1])
			v.has(v.fill(order, m), "OrderExecuted")
		})
	}
}

func TestMarketOrderThatCannotFillIsCancelled(t *testing.T) {
	v := newVenue(t, nil)
	m := v.market("ETH/USD")
	for name, change := range map[string]func(*OrderRequest){
		"OrderNotFulfillableAtAcceptablePrice": func(r *OrderRequest) { r.AcceptablePrice = USD30(2_999_000_000, 18) },
		"InsufficientCollateralAmount":         func(r *OrderRequest) { r.CollateralAmount = big.NewInt(1) },
		"LiquidatablePosition":                 func(r *OrderRequest) { r.CollateralAmount = big.NewInt(90e6) },
		"MinPositionSize":                      func(r *OrderRequest) { r.SizeUSD = big.NewInt(1e18) },
		"InsufficientReserve": func(r *OrderRequest) {
			r.SizeUSD, r.CollateralAmount = usd(46_000_000),
				big.NewInt(900_000e6)
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := v.in(t)
			trader := v.account()
			before := v.balance(m.Short, addressOf(trader))
			request := trade(m, MarketIncrease, true)
			change(&request)
			order := v.order(trader, request)
			cancelled := v.has(v.fill(order, m), "OrderCancelled")
			if reason, _, _ := contracts.RevertReason(cancelled.items["reasonBytes"].([]byte)); reason != name ||
				cancelled.items["reason"] != "" {
				t.Errorf("cancelled for %q, text %q; want %s", reason, cancelled.items["reason"], name)
			}
			if after := v.balance(m.Short, addressOf(trader)); after.Cmp(before) != 0 {
				t.Errorf("%s USDC units after the refund, had %s", after, before)
			}
			v.refused(v.keeper, v.executeOrder(order, v.reports(m, v.now())), "EmptyOrder")
		})
	}
}

func TestFrozenOrder(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("ETH/USD"), v.account()
	request := trade(m, LimitIncrease, true)
	request.TriggerPrice, request.AcceptablePrice = USD30(3_000_000_000, 18), USD30(2_990_000_000, 18)
	order := v.order(trader, request)
	frozen := v.has(v.fill(order, m), "OrderFrozen")
	if reason, _, _ := contracts.RevertReason(
		frozen.items["reasonBytes"].([]byte)); reason != "OrderNotFulfillableAtAcceptablePrice" {
		t.Errorf("frozen for %q", reason)
	}
	execute := func() call { return v.executeOrder(order, v.reports(m, v.now())) }
	v.refused(v.keeper, execute(), "InvalidKeeperForFrozenOrder")
	// A frozen order that fails again reverts: it is neither cancelled nor frozen twice.
	v.refused(v.freezer, execute(), "OrderNotFulfillableAtAcceptablePrice")
	v.setPrice("WETH", 2_985_000_000, 2_985_000_000)
	if name, _ := v.simulate(v.freezer, execute()); name != "" {
		t.Errorf("the frozen order keeper got %s", name)
	}

	// An update without a fee is refused, because freezing spent it; one with a fee thaws the order.
	update := request
	update.AcceptablePrice = nil
	v.refusedAtPrice(trader, v.d.updateCall(order, update), "InsufficientExecutionFee")
	update.ExecutionFee = defaultExecutionFee
	receipt := v.must(v.client.UpdateOrder(v.ctx, trader, order, update))
	v.has(v.events(receipt), "OrderUpdated")
	v.has(v.fill(order, m), "OrderExecuted")
}

func TestAutoCancel(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("ETH/USD"), v.account()
	v.open(trader, m, true, 10_000, 1_000)
	protective := func(kind OrderType, trigger int64, auto bool) common.Hash {
		request := closing(m, true)
		request.Type, request.TriggerPrice, request.AutoCancel = kind, USD30(trigger, 18), auto
		return v.order(trader, request)
	}
	takeProfit := protective(LimitDecrease, 3_100_000_000, true)
	stopLoss := protective(StopLossDecrease, 2_900_000_000, true)
	dropped := protective(StopLossDecrease, 2_800_000_000, true)
	independent := closing(m, true)
	independent.Type, independent.TriggerPrice = StopLossDecrease, USD30(2_800_000_000, 18)
	v.must(v.client.UpdateOrder(v.ctx, trader, dropped, independent))
	survivor := protective(StopLossDecrease, 2_850_000_000, false)

	v.setPrice("WETH", 3_100_000_000, 3_100_000_000)
	events := v.fill(takeProfit, m)
	i := slices.Index(names(events), "OrderExecuted")
	if i < 0 || !slices.Equal(names(events[i:]), []string{
		"OrderExecuted", "KeeperExecutionFee", "ExecutionFeeRefund", "OrderCancelled", "KeeperExecutionFee",
		"ExecutionFeeRefund",
	}) {
		t.Fatalf("events: %v", names(events))
	}
	if e := events[i+3]; e.topics[2] != stopLoss || e.items["reason"] != "AUTO_CANCEL" ||
		len(e.items["reasonBytes"].([]byte)) != 0 {
		t.Errorf("auto-cancelled %s with %v, want %s", e.topics[2], e.items, stopLoss)
	}
	for _, order := range []common.Hash{dropped, survivor} {
		v.refused(v.keeper, v.executeOrder(order, v.reports(m, v.now())), "InvalidOrderPrices")
	}
}

// TestLowGas: with the venue's words in force a low gas limit reverts and never ends the order. Without them an
// execution that runs out of gas ends it at its user's cost, although a call with as much gas says that it fails.
func TestLowGas(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("ETH/USD"), v.account()
	order := v.order(trader, trade(m, MarketIncrease, true))
	execute := v.executeOrder(order, v.reports(m, v.now()))
	execute.gas = 3_400_000
	v.refused(v.keeper, execute, "InsufficientExecutionGas")
	for gas := uint64(400_000); gas <= 4_000_000; gas += 400_000 {
		execute = v.executeOrder(order, v.reports(m, v.now()))
		execute.gas = gas
		receipt := v.run(v.keeper, execute)
		if executes := gas > 3_600_000; (receipt.Status == types.ReceiptStatusSuccessful) != executes {
			t.Errorf("status %d with %d gas", receipt.Status, gas)
		} else if executes {
			v.has(v.events(receipt), "OrderExecuted")
		}
	}

	for _, name := range []string{"INCREASE_ORDER_GAS_LIMIT", "MIN_ADDITIONAL_GAS_FOR_EXECUTION"} {
		v.must(v.client.SetUint(v.ctx, v.deployer, name, new(big.Int)))
	}
	v.must(v.client.SetUint(v.ctx, v.deployer, "MIN_HANDLE_EXECUTION_ERROR_GAS", big.NewInt(700_000)))
	order = v.order(trader, trade(m, MarketIncrease, true))
	execute = v.executeOrder(order, v.reports(m, v.now()))
	execute.gas = 1_900_000
	cancelled := v.has(v.events(v.run(v.keeper, execute)), "OrderCancelled")
	if reason := cancelled.items["reasonBytes"].([]byte); len(reason) != 0 {
		t.Errorf("cancelled for %x", reason)
	}
}

func (v *venue) position(key *ecdsa.PrivateKey, m Market, isLong bool) Position {
	v.t.Helper()
	p, open, err := v.client.Position(v.ctx, addressOf(key), m.Address, m.Short, isLong)
	if err != nil || !open {
		v.t.Fatalf("no position (%v)", err)
	}
	return p
}

func (v *venue) balance(token, account common.Address) *big.Int {
	v.t.Helper()
	balance, err := v.client.Balance(v.ctx, token, account)
	if err != nil {
		v.t.Fatal(err)
	}
	return balance
}
