// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Order} from "./Order.sol";
import {OrderHandler} from "./OrderHandler.sol";

/// @title The door for orders that are spread over time.
abstract contract TwapRouter {
    OrderHandler public immutable orderHandler;

    constructor(OrderHandler _orderHandler) {
        orderHandler = _orderHandler;
    }

    function createTwapOrder(Order.CreateParams calldata params, uint256 twapCount, uint256 interval)
        external
        payable
        returns (bytes32[] memory)
    {
        return orderHandler.createTwapOrder(msg.sender, 0, params, false, twapCount, interval);
    }
}
