package recordings

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/perp"
)

// story writes the recording of an invented history that meets what short histories of the original contracts do not:
// freezing and reviving, auto-cancel, deleveraging, insolvent closes, second lives, shifts and GLV requests with inner
// requests, swaps without a market.
type story struct {
	out   bytes.Buffer
	block uint64
	log   uint32
	tx    uint32
}

var (
	storyEmitter = chain.Address{0xe0}
	storyStart   = uint64(1_800_000_000)

	alice, bob       = chain.Address{0xa1}, chain.Address{0xb0}
	ethMarket        = chain.Address{0xe1}
	btcMarket        = chain.Address{0xb1}
	weth, wbtc, usdc = chain.Address{0x11}, chain.Address{0x12}, chain.Address{0x13}
	vault            = chain.Address{0x61}
)

func (s *story) nextBlock() { s.block, s.log, s.tx = s.block+1, 0, 0 }

// happen records events as one transaction of the present block.
func (s *story) happen(events ...chain.Log) {
	for _, l := range events {
		line := map[string]any{
			"blockNumber": s.block, "blockHash": word("block", s.block), "timestamp": storyStart + s.block,
			"txHash": word("tx", s.block*100+uint64(s.tx)), "txIndex": s.tx, "logIndex": s.log,
			"address": l.Address, "topics": l.Topics, "data": perp.Bytes(l.Data),
		}
		text, err := json.Marshal(line)
		if err != nil {
			panic(err)
		}
		s.out.Write(append(text, '\n'))
		s.log++
	}
	s.tx++
}

func (s *story) now() chain.Uint { return chain.U64(storyStart + s.block) }

func word(what string, n uint64) chain.Hash {
	return chain.Keccak256(fmt.Appendf(nil, "%s %d", what, n))
}

func event(name string, given perp.Fields) chain.Log { return gmxtest.Event(storyEmitter, name, given) }

func usd(n uint64) chain.Uint { return chain.U64(n).Mul(chain.Pow10(30)) }

func (s *story) orderCreated(key chain.Hash, account chain.Address, kind perp.OrderType, more perp.Fields) chain.Log {
	given := perp.Fields{
		"key": key, "account": account, "receiver": account, "market": ethMarket, "initialCollateralToken": usdc,
		"swapPath":  []chain.Address{},
		"orderType": chain.U64(uint64(kind)), "sizeDeltaUsd": usd(1000), "updatedAtTime": s.now(),
		"validFromTime": chain.U64(0),
		"executionFee":  chain.U64(700), "isLong": true, "autoCancel": false, "dataList": []chain.Hash{},
	}
	maps.Copy(given, more)
	return event("OrderCreated", given)
}

func (s *story) increase(order chain.Hash, account chain.Address, size, delta uint64, impact int64) chain.Log {
	return event("PositionIncrease", perp.Fields{
		"account": account, "market": ethMarket, "collateralToken": usdc, "isLong": true, "orderKey": order,
		"sizeInUsd":    usd(size),
		"sizeInTokens": chain.U64(size), "collateralAmount": chain.U64(size / 10), "sizeDeltaUsd": usd(delta),
		"pendingPriceImpactAmount": chain.I64(impact), "increasedAtTime": s.now(),
	})
}

// decrease is the fees of a decrease and itself.
func (s *story) decrease(order chain.Hash, account chain.Address, kind perp.OrderType, size, delta uint64) []chain.Log {
	return gmxtest.Decrease(storyEmitter, perp.Fields{
		"account": account, "market": ethMarket, "collateralToken": usdc, "isLong": true, "orderKey": order,
		"sizeInUsd":    usd(size),
		"sizeInTokens": chain.U64(size), "collateralAmount": chain.U64(size / 10), "sizeDeltaUsd": usd(delta),
		"orderType": chain.U64(uint64(kind)), "decreasedAtTime": s.now(),
	})
}

func executed(key chain.Hash, account chain.Address, secondary uint64) chain.Log {
	return event("OrderExecuted",
		perp.Fields{"key": key, "account": account, "secondaryOrderType": chain.U64(secondary)})
}

func request(kind string, key chain.Hash, account chain.Address, given perp.Fields) chain.Log {
	if given == nil {
		given = perp.Fields{}
	}
	given["key"], given["account"] = key, account
	return event(kind, given)
}

// tellStory returns the recording.
func tellStory() []byte {
	s := &story{block: 100}
	s.deployment()
	s.ordersOfAlice()
	s.endsOfPositions()
	s.liquidity()
	s.vaults()
	return s.out.Bytes()
}

func (s *story) deployment() {
	base := perp.BaseKey("POSITION_FEE_FACTOR")
	args := append(make([]byte, 12), ethMarket[:]...)
	s.happen(event("MarketCreated", perp.Fields{"marketToken": ethMarket, "indexToken": weth, "longToken": weth,
		"shortToken": usdc}))
	s.happen(event("MarketCreated", perp.Fields{"marketToken": btcMarket, "indexToken": wbtc, "longToken": wbtc,
		"shortToken": usdc}))
	s.happen(
		event("SetUint", perp.Fields{"baseKey": base, "data": perp.Bytes(args), "value": chain.Pow10(27)}),
		event("SetInt", perp.Fields{"baseKey": perp.BaseKey("VIRTUAL_INVENTORY_FOR_POSITIONS"),
			"data": perp.Bytes(make([]byte, 32)), "value": chain.I64(-3)}),
		event("SetBool", perp.Fields{"baseKey": word("key", 1)}),
		event("SetAddress", perp.Fields{"baseKey": word("key", 2)}),
		event("SetBytes32", perp.Fields{"baseKey": word("key", 3), "data": perp.Bytes{}}),
		event("InitOracleProviderForToken", perp.Fields{"token": weth}),
		event("SetOracleProviderForToken", perp.Fields{"token": weth}),
		event("SetOracleProviderForFeeHandlerToken", perp.Fields{"": chain.Address{}}),
	)
	s.happen(event("SignalPendingAction", nil), event("SignalGrantRole", nil))
	s.happen(event("GlvCreated", perp.Fields{"glvToken": vault}),
		event("GlvMarketAdded", perp.Fields{"glv": vault, "market": ethMarket}))
	s.nextBlock()
}

// ordersOfAlice: a limit order is frozen, revived and executed; a stop-loss waits; a swap of no market is cancelled by
// its owner.
func (s *story) ordersOfAlice() {
	limit, stop, swap := word("order", 1), word("order", 2), word("order", 3)
	s.happen(s.orderCreated(limit, alice, perp.LimitIncrease, nil))
	s.happen(s.orderCreated(swap, alice, perp.LimitSwap,
		perp.Fields{"market": chain.Address{}, "swapPath": []chain.Address{ethMarket}}))
	s.nextBlock()
	s.happen(event("OrderFrozen", perp.Fields{"key": limit, "account": alice, "reason": "",
		"reasonBytes": perp.Bytes{0xe0, 0x9a, 0xd0, 0xe9}}))
	s.nextBlock()
	s.happen(event("OrderUpdated", perp.Fields{
		"key": limit, "account": alice, "sizeDeltaUsd": usd(900), "updatedAtTime": s.now(), "autoCancel": false,
		"dataList": []chain.Hash{word("data", 1)},
	}))
	s.happen(event("Funding", perp.Fields{"market": chain.Address{}}),
		event("Borrowing", perp.Fields{"market": chain.Address{}}),
		event("OrderCancelled", perp.Fields{"key": swap, "account": alice, "reason": "USER_INITIATED_CANCEL",
			"reasonBytes": perp.Bytes{}}))
	s.nextBlock()
	s.happen(event("OraclePriceUpdate", perp.Fields{"token": weth}), event("Funding", perp.Fields{"market": ethMarket}),
		event("Borrowing", perp.Fields{"market": ethMarket}),
		event("CumulativeBorrowingFactorUpdated", perp.Fields{"market": ethMarket}),
		event("OpenInterestUpdated", perp.Fields{"market": ethMarket, "collateralToken": usdc, "nextValue": usd(900)}),
		event("OpenInterestInTokensUpdated", perp.Fields{"market": ethMarket, "collateralToken": usdc,
			"nextValue": chain.U64(900)}),
		event("VirtualPositionInventoryUpdated", perp.Fields{"token": weth}),
		event("PositionFeesCollected", perp.Fields{"market": ethMarket, "orderKey": limit, "isIncrease": true}),
		s.increase(limit, alice, 900, 900, -1000), executed(limit, alice, 0), event("KeeperExecutionFee", nil))
	s.happen(s.orderCreated(stop, alice, perp.StopLossDecrease,
		perp.Fields{"autoCancel": true, "triggerPrice": chain.U64(5)}))
	s.nextBlock()
}

// endsOfPositions: Alice takes a third off and is liquidated, insolvent, which cancels her stop; she comes back and is
// deleveraged.
func (s *story) endsOfPositions() {
	partial, liquidation, again, adl, stop := word("order", 4), word("order", 5), word("order", 6), word("order", 7),
		word("order", 2)
	s.happen(s.orderCreated(partial, alice, perp.LimitDecrease, perp.Fields{"sizeDeltaUsd": usd(400)}))
	s.nextBlock()
	cut := []chain.Log{event("OrderSizeDeltaAutoUpdated", perp.Fields{"key": partial, "nextSizeDeltaUsd": usd(300)}),
		event("OrderCollateralDeltaAmountAutoUpdated",
			perp.Fields{"key": partial, "nextCollateralDeltaAmount": chain.U64(0)})}
	cut = append(cut, s.decrease(partial, alice, perp.LimitDecrease, 600, 300)...)
	s.happen(append(cut, executed(partial, alice, 0))...)
	s.nextBlock()
	end := []chain.Log{s.orderCreated(liquidation, alice, perp.Liquidation,
		perp.Fields{"sizeDeltaUsd": usd(600), "executionFee": chain.U64(0)}),
		event("PositionFeesInfo", perp.Fields{"market": ethMarket, "orderKey": liquidation}),
		event("InsolventClose", perp.Fields{"orderKey": liquidation, "step": "pnl"})}
	end = append(end, s.decrease(liquidation, alice, perp.Liquidation, 0, 600)...)
	s.happen(append(end, executed(liquidation, alice, 0),
		event("OrderCancelled", perp.Fields{"key": stop, "account": alice, "reason": "AUTO_CANCEL",
			"reasonBytes": perp.Bytes{}}))...)
	s.nextBlock()
	s.happen(s.orderCreated(again, alice, perp.MarketIncrease, nil))
	s.happen(s.increase(again, alice, 1000, 1000, 50), executed(again, alice, 0))
	s.nextBlock()
	s.happen(event("AdlStateUpdated", nil))
	deleverage := []chain.Log{s.orderCreated(adl, alice, perp.MarketDecrease, perp.Fields{"sizeDeltaUsd": usd(300)})}
	deleverage = append(deleverage, s.decrease(adl, alice, perp.MarketDecrease, 700, 300)...)
	s.happen(append(deleverage, executed(adl, alice, 1))...)
	s.nextBlock()
}

// liquidity: a deposit, a withdrawal that is cancelled, a shift with its inner withdrawal and deposit, one that fails
// and leaves nothing.
func (s *story) liquidity() {
	deposit, withdrawal, shift, failed := word("request", 1), word("request", 2), word("request", 3), word("request", 4)
	pools := perp.Fields{"fromMarket": ethMarket, "toMarket": btcMarket}
	s.happen(request("DepositCreated", deposit, bob, perp.Fields{"market": ethMarket}),
		event("ExcessiveExecutionFee", nil))
	s.happen(request("WithdrawalCreated", withdrawal, bob, perp.Fields{"market": ethMarket}))
	s.happen(request("ShiftCreated", shift, bob, pools))
	s.happen(request("ShiftCreated", failed, bob, perp.Fields{"fromMarket": btcMarket, "toMarket": ethMarket}))
	s.nextBlock()
	s.happen(event("MarketPoolValueInfo", nil),
		event("PoolAmountUpdated", perp.Fields{"market": ethMarket, "token": weth}),
		event("SwapImpactPoolAmountUpdated", perp.Fields{"market": ethMarket, "token": usdc}),
		event("SwapFeesCollected", nil),
		event("VirtualSwapInventoryUpdated", nil), request("DepositExecuted", deposit, bob, nil),
		event("MarketPoolValueUpdated", nil))
	s.happen(request("WithdrawalCancelled", withdrawal, bob,
		perp.Fields{"reason": "", "reasonBytes": perp.Bytes{0xf7, 0x55, 0x00, 0x01}}))
	s.happen(s.inner("WithdrawalCreated", 31, bob, ethMarket), s.inner("WithdrawalExecuted", 31, bob, ethMarket),
		s.inner("DepositCreated", 32, bob, btcMarket), s.inner("DepositExecuted", 32, bob, btcMarket),
		request("ShiftExecuted", shift, bob, nil))
	s.happen(request("ShiftCancelled", failed, bob, perp.Fields{"reason": "too\x00little"}))
	s.nextBlock()
}

// vaults: GLV requests of every kind and end. The account of the inner requests is the vault.
func (s *story) vaults() {
	deposit, refused, withdrawal, shift := word("request", 5), word("request", 6), word("request", 7),
		word("request", 8)
	terms := perp.Fields{"market": ethMarket, "glv": vault}
	s.happen(request("GlvDepositCreated", deposit, bob, perp.Fields{"market": ethMarket, "glv": vault}))
	s.happen(request("GlvDepositCreated", refused, bob, perp.Fields{"market": btcMarket, "glv": vault}))
	s.happen(request("GlvWithdrawalCreated", withdrawal, bob, terms))
	s.happen(event("GlvShiftCreated", perp.Fields{"key": shift, "glv": vault, "fromMarket": ethMarket,
		"toMarket": btcMarket, "updatedAtTime": s.now()}))
	s.nextBlock()
	s.happen(s.inner("DepositCreated", 51, vault, ethMarket), s.inner("DepositExecuted", 51, vault, ethMarket),
		request("GlvDepositExecuted", deposit, bob, nil), event("GlvValueUpdated", perp.Fields{"glv": vault}))
	s.happen(request("GlvDepositCancelled", refused, bob, nil))
	s.happen(s.inner("WithdrawalCreated", 71, vault, ethMarket), s.inner("WithdrawalExecuted", 71, vault, ethMarket),
		request("GlvWithdrawalExecuted", withdrawal, bob, nil))
	s.happen(s.inner("ShiftCreated", 81, vault, ethMarket), s.inner("WithdrawalCreated", 82, vault, ethMarket),
		s.inner("WithdrawalExecuted", 82, vault, ethMarket), s.inner("DepositCreated", 83, vault, btcMarket),
		s.inner("DepositExecuted", 83, vault, btcMarket), s.inner("ShiftExecuted", 81, vault, ethMarket),
		event("GlvShiftExecuted", perp.Fields{"key": shift}))
	s.happen(event("SetPositionImpactPoolDistributionRate", perp.Fields{"market": ethMarket}),
		event("PositionImpactPoolDistributed", perp.Fields{"market": ethMarket}),
		event("TotalPendingImpactAmountUpdated", perp.Fields{"market": ethMarket}))
}

// inner is an event of a request that lives inside the execution of another.
func (s *story) inner(kind string, n uint64, account, market chain.Address) chain.Log {
	given := perp.Fields{"key": word("request", n), "account": account}
	for _, e := range gmxtest.Events() {
		for _, name := range []string{"market", "fromMarket"} {
			if _, has := e.Items[name]; has && e.Name == kind {
				given[name] = market
			}
		}
	}
	return event(kind, given)
}
