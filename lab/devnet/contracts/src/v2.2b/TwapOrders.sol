// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Order} from "./Order.sol";
import {RoleModule} from "./RoleModule.sol";

/// @title This version makes one order at a time.
abstract contract TwapOrders is RoleModule {
    function _createOrders(address account, Order.CreateParams calldata params, uint256 count, uint256 interval)
        internal
        virtual
        returns (bytes32[] memory keys);
}
