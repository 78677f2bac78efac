// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";

/// @title The ways in which any request ends, or stops for now, without its effect.
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
}
