// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BaseHandler} from "./BaseHandler.sol";
import {Callback} from "./Callback.sol";
import {DataStore} from "./DataStore.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {ExecutionFee} from "./ExecutionFee.sol";
import {Oracle} from "./Oracle.sol";
import {Order} from "./Order.sol";
import {OrderBook} from "./OrderBook.sol";
import {PositionBook} from "./PositionBook.sol";
import {RequestVault} from "./RequestVault.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title How orders end without being executed; shared by whoever executes orders.
abstract contract BaseOrderHandler is BaseHandler {
    OrderBook public immutable orderBook;
    PositionBook public immutable positionBook;
    RequestVault public immutable orderVault;

    constructor(
        RoleStore _roleStore,
        DataStore _dataStore,
        EventEmitter _eventEmitter,
        Oracle _oracle,
        OrderBook _orderBook,
        PositionBook _positionBook,
        RequestVault _orderVault
    ) BaseHandler(_roleStore, _dataStore, _eventEmitter, _oracle) {
        orderBook = _orderBook;
        positionBook = _positionBook;
        orderVault = _orderVault;
    }

    /// Removes the order, returns its collateral, tells its callback contract and pays the fee.
    function _cancel(
        bytes32 key,
        Order.Props memory order,
        address keeper,
        uint256 startingGas,
        string memory reason,
        bytes memory reasonBytes
    ) internal {
        orderBook.cancel(key, reason, reasonBytes);
        address refundReceiver = Order.refundReceiver(order);
        if (Order.paysIn(order.orderType)) {
            orderVault.transferOut(order.initialCollateralToken, refundReceiver, order.initialCollateralDeltaAmount);
        }
        Callback.afterOrderCancellation(key, order);
        _pay(key, order, startingGas, keeper, refundReceiver);
    }

    /// Cancels the protective orders of a position that is closed.
    function _autoCancel(bytes32 positionKey, address keeper) internal {
        bytes32[] memory keys = orderBook.getAutoCancelOrders(positionKey);
        for (uint256 i; i < keys.length; i++) {
            uint256 startingGas = gasleft();
            _validateGasForCancellation(true);
            _cancel(keys[i], orderBook.getOrder(keys[i]), keeper, startingGas, "AUTO_CANCEL", "");
        }
    }

    function _pay(bytes32 key, Order.Props memory order, uint256 startingGas, address keeper, address refundReceiver)
        internal
    {
        ExecutionFee.pay(
            dataStore,
            eventEmitter,
            ExecutionFee.Payment(
                orderVault,
                order.executionFee,
                startingGas,
                keeper,
                refundReceiver,
                key,
                order.callbackContract,
                ExecutionFee.priceCount(order.swapPath.length)
            )
        );
    }
}
