// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

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

    /// One payment: from which vault, how much at most, since when gas is counted, and to whom.
    struct Payment {
        RequestVault vault;
        uint256 executionFee;
        uint256 startingGas;
        address keeper;
        address refundReceiver;
    }

    /// Reverts unless the fee covers the estimated gas at this transaction's gas price.
    function validateFee(DataStore dataStore, uint256 estimatedGasLimit, uint256 executionFee) internal view {
        uint256 gasLimit = dataStore.getUint(Keys.ESTIMATED_GAS_FEE_BASE_AMOUNT_V2_1)
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

    /// An empty reason with little gas left means that the execution ran out of gas: the keeper's fault, so revert. The limit
    /// must exceed what gasToForward keeps back, because calls below the one that ran out keep 1/64 each.
    function validateErrorGas(DataStore dataStore, bytes memory reasonBytes) internal view {
        if (reasonBytes.length != 0) return;
        uint256 minimum = dataStore.getUint(Keys.MIN_HANDLE_EXECUTION_ERROR_GAS);
        if (gasleft() < minimum) revert Errors.InsufficientHandleExecutionErrorGas(gasleft(), minimum);
    }

    /// Pays the keeper for the gas used since startingGas, at most the fee, and refunds the rest. Nothing happens without
    /// a fee.
    function pay(DataStore dataStore, EventEmitter eventEmitter, Payment memory p) public {
        if (p.executionFee == 0) return;
        uint256 gasUsed = dataStore.getUint(Keys.EXECUTION_GAS_FEE_BASE_AMOUNT_V2_1)
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
        if (refund == 0) return;
        e = EventUtils.create();
        e.put("receiver", p.refundReceiver);
        e.putUint("refundFeeAmount", refund);
        eventEmitter.emitEventLog1("ExecutionFeeRefund", EventUtils.topic(p.refundReceiver), e);
        p.vault.payNative(p.refundReceiver, refund);
    }
}
