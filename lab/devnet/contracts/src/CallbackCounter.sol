// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title A callback contract that counts what it is told, and takes refunds.
contract CallbackCounter {
    mapping(bytes4 selector => uint256) public calls;

    receive() external payable {}

    fallback() external payable {
        calls[msg.sig]++;
    }
}
