package gmx

import "perpkeeper/pkg/perp"

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

func decodeOrderCreated(r *reader) []perp.Event {
	return []perp.Event{perp.OrderCreated{Order: perp.Order{
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
	}}}
}

func decodeOrderUpdated(r *reader) []perp.Event {
	autoCancel := r.bool("autoCancel")
	return []perp.Event{perp.OrderChanged{
		Key:             r.hash("key"),
		SizeDeltaUsd:    r.uint("sizeDeltaUsd"),
		AcceptablePrice: r.uint("acceptablePrice"),
		TriggerPrice:    r.uint("triggerPrice"),
		MinOutputAmount: r.uint("minOutputAmount"),
		UpdatedAtTime:   r.uint("updatedAtTime"),
		ValidFromTime:   r.uint("validFromTime"),
		AutoCancel:      &autoCancel,
		DataList:        r.hashes("dataList"),
		Stamp:           r.stamp,
	}}
}

func decodeOrderExecuted(r *reader) []perp.Event {
	return []perp.Event{perp.OrderEnded{
		Key: r.hash("key"), Status: perp.Executed, SecondaryOrderType: r.uint("secondaryOrderType"), Stamp: r.stamp,
	}}
}

func orderStopped(s perp.Status) func(*reader) []perp.Event {
	return func(r *reader) []perp.Event {
		return []perp.Event{perp.OrderEnded{
			Key: r.hash("key"), Status: s, Reason: r.text("reason"), ReasonBytes: r.bytes("reasonBytes"), Stamp: r.stamp,
		}}
	}
}

func decodeSizeDeltaAutoUpdated(r *reader) []perp.Event {
	next := r.uint("nextSizeDeltaUsd")
	return []perp.Event{perp.OrderResized{Key: r.hash("key"), NextSizeDeltaUsd: &next, Stamp: r.stamp}}
}

func decodeCollateralDeltaAutoUpdated(r *reader) []perp.Event {
	next := r.uint("nextCollateralDeltaAmount")
	return []perp.Event{perp.OrderResized{Key: r.hash("key"), NextCollateralDelta: &next, Stamp: r.stamp}}
}

func decodeOrderUpdatedAt(r *reader) []perp.Event {
	return []perp.Event{perp.OrderTimeInitialized{Key: r.hash("key"), UpdatedAtTime: r.uint("updatedAtTime"), Stamp: r.stamp}}
}
