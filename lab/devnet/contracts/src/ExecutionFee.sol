// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Callback} from "./Callback.sol";
import {IGasFeeCallbackReceiver} from "./CallbackReceivers.sol";
import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {Keys} from "./Keys.sol";
import {Precision} from "./Precision.sol";
import {RequestVault} from "./RequestVault.sol";

/// @title What an execution may cost in gas, and who is paid for it.
/// The user pays an execution fee in native coin with the request; the keeper gets the gas it used, the rest is refunded.
library ExecutionFee {
    using EventUtils for EventUtils.EventLogData;

    /// One payment: from which vault, how much at most, since when gas is counted, for how many price reports, and to whom. The
    /// callback contract of the request, if it has one that takes it, gets the refund.
    struct Payment {
        RequestVault vault;
        uint256 executionFee;
        uint256 startingGas;
        address keeper;
        address refundReceiver;
        bytes32 key;
        address callbackContract;
        uint256 priceCount;
    }

    /// The price reports that the fee of an execution in one market allows for, by the swaps on its paths.
    function priceCount(uint256 swaps) internal pure returns (uint256) {
        return 3 + swaps;
    }

    /// Reverts unless the fee covers the estimated gas at this transaction's gas price.
    function validateFee(DataStore dataStore, uint256 estimatedGasLimit, uint256 prices, uint256 executionFee)
        internal
        view
    {
        uint256 gasLimit = dataStore.getUint(Keys.ESTIMATED_GAS_FEE_BASE_AMOUNT_V2_1)
            + prices * dataStore.getUint(Keys.ESTIMATED_GAS_FEE_PER_ORACLE_PRICE)
            + Precision.applyFactor(estimatedGasLimit, dataStore.getUint(Keys.ESTIMATED_GAS_FEE_MULTIPLIER_FACTOR));
        uint256 minExecutionFee = gasLimit * tx.gasprice;
        if (executionFee < minExecutionFee) revert Errors.InsufficientExecutionFee(minExecutionFee, executionFee);
    }

    /// The gas to forward to an execution: all but what handling its failure needs. Reverts when there is too little, so
    /// that a keeper's low gas limit never cancels or freezes a request.
    function gasToForward(DataStore dataStore, uint256 estimatedGasLimit) internal view returns (uint256) {
        uint256 startingGas = gasleft();
        uint256 additional = dataStore.getUint(Keys.MIN_ADDITIONAL_GAS_FOR_EXECUTION);
        if (startingGas < estimatedGasLimit + additional) {
            revert Errors.InsufficientExecutionGas(startingGas, estimatedGasLimit, additional);
        }
        uint256 reserve = dataStore.getUint(Keys.MIN_HANDLE_EXECUTION_ERROR_GAS_TO_FORWARD);
        if (startingGas < reserve) revert Errors.InsufficientExecutionGasForErrorHandling(startingGas, reserve);
        return startingGas - reserve;
    }

    /// An empty reason with little gas left means that the execution ran out of gas. As on the original's networks that is refused in calls
    /// from nobody alone: a transaction that brought enough for the check at the start, and too little for the work, ends the request at
    /// its user's cost.
    function validateErrorGas(DataStore dataStore, bytes memory reasonBytes) internal view {
        if (reasonBytes.length != 0 || tx.origin != address(0)) return;
        uint256 minimum = dataStore.getUint(Keys.MIN_HANDLE_EXECUTION_ERROR_GAS);
        if (gasleft() < minimum) revert Errors.InsufficientHandleExecutionErrorGas(gasleft(), minimum);
    }

    /// Pays the keeper for the gas used since startingGas, at most the fee, and refunds the rest. Nothing happens without
    /// a fee.
    function pay(DataStore dataStore, EventEmitter eventEmitter, Payment memory p) public {
        if (p.executionFee == 0) return;
        uint256 gasUsed = dataStore.getUint(Keys.EXECUTION_GAS_FEE_BASE_AMOUNT_V2_1)
            + p.priceCount * dataStore.getUint(Keys.EXECUTION_GAS_FEE_PER_ORACLE_PRICE)
            + Precision.applyFactor(
                p.startingGas - gasleft(), dataStore.getUint(Keys.EXECUTION_GAS_FEE_MULTIPLIER_FACTOR)
            );
        uint256 forKeeper = gasUsed * tx.gasprice;
        if (forKeeper > p.executionFee) forKeeper = p.executionFee;

        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("keeper", p.keeper);
        e.putUint("executionFeeAmount", forKeeper);
        eventEmitter.emitEventLog1("KeeperExecutionFee", EventUtils.topic(p.keeper), e);
        p.vault.payNative(p.keeper, forKeeper);

        uint256 refund = p.executionFee - forKeeper;
        if (refund == 0 || _refundByCallback(dataStore, eventEmitter, p, refund)) return;
        e = EventUtils.create();
        e.put("receiver", p.refundReceiver);
        e.putUint("refundFeeAmount", refund);
        eventEmitter.emitEventLog1("ExecutionFeeRefund", EventUtils.topic(p.refundReceiver), e);
        p.vault.payNative(p.refundReceiver, refund);
    }

    function _refundByCallback(DataStore dataStore, EventEmitter eventEmitter, Payment memory p, uint256 refund)
        private
        returns (bool)
    {
        if (!Callback.wanted(p.callbackContract)) return false;
        uint256 gasLimit = dataStore.getUint(Keys.REFUND_EXECUTION_FEE_GAS_LIMIT);
        Callback.validateGas(gasLimit);
        EventUtils.EventLogData memory nothing;
        bytes memory input = abi.encodeCall(IGasFeeCallbackReceiver.refundExecutionFee, (p.key, nothing));
        if (!p.vault.callWithNative(p.callbackContract, refund, gasLimit, input)) return false;

        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("callbackContract", p.callbackContract);
        e.putUint("refundFeeAmount", refund);
        eventEmitter.emitEventLog1("ExecutionFeeRefundCallback", EventUtils.topic(p.callbackContract), e);
        return true;
    }
}
