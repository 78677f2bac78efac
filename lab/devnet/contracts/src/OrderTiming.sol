// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Errors} from "./Errors.sol";
import {Order} from "./Order.sol";
import {Price} from "./Price.sol";

/// @title When an order may execute: at which index price, and with prices of which age.
library OrderTiming {
    /// The trigger rule of waiting orders; market orders and swaps have none. The price is the one at which the order executes:
    ///                    long            short
    ///   LimitIncrease    max <= trigger  min >= trigger
    ///   StopIncrease     max >= trigger  min <= trigger
    ///   LimitDecrease    min >= trigger  max <= trigger
    ///   StopLossDecrease min <= trigger  max >= trigger
    function validateTrigger(Order.Props memory order, Price.Props memory index) internal pure {
        if (Order.isMarketOrder(order.orderType) || Order.isSwapOrder(order.orderType)) return;
        uint256 price = Price.pick(index, Order.isIncreaseOrder(order.orderType) == order.isLong);
        bool belowTrigger = _longWaitsForFall(order.orderType) == order.isLong;
        if (belowTrigger ? price > order.triggerPrice : price < order.triggerPrice) {
            revert Errors.InvalidOrderPrices(index.min, index.max, order.triggerPrice, uint256(order.orderType));
        }
    }

    /// Market orders take prices from their last update up to requestExpirationTime later. Waiting orders take prices not
    /// older than their update, their validFromTime and, if protective, the position's last increase; they never expire.
    function validateTimestamps(
        Order.Props memory order,
        uint256 minTimestamp,
        uint256 maxTimestamp,
        uint256 positionIncreasedAt,
        uint256 requestExpirationTime
    ) internal view {
        uint256 required = order.updatedAtTime;
        if (Order.isMarketOrder(order.orderType)) {
            if (maxTimestamp > required + requestExpirationTime) {
                revert Errors.OracleTimestampsAreLargerThanRequestExpirationTime(
                    maxTimestamp, required, requestExpirationTime
                );
            }
        } else {
            if (order.validFromTime > block.timestamp) {
                revert Errors.OrderValidFromTimeNotReached(order.validFromTime, block.timestamp);
            }
            required = _later(required, order.validFromTime);
            if (Order.isProtective(order.orderType)) required = _later(required, positionIncreasedAt);
        }
        if (minTimestamp < required) revert Errors.OracleTimestampsAreSmallerThanRequired(minTimestamp, required);
    }

    /// A long buys cheaper, or stops its loss, after a fall; a short after a rise.
    function _longWaitsForFall(Order.OrderType t) private pure returns (bool) {
        return t == Order.OrderType.LimitIncrease || t == Order.OrderType.StopLossDecrease;
    }

    function _later(uint256 a, uint256 b) private pure returns (uint256) {
        return a > b ? a : b;
    }
}
