// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title A callback contract that uses up all the gas it is given, whatever it is told, and so takes no refund either.
contract GasBurner {
    fallback() external payable {
        while (true) {}
    }
}
