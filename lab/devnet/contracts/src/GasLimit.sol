// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Deposit} from "./Deposit.sol";
import {Keys} from "./Keys.sol";
import {Order} from "./Order.sol";
import {Withdrawal} from "./Withdrawal.sol";

/// @title The gas an execution is expected to need, by its kind, its swaps and its callback.
library GasLimit {
    function ofOrder(DataStore dataStore, Order.Props memory order) internal view returns (uint256) {
        uint256 swaps = order.swapPath.length;
        bytes32 kind = Keys.DECREASE_ORDER_GAS_LIMIT;
        if (Order.isIncreaseOrder(order.orderType)) kind = Keys.INCREASE_ORDER_GAS_LIMIT;
        else if (Order.isSwapOrder(order.orderType)) kind = Keys.SWAP_ORDER_GAS_LIMIT;
        else if (order.decreasePositionSwapType != Order.DecreasePositionSwapType.NoSwap) swaps++;
        return _limit(dataStore, kind, swaps, order.callbackGasLimit);
    }

    function ofDeposit(DataStore dataStore, Deposit.Props memory deposit) internal view returns (uint256) {
        uint256 swaps = deposit.longTokenSwapPath.length + deposit.shortTokenSwapPath.length;
        return _limit(dataStore, Keys.DEPOSIT_GAS_LIMIT, swaps, deposit.callbackGasLimit);
    }

    function ofWithdrawal(DataStore dataStore, Withdrawal.Props memory withdrawal) internal view returns (uint256) {
        uint256 swaps = withdrawal.longTokenSwapPath.length + withdrawal.shortTokenSwapPath.length;
        return _limit(dataStore, Keys.WITHDRAWAL_GAS_LIMIT, swaps, withdrawal.callbackGasLimit);
    }

    function _limit(DataStore dataStore, bytes32 kind, uint256 swaps, uint256 callbackGasLimit)
        private
        view
        returns (uint256)
    {
        return dataStore.getUint(kind) + swaps * dataStore.getUint(Keys.SINGLE_SWAP_GAS_LIMIT) + callbackGasLimit;
    }
}
