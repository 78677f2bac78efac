package exchange

import (
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

func (v *venue) liquidate(trader, collateral common.Address, m Market, isLong bool) call {
	return v.executeLiquidation(trader, m.Address, collateral, isLong, v.reports(m, v.now()))
}

// LIQ-9: a liquidation is an order of its own that closes the whole position, and needs no size.
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
		"OraclePriceUpdate", "OraclePriceUpdate", "OrderCreated", "Funding", "PoolAmountUpdated",
		"VirtualSwapInventoryUpdated",
		"PoolAmountUpdated",
		"VirtualSwapInventoryUpdated", "CollateralSumUpdated",
		"OpenInterestUpdated", "OpenInterestInTokensUpdated", "PositionFeesCollected", "PositionDecrease",
		"OrderExecuted",
		"OrderCancelled", "KeeperExecutionFee", "ExecutionFeeRefund",
	}
	if got := names(events); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	created, decreased := v.has(events, "OrderCreated"), v.has(events, "PositionDecrease")
	if created.int("orderType").Int64() != 7 || decreased.int("orderType").Int64() != 7 || decreased.int("sizeInUsd").
		Sign() != 0 {
		t.Errorf("created %v, decreased %v", created.items, decreased.items)
	}
	if e := v.has(events, "OrderCancelled"); e.topics[2] != protective || e.items["reason"] != "AUTO_CANCEL" {
		t.Errorf("the stop-loss was not cancelled: %v", e.items)
	}
	// Fees: 0.05 % position fee, 0.2 % liquidation fee.
	fees := v.has(events, "PositionFeesCollected")
	if fees.int("positionFeeAmount").Cmp(big.NewInt(45e6)) != 0 || fees.int("liquidationFeeAmount").
		Cmp(big.NewInt(180e6)) != 0 {
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
		"OraclePriceUpdate", "OraclePriceUpdate", "OrderCreated", "Funding", "PoolAmountUpdated",
		"VirtualSwapInventoryUpdated",
		"PositionFeesInfo", "InsolventClose",
		"CollateralSumUpdated", "OpenInterestUpdated", "OpenInterestInTokensUpdated", "PositionFeesCollected",
		"PositionDecrease",
		"OrderExecuted",
	}
	if got := names(events); !slices.Equal(got, want) {
		t.Fatalf("events %v, want %v", got, want)
	}
	insolvent, order := v.has(events, "InsolventClose"), v.has(events, "OrderCreated")
	if insolvent.kind != "EventLog" || insolvent.items["step"] != "pnl" ||
		common.Hash(insolvent.items["orderKey"].([32]byte)) != order.topics[2] {
		t.Errorf("%s %v", insolvent.kind, insolvent.items)
	}
	// A loss of 3000 USD against 1937 USDC.
	if insolvent.int("remainingCostUsd").Cmp(usd(1_063)) != 0 || insolvent.int("basePnlUsd").Cmp(usd(-3_000)) != 0 {
		t.Errorf("%v", insolvent.items)
	}
	if fees := v.has(events, "PositionFeesCollected"); fees.int("totalCostAmount").Sign() != 0 ||
		fees.items["trader"] != (common.Address{}) {
		t.Errorf("fees of an insolvent close: %v", fees.items)
	}
	v.sumsAddUp()
}
