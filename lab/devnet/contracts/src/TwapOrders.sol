// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Errors} from "./Errors.sol";
import {Order} from "./Order.sol";
import {RoleModule} from "./RoleModule.sol";

/// @title Several orders of the same terms in one request, each valid a while after the one before.
abstract contract TwapOrders is RoleModule {
    /// The number after the account names a chain that it comes from, the flag bounds fees: this exchange looks at neither.
    function createTwapOrder(
        address account,
        uint256,
        Order.CreateParams calldata params,
        bool,
        uint256 twapCount,
        uint256 interval
    ) external onlyController returns (bytes32[] memory) {
        if (twapCount < 2) revert Errors.InvalidTwapCount(twapCount);
        if (interval == 0) revert Errors.InvalidInterval(interval);
        return _createOrders(account, params, twapCount, interval);
    }

    function _createOrders(address account, Order.CreateParams calldata params, uint256 count, uint256 interval)
        internal
        virtual
        returns (bytes32[] memory keys);
}
