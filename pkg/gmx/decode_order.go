package gmx

import (
	"perpkeeper/pkg/chain"
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

// What v2.2 added to an order: v2.1's have no other receiver of refunds, no start, no end with their position, and are
// of this chain.
var (
	orderDrift = drift{v21: "updatedAtBlock isFrozen",
		v22: "cancellationReceiver validFromTime srcChainId autoCancel dataList"}
	updateDrift = drift{v22: "validFromTime autoCancel dataList"}
)

func decodeOrderCreated(r *reader) {
	o := perp.Order{
		Key:                          r.hash("key"),
		Account:                      r.address("account"),
		Receiver:                     r.address("receiver"),
		CallbackContract:             r.address("callbackContract"),
		UIFeeReceiver:                r.address("uiFeeReceiver"),
		Market:                       r.address("market"),
		InitialCollateralToken:       r.address("initialCollateralToken"),
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
		IsLong:                       r.bool("isLong"),
		ShouldUnwrapNativeToken:      r.bool("shouldUnwrapNativeToken"),
		DataList:                     []chain.Hash{},
		Stamp:                        r.stamp,
	}
	if r.isV21(orderDrift) {
		readOrderV21(r)
	} else {
		o.CancellationReceiver = r.address("cancellationReceiver")
		o.ValidFromTime, o.SrcChainID = r.uint("validFromTime"), r.uint("srcChainId")
		o.AutoCancel, o.DataList = r.bool("autoCancel"), r.hashes("dataList")
	}
	r.emit(perp.OrderCreated{Order: o})
}

// readOrderV21 reads the items of an order that v2.1 alone has. The block is beside its time, which decides.
func readOrderV21(r *reader) {
	r.uint("updatedAtBlock")
	if r.bool("isFrozen") {
		r.failf("item %q: an order cannot be created frozen", "isFrozen")
	}
}

func decodeOrderUpdated(r *reader) {
	changed := perp.OrderChanged{
		Key:             r.hash("key"),
		SizeDeltaUsd:    r.uint("sizeDeltaUsd"),
		AcceptablePrice: r.uint("acceptablePrice"),
		TriggerPrice:    r.uint("triggerPrice"),
		MinOutputAmount: r.uint("minOutputAmount"),
		UpdatedAtTime:   r.uint("updatedAtTime"),
		Stamp:           r.stamp,
	}
	if !r.isV21(updateDrift) {
		validFrom, autoCancel := r.uint("validFromTime"), r.bool("autoCancel")
		changed.ValidFromTime, changed.AutoCancel, changed.DataList = &validFrom, &autoCancel, r.hashes("dataList")
	}
	r.emit(changed)
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
