// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {Order} from "./Order.sol";

/// @title The events in the life of an order.
library OrderEvents {
    using EventUtils for EventUtils.EventLogData;

    function created(EventEmitter emitter, bytes32 key, Order.Props memory order) public {
        EventUtils.EventLogData memory e = data(order);
        e.putBytes32("key", key);
        emitter.emitEventLog2("OrderCreated", key, EventUtils.topic(order.account), e);
    }

    /// All that is to be said of an order but its key.
    function data(Order.Props memory order) internal pure returns (EventUtils.EventLogData memory e) {
        e = EventUtils.create();
        e.put("account", order.account);
        e.put("receiver", order.receiver);
        e.put("callbackContract", order.callbackContract);
        e.put("uiFeeReceiver", order.uiFeeReceiver);
        e.put("market", order.market);
        e.put("initialCollateralToken", order.initialCollateralToken);
        e.put("cancellationReceiver", order.cancellationReceiver);
        e.setPath("swapPath", order.swapPath);
        e.putUint("orderType", uint256(order.orderType));
        e.putUint("decreasePositionSwapType", uint256(order.decreasePositionSwapType));
        e.putUint("sizeDeltaUsd", order.sizeDeltaUsd);
        e.putUint("initialCollateralDeltaAmount", order.initialCollateralDeltaAmount);
        e.putUint("triggerPrice", order.triggerPrice);
        e.putUint("acceptablePrice", order.acceptablePrice);
        e.putUint("executionFee", order.executionFee);
        e.putUint("callbackGasLimit", order.callbackGasLimit);
        e.putUint("minOutputAmount", order.minOutputAmount);
        e.putUint("updatedAtTime", order.updatedAtTime);
        e.putUint("validFromTime", order.validFromTime);
        e.putUint("srcChainId", 0);
        e.putBool("isLong", order.isLong);
        e.putBool("shouldUnwrapNativeToken", order.shouldUnwrapNativeToken);
        e.putBool("autoCancel", order.autoCancel);
        e.setBytes32Array("dataList", order.dataList);
    }

    function updated(EventEmitter emitter, bytes32 key, Order.Props memory order) public {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("key", key);
        e.put("account", order.account);
        e.putUint("sizeDeltaUsd", order.sizeDeltaUsd);
        e.putUint("acceptablePrice", order.acceptablePrice);
        e.putUint("triggerPrice", order.triggerPrice);
        e.putUint("minOutputAmount", order.minOutputAmount);
        e.putUint("updatedAtTime", order.updatedAtTime);
        e.putUint("validFromTime", order.validFromTime);
        e.putBool("autoCancel", order.autoCancel);
        e.setBytes32Array("dataList", order.dataList);
        emitter.emitEventLog2("OrderUpdated", key, EventUtils.topic(order.account), e);
    }

    function executed(EventEmitter emitter, bytes32 key, address account) public {
        _executed(emitter, key, account, Order.SecondaryOrderType.None);
    }

    /// The order of a deleveraging was executed.
    function deleveraged(EventEmitter emitter, bytes32 key, address account) public {
        _executed(emitter, key, account, Order.SecondaryOrderType.Adl);
    }

    function _executed(EventEmitter emitter, bytes32 key, address account, Order.SecondaryOrderType secondary)
        private
    {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("key", key);
        e.put("account", account);
        e.putUint("secondaryOrderType", uint256(secondary));
        emitter.emitEventLog2("OrderExecuted", key, EventUtils.topic(account), e);
    }

    /// A protective order larger than its position shrank to it.
    function sizeAutoUpdated(EventEmitter emitter, bytes32 key, uint256 sizeDeltaUsd, uint256 next) public {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("key", key);
        e.putUint("sizeDeltaUsd", sizeDeltaUsd);
        e.putUint("nextSizeDeltaUsd", next);
        emitter.emitEventLog1("OrderSizeDeltaAutoUpdated", key, e);
    }

    /// An order that asked for more collateral than there was.
    function collateralAutoUpdated(EventEmitter emitter, bytes32 key, uint256 amount, uint256 next) public {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("key", key);
        e.putUint("collateralDeltaAmount", amount);
        e.putUint("nextCollateralDeltaAmount", next);
        emitter.emitEventLog1("OrderCollateralDeltaAmountAutoUpdated", key, e);
    }
}
