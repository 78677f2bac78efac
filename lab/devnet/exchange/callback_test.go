package exchange

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"perpkeeper/lab/devnet/contracts"
)

// calls is how often the counter has been told something, by the name of the method.
func (v *venue) calls(method string) int {
	v.t.Helper()
	data := contracts.Get(contracts.EventEmitter).ABI.Methods["emitEventLog"].Inputs[1].Type.String()
	hash := crypto.Keccak256([]byte(fmt.Sprintf("%s(bytes32,%s,%s)", method, data, data)))
	out, err := v.client.read(v.ctx, contracts.CallbackCounter, v.d.Contracts.CallbackCounter, "calls", [4]byte(hash))
	if err != nil {
		v.t.Fatal(err)
	}
	return int(out[0].(*big.Int).Int64())
}

// TestCallbacks: the contract that a request names is told of its end, once, and gets what is left of the execution
// fee.
func TestCallbacks(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("ETH/USD"), v.account()
	counter := Callback{v.d.Contracts.CallbackCounter, 200_000}
	told := func(method string, end []event, name string) {
		t.Helper()
		v.has(end, name)
		if n := v.calls(method); n != 1 {
			t.Errorf("%s was called %d times", method, n)
		}
	}
	order := trade(m, MarketIncrease, true)
	order.Callback = counter
	executed := v.fill(v.order(trader, order), m)
	told("afterOrderExecution", executed, "OrderExecuted")
	if e := v.has(executed, "ExecutionFeeRefundCallback"); e.int("refundFeeAmount").Sign() == 0 {
		t.Error("nothing was refunded")
	}
	order.AcceptablePrice = big.NewInt(1)
	told("afterOrderCancellation", v.fill(v.order(trader, order), m), "OrderCancelled")
	order.Type, order.TriggerPrice = LimitIncrease, USD30(3_000_000_000, 18)
	told("afterOrderFrozen", v.fill(v.order(trader, order), m), "OrderFrozen")

	deposit := DepositRequest{Market: m, ShortAmount: big.NewInt(1_000e6), Callback: counter}
	withdrawal := WithdrawalRequest{Market: m, MarketTokens: coins(100), Callback: counter}
	for _, end := range []string{"Execution", "Cancellation"} {
		name := map[string]string{"Execution": "Executed", "Cancellation": "Cancelled"}[end]
		key := v.deposit(v.must(v.client.CreateDeposit(v.ctx, trader, deposit)))
		told("afterDeposit"+end, v.events(v.run(v.keeper, v.executeDeposit(key, v.reports(m, v.now())))),
			"Deposit"+name)
		key = v.withdrawal(v.must(v.client.CreateWithdrawal(v.ctx, trader, withdrawal)))
		told("afterWithdrawal"+end, v.events(v.run(v.keeper, v.executeWithdrawal(key, v.reports(m, v.now())))),
			"Withdrawal"+name)
		deposit.MinMarketTokens, withdrawal.MinLong = coins(1_000_000), coins(1_000_000)
	}
}

// TestCallbackThatBurnsItsGas costs the keeper all that the request allows, but no more, and does not stop the
// execution. A keeper who brings too little for it reverts, and the request stays.
func TestCallbackThatBurnsItsGas(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("ETH/USD"), v.account()
	request := trade(m, MarketIncrease, true)
	request.Callback = Callback{v.d.Contracts.GasBurner, 2_000_000}
	order := v.order(trader, request)
	execute := v.executeOrder(order, v.reports(m, v.now()))
	execute.gas = 5_000_000
	v.refused(v.keeper, execute, "InsufficientExecutionGas")
	execute.gas = 5_800_000
	receipt := v.run(v.keeper, execute)
	if v.has(v.events(receipt), "OrderExecuted"); receipt.GasUsed < 3_000_000 {
		t.Errorf("%d gas used: the callback did not burn its 2 000 000", receipt.GasUsed)
	}
	v.has(v.events(receipt), "ExecutionFeeRefund")

	// A saved contract is called after a liquidation, whatever the orders said.
	v.must(v.client.SaveCallback(v.ctx, trader, m.Address, v.d.Contracts.GasBurner))
	v.setPrice("WETH", 2_700_000_000, 2_700_000_000)
	liquidate := v.liquidate(addressOf(trader), m.Short, m, true)
	liquidate.gas = 2_800_000
	v.refused(v.keeper, liquidate, "InsufficientGasLeftForCallback")
	liquidate.gas = 4_500_000
	receipt = v.run(v.keeper, liquidate)
	if v.has(v.events(receipt), "PositionDecrease"); receipt.GasUsed < 2_900_000 {
		t.Errorf("%d gas used: the saved callback did not burn its 2 000 000", receipt.GasUsed)
	}
	t.Logf("liquidation with a saved callback that burns its gas: %d", receipt.GasUsed)
}

// TestAutoCancelNeedsGas: each of a position's auto-cancel orders costs whoever closes it.
func TestAutoCancelNeedsGas(t *testing.T) {
	v := newVenue(t, nil)
	m, trader := v.market("ETH/USD"), v.account()
	v.open(trader, m, true, 90_000, 2_000)
	protective := closing(m, true)
	protective.Type, protective.TriggerPrice, protective.AutoCancel = LimitDecrease, USD30(4_000_000_000, 18), true
	for range 6 {
		v.order(trader, protective)
	}
	v.refused(trader, v.d.orderCall(addressOf(trader), protective), "MaxAutoCancelOrdersExceeded")
	v.setPrice("WETH", 2_960_000_000, 2_960_000_000)
	liquidate := v.liquidate(addressOf(trader), m.Short, m, true)
	for _, gas := range []uint64{2_100_000, 3_000_000} {
		liquidate.gas = gas
		v.refused(v.keeper, liquidate, "InsufficientGasForAutoCancellation")
	}
	liquidate.gas = 6_000_000
	receipt := v.run(v.keeper, liquidate)
	cancelled := 0
	for _, e := range v.events(receipt) {
		if e.name == "OrderCancelled" && e.items["reason"] == "AUTO_CANCEL" {
			cancelled++
		}
	}
	if receipt.Status != types.ReceiptStatusSuccessful || cancelled != 6 {
		t.Errorf("status %d, %d of 6 orders cancelled", receipt.Status, cancelled)
	}
	t.Logf("liquidation with six auto-cancel orders: %d gas", receipt.GasUsed)

	protective.Callback = Callback{v.d.Contracts.GasBurner, 2_000_000}
	for range 2 {
		v.order(trader, protective)
	}
	v.refused(trader, v.d.orderCall(addressOf(trader), protective),
		"MaxTotalCallbackGasLimitForAutoCancelOrdersExceeded")
}
