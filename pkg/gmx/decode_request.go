package gmx

import (
	"strings"

	"perpkeeper/pkg/perp"
)

// requestEvents are those of deposits, withdrawals and shifts. A GLV shift belongs to no account: the exchange itself
// asks for it.
var requestEvents = func() (events []eventKind) {
	for kind, items := range map[perp.RequestKind]shape{
		perp.Deposit: depositItems, perp.Withdrawal: withdrawalItems, perp.Shift: shiftItems,
		perp.GlvDeposit: glvDepositItems, perp.GlvWithdrawal: glvWithdrawalItems, perp.GlvShift: glvShiftItems,
	} {
		topics, scope, name := 2, ofOwner, eventPrefix(kind)
		if kind == perp.GlvShift {
			topics, scope = 1, global
		}
		events = append(events, eventKind{name + "Created", topics, scope, requestCreated(kind, items)},
			eventKind{name + "Executed", topics, scope, requestExecuted(kind)},
			eventKind{name + "Cancelled", topics, scope, requestCancelled(kind)})
	}
	return events
}()

// The items of each request's creation.
var (
	depositItems = shape{
		addresses: "account receiver callbackContract uiFeeReceiver market initialLongToken " +
			"initialShortToken",
		addressLists: "longTokenSwapPath shortTokenSwapPath",
		uints: "initialLongTokenAmount initialShortTokenAmount minMarketTokens updatedAtTime " +
			"executionFee callbackGasLimit depositType srcChainId",
		bools:     "shouldUnwrapNativeToken",
		hashes:    "key",
		hashLists: "dataList",
	}
	withdrawalItems = shape{
		addresses:    "account receiver callbackContract uiFeeReceiver market",
		addressLists: "longTokenSwapPath shortTokenSwapPath",
		uints: "marketTokenAmount minLongTokenAmount minShortTokenAmount updatedAtTime executionFee " +
			"callbackGasLimit withdrawalType srcChainId",
		bools:     "shouldUnwrapNativeToken",
		hashes:    "key",
		hashLists: "dataList",
	}
	shiftItems = shape{
		addresses: "account receiver callbackContract uiFeeReceiver fromMarket toMarket",
		uints:     "marketTokenAmount minMarketTokens updatedAtTime executionFee callbackGasLimit srcChainId",
		hashes:    "key",
		hashLists: "dataList",
	}
	glvDepositItems = shape{
		addresses: "account receiver callbackContract uiFeeReceiver market glv initialLongToken " +
			"initialShortToken",
		addressLists: "longTokenSwapPath shortTokenSwapPath",
		uints: "initialLongTokenAmount initialShortTokenAmount minGlvTokens updatedAtTime executionFee " +
			"callbackGasLimit marketTokenAmount srcChainId",
		bools:     "shouldUnwrapNativeToken isMarketTokenDeposit",
		hashes:    "key",
		hashLists: "dataList",
	}
	glvWithdrawalItems = shape{
		addresses:    "account receiver callbackContract market glv uiFeeReceiver",
		addressLists: "longTokenSwapPath shortTokenSwapPath",
		uints: "glvTokenAmount minLongTokenAmount minShortTokenAmount updatedAtTime executionFee " +
			"callbackGasLimit srcChainId",
		bools:     "shouldUnwrapNativeToken",
		hashes:    "key",
		hashLists: "dataList",
	}
	glvShiftItems = shape{
		addresses: "fromMarket toMarket glv",
		uints:     "marketTokenAmount minMarketTokens updatedAtTime",
		hashes:    "key",
	}
)

func requestCreated(k perp.RequestKind, items shape) func(*reader) {
	market := "market"
	if k == perp.Shift || k == perp.GlvShift {
		market = "fromMarket"
	}
	return func(r *reader) {
		r.require(items)
		request := perp.Request{
			Kind: k, Key: r.hash("key"), Market: r.address(market), UpdatedAtTime: r.uint("updatedAtTime"),
			Fields: r.fields(), Stamp: r.stamp,
		}
		if k != perp.GlvShift {
			request.Account = r.address("account")
		}
		r.emit(perp.RequestCreated{Request: request})
	}
}

func requestExecuted(k perp.RequestKind) func(*reader) {
	return func(r *reader) {
		r.emit(perp.RequestEnded{Kind: k, Key: r.hash("key"), Status: perp.Executed, Stamp: r.stamp})
	}
}

func requestCancelled(k perp.RequestKind) func(*reader) {
	return func(r *reader) {
		r.emit(perp.RequestEnded{
			Kind: k, Key: r.hash("key"), Status: perp.Cancelled, Reason: r.text("reason"),
			ReasonBytes: r.bytes("reasonBytes"), Stamp: r.stamp,
		})
	}
}

// eventPrefix is how the contracts' names begin that are about a kind of request: DepositCreated, DepositNotFound.
func eventPrefix(k perp.RequestKind) string { return strings.ToUpper(string(k[:1])) + string(k[1:]) }
