// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Deposit} from "./Deposit.sol";
import {DepositHandler} from "./DepositHandler.sol";
import {ErrorReason} from "./ErrorReason.sol";
import {Errors} from "./Errors.sol";
import {GlvDeposit} from "./GlvDeposit.sol";
import {GlvDepositHandler} from "./GlvDepositHandler.sol";
import {GlvWithdrawal} from "./GlvWithdrawal.sol";
import {GlvWithdrawalHandler} from "./GlvWithdrawalHandler.sol";
import {Order} from "./Order.sol";
import {OrderHandler} from "./OrderHandler.sol";
import {Router} from "./Router.sol";
import {Shift} from "./Shift.sol";
import {ShiftHandler} from "./ShiftHandler.sol";
import {TwapRouter} from "./TwapRouter.sol";
import {Withdrawal} from "./Withdrawal.sol";
import {WithdrawalHandler} from "./WithdrawalHandler.sol";

/// @title The door for users. Tokens are approved to the Router, and a request is one multicall: send the execution fee
/// and the tokens to the vault of the request, then create it.
/// Native coin or tokens that are sent in a transaction of their own belong to whoever comes next.
contract ExchangeRouter is TwapRouter {
    Router public immutable router;
    DepositHandler public immutable depositHandler;
    WithdrawalHandler public immutable withdrawalHandler;

    ShiftHandler public immutable shiftHandler;
    GlvDepositHandler public immutable glvDepositHandler;
    GlvWithdrawalHandler public immutable glvWithdrawalHandler;

    constructor(
        Router _router,
        OrderHandler _orderHandler,
        DepositHandler _depositHandler,
        WithdrawalHandler _withdrawalHandler,
        ShiftHandler _shiftHandler,
        GlvDepositHandler _glvDepositHandler,
        GlvWithdrawalHandler _glvWithdrawalHandler
    ) TwapRouter(_orderHandler) {
        router = _router;
        depositHandler = _depositHandler;
        withdrawalHandler = _withdrawalHandler;
        shiftHandler = _shiftHandler;
        glvDepositHandler = _glvDepositHandler;
        glvWithdrawalHandler = _glvWithdrawalHandler;
    }

    /// Calls itself in order; the first failure undoes all.
    function multicall(bytes[] calldata data) external payable returns (bytes[] memory results) {
        results = new bytes[](data.length);
        for (uint256 i; i < data.length; i++) {
            (bool ok, bytes memory result) = address(this).delegatecall(data[i]);
            if (!ok) ErrorReason.rethrow(result);
            results[i] = result;
        }
    }

    /// Sends native coin of this transaction to a vault. The name is GMX's; nothing is wrapped here.
    function sendWnt(address receiver, uint256 amount) external payable {
        (bool ok,) = receiver.call{value: amount}("");
        require(ok, "native transfer refused");
    }

    function sendTokens(address token, address receiver, uint256 amount) external payable {
        router.pluginTransfer(token, msg.sender, receiver, amount);
    }

    function createOrder(Order.CreateParams calldata params) external payable returns (bytes32) {
        return orderHandler.createOrder(msg.sender, params);
    }

    function updateOrder(
        bytes32 key,
        uint256 sizeDeltaUsd,
        uint256 acceptablePrice,
        uint256 triggerPrice,
        uint256 minOutputAmount,
        uint256 validFromTime,
        bool autoCancel
    ) external payable {
        orderHandler.updateOrder(
            key,
            msg.sender,
            Order.UpdateParams(sizeDeltaUsd, acceptablePrice, triggerPrice, minOutputAmount, validFromTime, autoCancel)
        );
    }

    function cancelOrder(bytes32 key) external payable {
        _requireOwn(orderHandler.orderBook().getOrder(key).account, "account for cancelOrder");
        orderHandler.cancelOrder(key);
    }

    /// The contract that is called after liquidations of the caller's positions in a market; zero for none.
    function setSavedCallbackContract(address market, address callbackContract) external payable {
        orderHandler.setSavedCallbackContract(msg.sender, market, callbackContract);
    }

    function createDeposit(Deposit.CreateParams calldata params) external payable returns (bytes32) {
        return depositHandler.createDeposit(msg.sender, params);
    }

    function cancelDeposit(bytes32 key) external payable {
        _requireOwn(depositHandler.getDeposit(key).account, "account for cancelDeposit");
        depositHandler.cancelDeposit(key);
    }

    function createWithdrawal(Withdrawal.CreateParams calldata params) external payable returns (bytes32) {
        return withdrawalHandler.createWithdrawal(msg.sender, params);
    }

    function cancelWithdrawal(bytes32 key) external payable {
        _requireOwn(withdrawalHandler.getWithdrawal(key).account, "account for cancelWithdrawal");
        withdrawalHandler.cancelWithdrawal(key);
    }

    function createShift(Shift.CreateParams calldata params) external payable returns (bytes32) {
        return shiftHandler.createShift(msg.sender, params);
    }

    function cancelShift(bytes32 key) external payable {
        _requireOwn(shiftHandler.getShift(key).account, "account for cancelShift");
        shiftHandler.cancelShift(key);
    }

    function createGlvDeposit(GlvDeposit.CreateParams calldata params) external payable returns (bytes32) {
        return glvDepositHandler.createGlvDeposit(msg.sender, params);
    }

    function cancelGlvDeposit(bytes32 key) external payable {
        _requireOwn(glvDepositHandler.getGlvDeposit(key).account, "account for cancelGlvDeposit");
        glvDepositHandler.cancelGlvDeposit(key);
    }

    function createGlvWithdrawal(GlvWithdrawal.CreateParams calldata params) external payable returns (bytes32) {
        return glvWithdrawalHandler.createGlvWithdrawal(msg.sender, params);
    }

    function cancelGlvWithdrawal(bytes32 key) external payable {
        _requireOwn(glvWithdrawalHandler.getGlvWithdrawal(key).account, "account for cancelGlvWithdrawal");
        glvWithdrawalHandler.cancelGlvWithdrawal(key);
    }

    function _requireOwn(address account, string memory what) private view {
        if (account != msg.sender) revert Errors.Unauthorized(msg.sender, what);
    }
}
