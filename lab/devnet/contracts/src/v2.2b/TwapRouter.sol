// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {OrderHandler} from "./OrderHandler.sol";

/// @title This version has no orders that are spread over time.
abstract contract TwapRouter {
    OrderHandler public immutable orderHandler;

    constructor(OrderHandler _orderHandler) {
        orderHandler = _orderHandler;
    }
}
