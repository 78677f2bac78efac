package gmx

import (
	"perpkeeper/pkg/perp"
)

var orderEvents = []eventKind{
	{"OrderCreated", 2, ofOwner, decodeOrderCreated},
	{"OrderUpdated", 2, ofOwner, decodeOrderUpdated},
	{"OrderExecuted", 2, ofOwner, decodeOrderExecuted},
	{"OrderCancelled", 2, ofOwner, orderStopped(perp.Cancelled)},
	{"OrderFrozen", 2, ofOwner, orderStopped(perp.Frozen)},
	{"OrderSizeDeltaAutoUpdated", 1, ofKey, decodeSizeDeltaAutoUpdated},
	{"OrderCollateralDeltaAmountAutoUpdated", 1, ofKey, decodeCollateralDeltaAutoUpdated},
	{"InitializeOrderUpdatedAtTime", 0, ofKey, decodeOrderUpdatedAt},
}

func decodeOrderCreated(r *reader) {
	r.emit(perp.OrderCreated{Order: perp.Order{
		Key:                          r.hash("key"),
		Account:                      r.address("account"),
		Receiver:                     r.address("receiver"),
		CallbackContract:             r.address("callbackContract"),
		UIFeeReceiver:                r.address("uiFeeReceiver"),
		Market:                       r.address("market"),
		InitialCollateralToken:       r.address("initialCollateralToken"),
		CancellationReceiver:         r.address("cancellationReceiver"),
		SwapPath:                     r.addresses("swapPath"),
		OrderType:                    r.orderType(),
		DecreasePositionSwapType:     r.uint("decreasePositionSwapType"),
		SizeDeltaUsd:                 r.uint("sizeDeltaUsd"),
		InitialCollateralDeltaAmount: r.uint("initialCollateralDeltaAmount"),
		TriggerPrice:                 r.uint("triggerPrice"),
		AcceptablePrice:              r.uint("acceptablePrice"),
		ExecutionFee:                 r.uint("executionFee"),
		CallbackGasLimit:             r.uint("callbackGasLimit"),
		MinOutputAmount:              r.uint("minOutputAmount"),
		UpdatedAtTime:                r.uint("updatedAtTime"),
		ValidFromTime:                r.uint("validFromTime"),
		SrcChainID:                   r.uint("srcChainId"),
		IsLong:                       r.bool("isLong"),
		ShouldUnwrapNativeToken:      r.bool("shouldUnwrapNativeToken"),
		AutoCancel:                   r.bool("autoCancel"),
		DataList:                     r.hashes("dataList"),
		Stamp:                        r.stamp,
	}})
}

func decodeOrderUpdated(r *reader) {
	r.emit(perp.OrderChanged{
		Key:             r.hash("key"),
		SizeDeltaUsd:    r.uint("sizeDeltaUsd"),
		AcceptablePrice: r.uint("acceptablePrice"),
		TriggerPrice:    r.uint("triggerPrice"),
		MinOutputAmount: r.uint("minOutputAmount"),
		UpdatedAtTime:   r.uint("updatedAtTime"),
		ValidFromTime:   r.uint("validFromTime"),
		AutoCancel:      r.bool("autoCancel"),
		DataList:        r.hashes("dataList"),
		Stamp:           r.stamp,
	})
}

func decodeOrderExecuted(r *reader) {
	r.emit(perp.OrderEnded{Key: r.hash("key"), Status: perp.Executed, SecondaryOrderType: r.uint("secondaryOrderType"),
		Stamp: r.stamp})
}

func orderStopped(s perp.Status) func(*reader) {
	return func(r *reader) {
		r.emit(perp.OrderEnded{Key: r.hash("key"), Status: s, ReasonBytes: r.bytes("reasonBytes"),
			Reason: r.text("reason"), Stamp: r.stamp})
	}
}

func decodeSizeDeltaAutoUpdated(r *reader) {
	next := r.uint("nextSizeDeltaUsd")
	r.emit(perp.OrderResized{Key: r.hash("key"), NextSizeDeltaUsd: &next, Stamp: r.stamp})
}

func decodeCollateralDeltaAutoUpdated(r *reader) {
	next := r.uint("nextCollateralDeltaAmount")
	r.emit(perp.OrderResized{Key: r.hash("key"), NextCollateralDelta: &next, Stamp: r.stamp})
}

func decodeOrderUpdatedAt(r *reader) {
	r.emit(perp.OrderTimeInitialized{Key: r.hash("key"), UpdatedAtTime: r.uint("updatedAtTime"), Stamp: r.stamp})
}
