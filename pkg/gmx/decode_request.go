package gmx

import (
	"strings"

	"perpkeeper/pkg/perp"
)

// requestEvents are those of deposits, withdrawals and shifts. A GLV shift belongs to no account: the exchange itself
// asks for it.
var requestEvents = func() (events []eventKind) {
	for kind, items := range map[perp.RequestKind]requestItems{
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

// requestItems are the items of a request's creation: those both versions have, those of either alone.
type requestItems struct{ both, v21, v22 shape }

// In v2.1 a request named no receiver of UI fees, no other chain and no data. GLV withdrawals and shifts came with
// v2.2.
var (
	depositItems = requestItems{
		both: shape{
			addresses:    "account receiver callbackContract market initialLongToken initialShortToken",
			addressLists: "longTokenSwapPath shortTokenSwapPath",
			uints: "initialLongTokenAmount initialShortTokenAmount minMarketTokens updatedAtTime " +
				"executionFee callbackGasLimit depositType",
			bools:  "shouldUnwrapNativeToken",
			hashes: "key",
		},
		v21: shape{uints: "updatedAtBlock"},
		v22: shape{addresses: "uiFeeReceiver", uints: "srcChainId", hashLists: "dataList"},
	}
	withdrawalItems = requestItems{
		both: shape{
			addresses:    "account receiver callbackContract market",
			addressLists: "longTokenSwapPath shortTokenSwapPath",
			uints: "marketTokenAmount minLongTokenAmount minShortTokenAmount updatedAtTime executionFee " +
				"callbackGasLimit withdrawalType",
			bools:  "shouldUnwrapNativeToken",
			hashes: "key",
		},
		v21: shape{uints: "updatedAtBlock"},
		v22: shape{addresses: "uiFeeReceiver", uints: "srcChainId", hashLists: "dataList"},
	}
	shiftItems = requestItems{
		both: shape{
			addresses: "account receiver callbackContract fromMarket toMarket",
			uints:     "marketTokenAmount minMarketTokens updatedAtTime executionFee callbackGasLimit",
			hashes:    "key",
		},
		v22: shape{addresses: "uiFeeReceiver", uints: "srcChainId", hashLists: "dataList"},
	}
	glvDepositItems = requestItems{
		both: shape{
			addresses:    "account receiver callbackContract market glv initialLongToken initialShortToken",
			addressLists: "longTokenSwapPath shortTokenSwapPath",
			uints: "initialLongTokenAmount initialShortTokenAmount minGlvTokens updatedAtTime executionFee " +
				"callbackGasLimit",
			bools:  "shouldUnwrapNativeToken",
			hashes: "key",
		},
		v21: shape{uints: "updatedAtBlock"},
		v22: shape{addresses: "uiFeeReceiver", uints: "marketTokenAmount srcChainId", bools: "isMarketTokenDeposit",
			hashLists: "dataList"},
	}
	glvWithdrawalItems = requestItems{both: shape{
		addresses:    "account receiver callbackContract market glv uiFeeReceiver",
		addressLists: "longTokenSwapPath shortTokenSwapPath",
		uints: "glvTokenAmount minLongTokenAmount minShortTokenAmount updatedAtTime executionFee " +
			"callbackGasLimit srcChainId",
		bools:     "shouldUnwrapNativeToken",
		hashes:    "key",
		hashLists: "dataList",
	}}
	glvShiftItems = requestItems{both: shape{
		addresses: "fromMarket toMarket glv",
		uints:     "marketTokenAmount minMarketTokens updatedAtTime",
		hashes:    "key",
	}}
)

func (i requestItems) check(r *reader) {
	r.require(i.both)
	if r.isV21(drift{i.v21.names(), i.v22.names()}) {
		r.require(i.v21)
	} else {
		r.require(i.v22)
	}
}

func requestCreated(k perp.RequestKind, items requestItems) func(*reader) {
	market := "market"
	if k == perp.Shift || k == perp.GlvShift {
		market = "fromMarket"
	}
	return func(r *reader) {
		items.check(r)
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
