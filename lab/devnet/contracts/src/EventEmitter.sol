// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {EventUtils} from "./EventUtils.sol";
import {RoleModule} from "./RoleModule.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title The one contract that emits the events of the exchange.
/// msgSender is the calling contract, not the user.
contract EventEmitter is RoleModule {
    event EventLog(
        address msgSender, string eventName, string indexed eventNameHash, EventUtils.EventLogData eventData
    );
    event EventLog1(
        address msgSender,
        string eventName,
        string indexed eventNameHash,
        bytes32 indexed topic1,
        EventUtils.EventLogData eventData
    );
    event EventLog2(
        address msgSender,
        string eventName,
        string indexed eventNameHash,
        bytes32 indexed topic1,
        bytes32 indexed topic2,
        EventUtils.EventLogData eventData
    );

    constructor(RoleStore _roleStore) RoleModule(_roleStore) {}

    function emitEventLog(string calldata eventName, EventUtils.EventLogData calldata eventData)
        external
        onlyController
    {
        emit EventLog(msg.sender, eventName, eventName, eventData);
    }

    function emitEventLog1(string calldata eventName, bytes32 topic1, EventUtils.EventLogData calldata eventData)
        external
        onlyController
    {
        emit EventLog1(msg.sender, eventName, eventName, topic1, eventData);
    }

    function emitEventLog2(
        string calldata eventName,
        bytes32 topic1,
        bytes32 topic2,
        EventUtils.EventLogData calldata eventData
    ) external onlyController {
        emit EventLog2(msg.sender, eventName, eventName, topic1, topic2, eventData);
    }
}
