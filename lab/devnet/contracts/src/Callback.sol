// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IOrderCallbackReceiver} from "./CallbackReceivers.sol";
import {Errors} from "./Errors.sol";
import {EventUtils} from "./EventUtils.sol";
import {Order} from "./Order.sol";
import {OrderEvents} from "./OrderEvents.sol";

/// @title Telling a contract of its request. It gets the gas that the request names and can do no harm with it: it may fail, but it
/// may not be starved by a keeper who brought too little.
library Callback {
    event CallbackFailed(bytes32 indexed key, address callbackContract, bytes4 selector);

    /// Whether there is anybody to call.
    function wanted(address callbackContract) internal view returns (bool) {
        return callbackContract.code.length > 0;
    }

    /// Reverts with InsufficientGasLeftForCallback unless a call could be given this much.
    function validateGas(uint256 gasLimit) internal view {
        uint256 forwarded = gasleft() / 64 * 63;
        if (forwarded < gasLimit) revert Errors.InsufficientGasLeftForCallback(forwarded, gasLimit);
    }

    /// Calls receiver.selector(key, data, nothing).
    function tell(
        address callbackContract,
        uint256 gasLimit,
        bytes4 selector,
        bytes32 key,
        EventUtils.EventLogData memory data
    ) internal {
        EventUtils.EventLogData memory nothing;
        bytes memory input = abi.encodeWithSelector(selector, key, data, nothing);
        validateGas(gasLimit);
        bool ok;
        assembly ("memory-safe") {
            ok := call(gasLimit, callbackContract, 0, add(input, 0x20), mload(input), 0, 0)
        }
        if (!ok) emit CallbackFailed(key, callbackContract, selector);
    }

    function afterOrderExecution(bytes32 key, Order.Props memory order) public {
        _tellOfOrder(key, order, IOrderCallbackReceiver.afterOrderExecution.selector);
    }

    function afterOrderCancellation(bytes32 key, Order.Props memory order) public {
        _tellOfOrder(key, order, IOrderCallbackReceiver.afterOrderCancellation.selector);
    }

    function afterOrderFrozen(bytes32 key, Order.Props memory order) public {
        _tellOfOrder(key, order, IOrderCallbackReceiver.afterOrderFrozen.selector);
    }

    function _tellOfOrder(bytes32 key, Order.Props memory order, bytes4 selector) private {
        if (!wanted(order.callbackContract)) return;
        tell(order.callbackContract, order.callbackGasLimit, selector, key, OrderEvents.data(order));
    }
}
