package exchange

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// TestGas measures what each entry point uses; the figures of the package comment come from here (run with -v).
func TestGas(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("ETH/USD"), v.account()
	report := func(name string, receipt *types.Receipt, want string) {
		t.Helper()
		t.Logf("%-40s %8d gas, %2d logs", name, receipt.GasUsed, len(receipt.Logs))
		if want != "" {
			v.has(v.events(receipt), want)
		} else if receipt.Status != types.ReceiptStatusFailed {
			t.Errorf("%s did not revert", name)
		}
	}
	create := v.must(v.client.CreateOrder(v.ctx, trader, trade(m, MarketIncrease, true)))
	report("createOrder, increase", create, "OrderCreated")
	order, _ := v.client.RequestKey(create, "OrderCreated")
	report("executeOrder, open", v.run(v.keeper, v.executeOrder(order, v.reports(m, v.now()))), "PositionIncrease")
	report("executeOrder, lost race", v.run(v.keeper, v.executeOrder(order, v.reports(m, v.now()))), "")
	report("executeOrder, no role", v.run(trader, v.executeOrder(order, v.reports(m, v.now()))), "")
	order = v.order(trader, trade(m, MarketIncrease, true))
	report("executeOrder, grow", v.run(v.keeper, v.executeOrder(order, v.reports(m, v.now()))), "PositionIncrease")
	request := closing(m, true)
	order = v.order(trader, request)
	report("executeOrder, shrink", v.run(v.keeper, v.executeOrder(order, v.reports(m, v.now()))), "PositionDecrease")

	request.Type, request.TriggerPrice, request.AutoCancel = LimitDecrease, USD30(4_000_000_000, 18), true
	create = v.must(v.client.CreateOrder(v.ctx, trader, request))
	report("createOrder, take-profit", create, "OrderCreated")
	order, _ = v.client.RequestKey(create, "OrderCreated")
	report("executeOrder, trigger not reached", v.run(v.keeper, v.executeOrder(order, v.reports(m, v.now()))), "")
	for range 5 {
		v.order(trader, request)
	}
	request.Type, request.AutoCancel = MarketDecrease, false
	order = v.order(trader, request)
	report("executeOrder, close and 6 auto-cancels", v.run(v.keeper, v.executeOrder(order, v.reports(m, v.now()))),
		"OrderExecuted")

	account := addressOf(trader)
	v.open(trader, m, true, 90_000, 2_000)
	report("executeLiquidation, healthy", v.run(v.keeper, v.liquidate(account, m.Short, m, true)), "")
	v.setPrice("WETH", 2_964_000_000, 2_964_000_000)
	report("executeLiquidation", v.run(v.keeper, v.liquidate(account, m.Short, m, true)), "PositionDecrease")
	report("executeLiquidation, lost race", v.run(v.keeper, v.liquidate(account, m.Short, m, true)), "")
	v.setPrice("WETH", 3_000_000_000, 3_000_000_000)
	v.open(trader, m, true, 90_000, 2_000)
	v.setPrice("WETH", 2_900_000_000, 2_900_000_000)
	report("executeLiquidation, insolvent", v.run(v.keeper, v.liquidate(account, m.Short, m, true)), "InsolventClose")

	limit := trade(m, LimitIncrease, true)
	limit.TriggerPrice, limit.AcceptablePrice = USD30(3_000_000_000, 18), big.NewInt(1)
	order = v.order(trader, limit)
	report("executeOrder, frozen", v.run(v.keeper, v.executeOrder(order, v.reports(m, v.now()))), "OrderFrozen")
	report("cancelOrder", v.must(v.client.CancelOrder(v.ctx, trader, order)), "OrderCancelled")
	limit.Type = MarketIncrease
	order = v.order(trader, limit)
	report("executeOrder, cancelled", v.run(v.keeper, v.executeOrder(order, v.reports(m, v.now()))), "OrderCancelled")

	deposit := v.must(v.client.CreateDeposit(v.ctx, trader,
		DepositRequest{Market: m, LongAmount: coins(1), ShortAmount: big.NewInt(3_000e6)}))
	report("createDeposit", deposit, "DepositCreated")
	report("executeDeposit", v.run(v.keeper, v.executeDeposit(v.deposit(deposit), v.reports(m, v.now()))),
		"DepositExecuted")
	withdrawal := v.must(v.client.CreateWithdrawal(v.ctx, trader,
		WithdrawalRequest{Market: m, MarketTokens: coins(1_000)}))
	report("createWithdrawal", withdrawal, "WithdrawalCreated")
	report("executeWithdrawal", v.run(v.keeper, v.executeWithdrawal(v.withdrawal(withdrawal), v.reports(m, v.now()))),
		"WithdrawalExecuted")

	v.liquidityGas(report)
}

// liquidityGas measures shifts, GLVs and deleveraging, each with the second of two keepers that send the same.
func (v *venue) liquidityGas(report func(name string, receipt *types.Receipt, want string)) {
	v.t.Helper()
	glv, eth, sol := v.d.Glvs[0], v.market("ETH/USD"), v.market("SOL/USD")
	provider := v.provider(eth, 20_000)
	race := func(name, want string, c call) {
		v.t.Helper()
		first, second := v.race(c)
		report(name, first, want)
		report(name+", lost race", second, "")
	}
	created := func(name string, receipt *types.Receipt) common.Hash {
		v.t.Helper()
		report("create "+name, receipt, name+"Created")
		return v.requestKey(receipt, name+"Created")
	}
	shift := created("Shift",
		v.must(v.client.CreateShift(v.ctx, provider, ShiftRequest{From: eth, To: sol, MarketTokens: coins(1_000)})))
	race("executeShift", "ShiftExecuted", v.executeShift(shift, v.reportsOf(eth, sol)))
	byTokens := GlvDepositRequest{Glv: glv, Market: eth, ShortAmount: big.NewInt(5_000e6), LongAmount: coins(1)}
	deposit := created("GlvDeposit", v.must(v.client.CreateGlvDeposit(v.ctx, provider, byTokens)))
	race("executeGlvDeposit", "GlvDepositExecuted", v.executeGlvDeposit(deposit))
	move := GlvShiftRequest{Glv: glv, From: eth, To: sol, MarketTokens: coins(1_000)}
	moved := created("GlvShift", v.must(v.client.CreateGlvShift(v.ctx, v.keeper, move)))
	race("executeGlvShift", "GlvShiftExecuted", v.executeGlvShift(moved))
	withdrawal := created("GlvWithdrawal", v.must(v.client.CreateGlvWithdrawal(v.ctx, provider, GlvWithdrawalRequest{
		Glv: glv, Market: eth, GlvTokens: coins(1_000),
	})))
	race("executeGlvWithdrawal", "GlvWithdrawalExecuted", v.executeGlvWithdrawal(withdrawal))

	trader := v.account()
	v.open(trader, sol, true, 600_000, 60_000)
	v.setPrice("SOL", 156_000_000, 156_000_000)
	report("updateAdlState", v.run(v.keeper, v.updateAdl(sol, true)), "AdlStateUpdated")
	race("executeAdl", "PositionDecrease", v.executeAdl(addressOf(trader), sol, true, usd(400_000)))
}
