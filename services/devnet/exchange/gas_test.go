package exchange

import (
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
}
