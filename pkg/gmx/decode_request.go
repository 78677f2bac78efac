package gmx

import "perpkeeper/pkg/perp"

// requestEvents are those of deposits, withdrawals and shifts. A GLV shift belongs to no account: the exchange itself asks for it.
var requestEvents = []eventKind{
	{"DepositCreated", 2, ofOwner, requestCreated(perp.Deposit, depositItems)},
	{"DepositExecuted", 2, ofOwner, requestExecuted(perp.Deposit)},
	{"DepositCancelled", 2, ofOwner, requestCancelled(perp.Deposit)},
	{"WithdrawalCreated", 2, ofOwner, requestCreated(perp.Withdrawal, withdrawalItems)},
	{"WithdrawalExecuted", 2, ofOwner, requestExecuted(perp.Withdrawal)},
	{"WithdrawalCancelled", 2, ofOwner, requestCancelled(perp.Withdrawal)},
	{"ShiftCreated", 2, ofOwner, requestCreated(perp.Shift, shiftItems)},
	{"ShiftExecuted", 2, ofOwner, requestExecuted(perp.Shift)},
	{"ShiftCancelled", 2, ofOwner, requestCancelled(perp.Shift)},
	{"GlvDepositCreated", 2, ofOwner, requestCreated(perp.GlvDeposit, glvDepositItems)},
	{"GlvDepositExecuted", 2, ofOwner, requestExecuted(perp.GlvDeposit)},
	{"GlvDepositCancelled", 2, ofOwner, requestCancelled(perp.GlvDeposit)},
	{"GlvWithdrawalCreated", 2, ofOwner, requestCreated(perp.GlvWithdrawal, glvWithdrawalItems)},
	{"GlvWithdrawalExecuted", 2, ofOwner, requestExecuted(perp.GlvWithdrawal)},
	{"GlvWithdrawalCancelled", 2, ofOwner, requestCancelled(perp.GlvWithdrawal)},
	{"GlvShiftCreated", 1, global, requestCreated(perp.GlvShift, glvShiftItems)},
	{"GlvShiftExecuted", 1, global, requestExecuted(perp.GlvShift)},
	{"GlvShiftCancelled", 1, global, requestCancelled(perp.GlvShift)},
}

var (
	depositItems = shape{
		addresses:    "account receiver callbackContract market initialLongToken initialShortToken uiFeeReceiver",
		addressLists: "longTokenSwapPath shortTokenSwapPath",
		uints: "initialLongTokenAmount initialShortTokenAmount minMarketTokens updatedAtTime executionFee callbackGasLimit depositType " +
			"srcChainId",
		bools:     "shouldUnwrapNativeToken",
		hashes:    "key",
		hashLists: "dataList",
	}
	withdrawalItems = shape{
		addresses:    "account receiver callbackContract market uiFeeReceiver",
		addressLists: "longTokenSwapPath shortTokenSwapPath",
		uints: "marketTokenAmount minLongTokenAmount minShortTokenAmount updatedAtTime executionFee callbackGasLimit withdrawalType " +
			"srcChainId",
		bools:     "shouldUnwrapNativeToken",
		hashes:    "key",
		hashLists: "dataList",
	}
	shiftItems = shape{
		addresses: "account receiver callbackContract fromMarket toMarket uiFeeReceiver",
		uints:     "marketTokenAmount minMarketTokens updatedAtTime executionFee callbackGasLimit srcChainId",
		hashes:    "key",
		hashLists: "dataList",
	}
	glvDepositItems = shape{
		addresses:    "account receiver callbackContract market glv initialLongToken initialShortToken uiFeeReceiver",
		addressLists: "longTokenSwapPath shortTokenSwapPath",
		uints: "initialLongTokenAmount initialShortTokenAmount minGlvTokens updatedAtTime executionFee callbackGasLimit marketTokenAmount " +
			"srcChainId",
		bools:     "shouldUnwrapNativeToken isMarketTokenDeposit",
		hashes:    "key",
		hashLists: "dataList",
	}
	glvWithdrawalItems = shape{
		addresses:    "account receiver callbackContract market glv uiFeeReceiver",
		addressLists: "longTokenSwapPath shortTokenSwapPath",
		uints:        "glvTokenAmount minLongTokenAmount minShortTokenAmount updatedAtTime executionFee callbackGasLimit srcChainId",
		bools:        "shouldUnwrapNativeToken",
		hashes:       "key",
		hashLists:    "dataList",
	}
	glvShiftItems = shape{
		addresses: "fromMarket toMarket glv",
		uints:     "marketTokenAmount minMarketTokens updatedAtTime",
		hashes:    "key",
	}
)

func requestCreated(k perp.RequestKind, s shape) func(*reader) []perp.Event {
	market := "market"
	if k == perp.Shift || k == perp.GlvShift {
		market = "fromMarket"
	}
	return func(r *reader) []perp.Event {
		r.require(s)
		request := perp.Request{
			Kind: k, Key: r.hash("key"), Market: r.address(market), UpdatedAtTime: r.uint("updatedAtTime"), Fields: r.items, Stamp: r.stamp,
		}
		if k != perp.GlvShift {
			request.Account = r.address("account")
		}
		return []perp.Event{perp.RequestCreated{Request: request}}
	}
}

func requestExecuted(k perp.RequestKind) func(*reader) []perp.Event {
	return func(r *reader) []perp.Event {
		return []perp.Event{perp.RequestEnded{Kind: k, Key: r.hash("key"), Status: perp.Executed, Stamp: r.stamp}}
	}
}

func requestCancelled(k perp.RequestKind) func(*reader) []perp.Event {
	return func(r *reader) []perp.Event {
		return []perp.Event{perp.RequestEnded{
			Kind: k, Key: r.hash("key"), Status: perp.Cancelled, Reason: r.text("reason"), ReasonBytes: r.bytes("reasonBytes"), Stamp: r.stamp,
		}}
	}
}
