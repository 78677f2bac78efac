// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Callback} from "./Callback.sol";
import {IDepositCallbackReceiver, IWithdrawalCallbackReceiver} from "./CallbackReceivers.sol";
import {Deposit} from "./Deposit.sol";
import {RequestEvents} from "./RequestEvents.sol";
import {Withdrawal} from "./Withdrawal.sol";

/// @title Telling contracts of their deposits and withdrawals.
library RequestCallback {
    function afterDepositExecution(bytes32 key, Deposit.Props memory deposit) public {
        _tell(key, deposit, IDepositCallbackReceiver.afterDepositExecution.selector);
    }

    function afterDepositCancellation(bytes32 key, Deposit.Props memory deposit) public {
        _tell(key, deposit, IDepositCallbackReceiver.afterDepositCancellation.selector);
    }

    function afterWithdrawalExecution(bytes32 key, Withdrawal.Props memory withdrawal) public {
        _tell(key, withdrawal, IWithdrawalCallbackReceiver.afterWithdrawalExecution.selector);
    }

    function afterWithdrawalCancellation(bytes32 key, Withdrawal.Props memory withdrawal) public {
        _tell(key, withdrawal, IWithdrawalCallbackReceiver.afterWithdrawalCancellation.selector);
    }

    function _tell(bytes32 key, Deposit.Props memory deposit, bytes4 selector) private {
        if (!Callback.wanted(deposit.callbackContract)) return;
        Callback.tell(deposit.callbackContract, deposit.callbackGasLimit, selector, key, RequestEvents.data(deposit));
    }

    function _tell(bytes32 key, Withdrawal.Props memory withdrawal, bytes4 selector) private {
        if (!Callback.wanted(withdrawal.callbackContract)) return;
        Callback.tell(
            withdrawal.callbackContract, withdrawal.callbackGasLimit, selector, key, RequestEvents.data(withdrawal)
        );
    }
}
