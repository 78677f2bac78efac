// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {Keys} from "./Keys.sol";
import {Nonce} from "./Nonce.sol";
import {Order} from "./Order.sol";
import {OrderEvents} from "./OrderEvents.sol";
import {PositionKey} from "./Position.sol";
import {RequestEvents} from "./RequestEvents.sol";
import {RoleModule} from "./RoleModule.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title The pending orders, and for each position the protective orders that end with it. Every change but take announces
/// itself.
/// An order leaves when it is taken for execution or cancelled, so at most one attempt ever succeeds: every later one finds
/// EmptyOrder.
contract OrderBook is RoleModule {
    DataStore public immutable dataStore;
    EventEmitter public immutable eventEmitter;
    mapping(bytes32 key => Order.Props) private orders;
    mapping(bytes32 positionKey => bytes32[]) private autoCancelKeys;

    constructor(RoleStore _roleStore, DataStore _dataStore, EventEmitter _eventEmitter) RoleModule(_roleStore) {
        dataStore = _dataStore;
        eventEmitter = _eventEmitter;
    }

    /// Reverts with EmptyOrder if there is no such order (any more).
    function getOrder(bytes32 key) external view returns (Order.Props memory order) {
        order = orders[key];
        if (order.account == address(0)) revert Errors.EmptyOrder();
    }

    function getAutoCancelOrders(bytes32 positionKey) external view returns (bytes32[] memory) {
        return autoCancelKeys[positionKey];
    }

    function create(Order.Props calldata order) external onlyController returns (bytes32 key) {
        key = Nonce.nextKey(dataStore);
        orders[key] = order;
        if (order.autoCancel) _list(key, order);
        OrderEvents.created(eventEmitter, key, order);
    }

    /// Replaces the stored order and keeps the auto-cancel list of its position in step.
    function update(bytes32 key, Order.Props calldata order) external onlyController {
        bool listed = orders[key].autoCancel;
        orders[key] = order;
        if (order.autoCancel && !listed) _list(key, order);
        if (!order.autoCancel && listed) _unlist(key, order);
        OrderEvents.updated(eventEmitter, key, order);
    }

    /// The order stays, but for FROZEN_ORDER_KEEPERs only, until its owner updates it. Its execution fee is spent.
    function freeze(bytes32 key, string calldata reason, bytes calldata reasonBytes) external onlyController {
        Order.Props storage order = orders[key];
        order.isFrozen = true;
        order.executionFee = 0;
        RequestEvents.ended(eventEmitter, "OrderFrozen", key, order.account, reason, reasonBytes);
    }

    function cancel(bytes32 key, string calldata reason, bytes calldata reasonBytes) external onlyController {
        address account = orders[key].account;
        take(key);
        RequestEvents.ended(eventEmitter, "OrderCancelled", key, account, reason, reasonBytes);
    }

    /// Removes an order for execution.
    function take(bytes32 key) public onlyController {
        Order.Props memory order = orders[key];
        if (order.autoCancel) _unlist(key, order);
        delete orders[key];
    }

    function _list(bytes32 key, Order.Props memory order) private {
        if (!Order.isProtective(order.orderType)) {
            revert Errors.UnsupportedOrderTypeForAutoCancellation(uint256(order.orderType));
        }
        bytes32[] storage keys = autoCancelKeys[PositionKey.ofOrder(order)];
        uint256 limit = dataStore.getUint(Keys.MAX_AUTO_CANCEL_ORDERS);
        if (keys.length >= limit) revert Errors.MaxAutoCancelOrdersExceeded(keys.length + 1, limit);
        keys.push(key);
        _validateCallbackGas(keys);
    }

    /// Whoever closes the position pays for all their callbacks at once.
    function _validateCallbackGas(bytes32[] storage keys) private view {
        uint256 total;
        for (uint256 i; i < keys.length; i++) {
            total += orders[keys[i]].callbackGasLimit;
        }
        uint256 limit = dataStore.getUint(Keys.MAX_TOTAL_CALLBACK_GAS_LIMIT_FOR_AUTO_CANCEL_ORDERS);
        if (total > limit) revert Errors.MaxTotalCallbackGasLimitForAutoCancelOrdersExceeded(total, limit);
    }

    function _unlist(bytes32 key, Order.Props memory order) private {
        bytes32[] storage keys = autoCancelKeys[PositionKey.ofOrder(order)];
        for (uint256 i; i < keys.length; i++) {
            if (keys[i] != key) continue;
            keys[i] = keys[keys.length - 1];
            keys.pop();
            return;
        }
    }
}
