// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {EventUtils} from "./EventUtils.sol";

/// What a contract implements that wants to hear of the orders, deposits and withdrawals that name it. The first data is about the request,
/// the second about its outcome.
interface IOrderCallbackReceiver {
    function afterOrderExecution(bytes32 key, EventUtils.EventLogData memory order, EventUtils.EventLogData memory outcome)
        external;
    function afterOrderCancellation(
        bytes32 key,
        EventUtils.EventLogData memory order,
        EventUtils.EventLogData memory outcome
    ) external;
    function afterOrderFrozen(bytes32 key, EventUtils.EventLogData memory order, EventUtils.EventLogData memory outcome)
        external;
}

interface IDepositCallbackReceiver {
    function afterDepositExecution(
        bytes32 key,
        EventUtils.EventLogData memory deposit,
        EventUtils.EventLogData memory outcome
    ) external;
    function afterDepositCancellation(
        bytes32 key,
        EventUtils.EventLogData memory deposit,
        EventUtils.EventLogData memory outcome
    ) external;
}

interface IWithdrawalCallbackReceiver {
    function afterWithdrawalExecution(
        bytes32 key,
        EventUtils.EventLogData memory withdrawal,
        EventUtils.EventLogData memory outcome
    ) external;
    function afterWithdrawalCancellation(
        bytes32 key,
        EventUtils.EventLogData memory withdrawal,
        EventUtils.EventLogData memory outcome
    ) external;
}

/// Who wants what is left of an execution fee sent along with a call.
interface IGasFeeCallbackReceiver {
    function refundExecutionFee(bytes32 key, EventUtils.EventLogData memory data) external payable;
}
