// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Deposit} from "./Deposit.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {Withdrawal} from "./Withdrawal.sol";

/// @title The events of deposits and withdrawals, and the ways in which any request ends, or stops for now, without its effect.
library RequestEvents {
    using EventUtils for EventUtils.EventLogData;

    /// Emits `eventName` (OrderCancelled, OrderFrozen, DepositCancelled, WithdrawalCancelled). `reason` is the text of a
    /// plain revert or of our own; a custom error is in `reasonBytes` alone.
    function ended(
        EventEmitter emitter,
        string memory eventName,
        bytes32 key,
        address account,
        string memory reason,
        bytes memory reasonBytes
    ) public {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("key", key);
        e.put("account", account);
        e.setString("reason", reason);
        e.setBytes("reasonBytes", reasonBytes);
        emitter.emitEventLog2(eventName, key, EventUtils.topic(account), e);
    }

    function depositCreated(
        EventEmitter emitter,
        bytes32 key,
        Deposit.Props memory deposit,
        bool shouldUnwrapNativeToken,
        bytes32[] memory dataList
    ) public {
        EventUtils.EventLogData memory e = data(deposit);
        e.putBool("shouldUnwrapNativeToken", shouldUnwrapNativeToken);
        e.putBytes32("key", key);
        e.setBytes32Array("dataList", dataList);
        emitter.emitEventLog2("DepositCreated", key, EventUtils.topic(deposit.account), e);
    }

    function depositExecuted(
        EventEmitter emitter,
        bytes32 key,
        address account,
        uint256 longAmount,
        uint256 shortAmount,
        uint256 minted
    ) public {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("key", key);
        e.put("account", account);
        e.putUint("longTokenAmount", longAmount);
        e.putUint("shortTokenAmount", shortAmount);
        e.putUint("receivedMarketTokens", minted);
        e.putUint("swapPricingType", 0);
        emitter.emitEventLog2("DepositExecuted", key, EventUtils.topic(account), e);
    }

    function withdrawalCreated(
        EventEmitter emitter,
        bytes32 key,
        Withdrawal.Props memory withdrawal,
        bool shouldUnwrapNativeToken,
        bytes32[] memory dataList
    ) public {
        EventUtils.EventLogData memory e = data(withdrawal);
        e.putBool("shouldUnwrapNativeToken", shouldUnwrapNativeToken);
        e.putBytes32("key", key);
        e.setBytes32Array("dataList", dataList);
        emitter.emitEventLog2("WithdrawalCreated", key, EventUtils.topic(withdrawal.account), e);
    }

    function withdrawalExecuted(EventEmitter emitter, bytes32 key, address account) public {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("key", key);
        e.put("account", account);
        e.putUint("swapPricingType", 0);
        emitter.emitEventLog2("WithdrawalExecuted", key, EventUtils.topic(account), e);
    }

    /// All that is kept of a deposit.
    function data(Deposit.Props memory deposit) internal pure returns (EventUtils.EventLogData memory e) {
        e = EventUtils.create();
        e.put("account", deposit.account);
        e.put("receiver", deposit.receiver);
        e.put("callbackContract", deposit.callbackContract);
        e.put("market", deposit.market);
        e.put("initialLongToken", deposit.initialLongToken);
        e.put("initialShortToken", deposit.initialShortToken);
        e.put("uiFeeReceiver", deposit.uiFeeReceiver);
        e.setPaths(deposit.longTokenSwapPath, deposit.shortTokenSwapPath);
        e.putUint("initialLongTokenAmount", deposit.initialLongTokenAmount);
        e.putUint("initialShortTokenAmount", deposit.initialShortTokenAmount);
        e.putUint("minMarketTokens", deposit.minMarketTokens);
        e.putUint("updatedAtTime", deposit.updatedAtTime);
        e.putUint("executionFee", deposit.executionFee);
        e.putUint("callbackGasLimit", deposit.callbackGasLimit);
        e.putUint("depositType", 0);
        e.putUint("srcChainId", 0);
    }

    /// All that is kept of a withdrawal.
    function data(Withdrawal.Props memory withdrawal) internal pure returns (EventUtils.EventLogData memory e) {
        e = EventUtils.create();
        e.put("account", withdrawal.account);
        e.put("receiver", withdrawal.receiver);
        e.put("callbackContract", withdrawal.callbackContract);
        e.put("market", withdrawal.market);
        e.put("uiFeeReceiver", withdrawal.uiFeeReceiver);
        e.setPaths(withdrawal.longTokenSwapPath, withdrawal.shortTokenSwapPath);
        e.putUint("marketTokenAmount", withdrawal.marketTokenAmount);
        e.putUint("minLongTokenAmount", withdrawal.minLongTokenAmount);
        e.putUint("minShortTokenAmount", withdrawal.minShortTokenAmount);
        e.putUint("updatedAtTime", withdrawal.updatedAtTime);
        e.putUint("executionFee", withdrawal.executionFee);
        e.putUint("callbackGasLimit", withdrawal.callbackGasLimit);
        e.putUint("withdrawalType", 0);
        e.putUint("srcChainId", 0);
    }
}
