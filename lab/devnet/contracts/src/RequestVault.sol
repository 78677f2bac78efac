// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC20} from "./ERC20.sol";
import {RoleModule} from "./RoleModule.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title Holds what belongs to pending requests: tokens, and execution fees in the native coin.
/// What was sent since the last look belongs to the request that is created next, in the same transaction.
contract RequestVault is RoleModule {
    /// Gas given to the receiver of native coin: enough for a wallet contract, too little to matter.
    uint256 private constant NATIVE_TRANSFER_GAS = 50_000;

    mapping(address token => uint256) private recorded;
    uint256 private recordedNative;
    /// Native coin that its receiver refused; see claim.
    mapping(address receiver => uint256) public owed;

    constructor(RoleStore _roleStore) RoleModule(_roleStore) {}

    receive() external payable {}

    /// The amount of a token that arrived since the last call.
    function recordTransferIn(address token) external onlyController returns (uint256 amount) {
        uint256 balance = ERC20(token).balanceOf(address(this));
        amount = balance - recorded[token];
        recorded[token] = balance;
    }

    /// The amount of native coin that arrived since the last call.
    function recordNativeIn() external onlyController returns (uint256 amount) {
        amount = address(this).balance - recordedNative;
        recordedNative = address(this).balance;
    }

    function transferOut(address token, address receiver, uint256 amount) external onlyController {
        if (amount == 0) return;
        recorded[token] -= amount;
        ERC20(token).transfer(receiver, amount);
    }

    /// Pays native coin. A receiver that refuses it does not fail the caller: the amount stays here for it to claim.
    function payNative(address receiver, uint256 amount) external onlyController {
        if (amount == 0) return;
        recordedNative -= amount;
        (bool ok,) = receiver.call{value: amount, gas: NATIVE_TRANSFER_GAS}("");
        if (ok) return;
        recordedNative += amount;
        owed[receiver] += amount;
    }

    /// Sends native coin along with a call, or nothing if the call fails.
    function callWithNative(address target, uint256 amount, uint256 gasLimit, bytes calldata input)
        external
        onlyController
        returns (bool ok)
    {
        recordedNative -= amount;
        (ok,) = target.call{value: amount, gas: gasLimit}(input);
        if (!ok) recordedNative += amount;
    }

    /// Pays the caller what it could not receive before, to an address of its choice.
    function claim(address payable to) external {
        uint256 amount = owed[msg.sender];
        owed[msg.sender] = 0;
        recordedNative -= amount;
        (bool ok,) = to.call{value: amount}("");
        require(ok, "claim refused");
    }
}
