// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Deposit} from "./Deposit.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {Withdrawal} from "./Withdrawal.sol";

/// @title The events of deposits and withdrawals that are part of a shift or of a GLV's request.
library PoolEvents {
    using EventUtils for EventUtils.EventLogData;

    /// What a deposit or withdrawal belongs to: the original's DepositType and WithdrawalType.
    enum Cause {
        Normal,
        Shift,
        Glv
    }

    function depositCreated(EventEmitter emitter, bytes32 key, Deposit.Props memory d, Cause cause) internal {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("account", d.account);
        e.put("receiver", d.receiver);
        e.put("callbackContract", address(0));
        e.put("market", d.market);
        e.put("initialLongToken", d.initialLongToken);
        e.put("initialShortToken", d.initialShortToken);
        e.put("uiFeeReceiver", address(0));
        _emptyPaths(e);
        e.putUint("initialLongTokenAmount", d.initialLongTokenAmount);
        e.putUint("initialShortTokenAmount", d.initialShortTokenAmount);
        e.putUint("minMarketTokens", d.minMarketTokens);
        e.putUint("updatedAtTime", d.updatedAtTime);
        e.putUint("executionFee", 0);
        e.putUint("callbackGasLimit", 0);
        e.putUint("depositType", uint256(cause));
        _common(e, key);
        emitter.emitEventLog2("DepositCreated", key, EventUtils.topic(d.account), e);
    }

    function depositExecuted(EventEmitter emitter, bytes32 key, Deposit.Props memory d, uint256 minted) internal {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("key", key);
        e.put("account", d.account);
        e.putUint("longTokenAmount", d.initialLongTokenAmount);
        e.putUint("shortTokenAmount", d.initialShortTokenAmount);
        e.putUint("receivedMarketTokens", minted);
        e.putUint("swapPricingType", 0);
        emitter.emitEventLog2("DepositExecuted", key, EventUtils.topic(d.account), e);
    }

    function withdrawalCreated(EventEmitter emitter, bytes32 key, Withdrawal.Props memory w, Cause cause) internal {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("account", w.account);
        e.put("receiver", w.receiver);
        e.put("callbackContract", address(0));
        e.put("market", w.market);
        e.put("uiFeeReceiver", address(0));
        _emptyPaths(e);
        e.putUint("marketTokenAmount", w.marketTokenAmount);
        e.putUint("minLongTokenAmount", w.minLongTokenAmount);
        e.putUint("minShortTokenAmount", w.minShortTokenAmount);
        e.putUint("updatedAtTime", w.updatedAtTime);
        e.putUint("executionFee", 0);
        e.putUint("callbackGasLimit", 0);
        e.putUint("withdrawalType", uint256(cause));
        _common(e, key);
        emitter.emitEventLog2("WithdrawalCreated", key, EventUtils.topic(w.account), e);
    }

    function withdrawalExecuted(EventEmitter emitter, bytes32 key, address account) internal {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("key", key);
        e.put("account", account);
        e.putUint("swapPricingType", 0);
        emitter.emitEventLog2("WithdrawalExecuted", key, EventUtils.topic(account), e);
    }

    function _emptyPaths(EventUtils.EventLogData memory e) private pure {
        e.setPaths(new address[](0), new address[](0));
    }

    function _common(EventUtils.EventLogData memory e, bytes32 key) private pure {
        e.putUint("srcChainId", 0);
        e.putBool("shouldUnwrapNativeToken", false);
        e.putBytes32("key", key);
        e.setBytes32Array("dataList", new bytes32[](0));
    }
}
