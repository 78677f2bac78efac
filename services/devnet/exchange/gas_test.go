package exchange

import (
	"math/big"
	"testing"

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
	report("executeOrder, close and 6 auto-cancels", v.run(v.keeper, v.executeOrder(order, v.reports(m, v.now()))), "OrderExecuted")

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

	deposit := v.must(v.client.CreateDeposit(v.ctx, trader, DepositRequest{Market: m, LongAmount: coins(1), ShortAmount: big.NewInt(3_000e6)}))
	report("createDeposit", deposit, "DepositCreated")
	report("executeDeposit", v.run(v.keeper, v.executeDeposit(v.deposit(deposit), v.reports(m, v.now()))), "DepositExecuted")
	withdrawal := v.must(v.client.CreateWithdrawal(v.ctx, trader, WithdrawalRequest{Market: m, MarketTokens: coins(1_000)}))
	report("createWithdrawal", withdrawal, "WithdrawalCreated")
	report("executeWithdrawal", v.run(v.keeper, v.executeWithdrawal(v.withdrawal(withdrawal), v.reports(m, v.now()))), "WithdrawalExecuted")
}
