// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Reading and rethrowing the reason of a failed call.
library ErrorReason {
    bytes4 private constant ERROR_STRING = bytes4(keccak256("Error(string)"));

    /// The first four bytes, or zero if there are fewer.
    function selectorOf(bytes memory reason) internal pure returns (bytes4 selector) {
        if (reason.length < 4) return 0;
        assembly ("memory-safe") {
            selector := mload(add(reason, 0x20))
        }
    }

    /// The text of a plain revert; empty for custom errors and for anything malformed.
    function textOf(bytes memory reason) internal pure returns (string memory) {
        if (selectorOf(reason) != ERROR_STRING || reason.length < 68) return "";
        uint256 length;
        assembly ("memory-safe") {
            length := mload(add(reason, 0x44))
        }
        if (length > reason.length - 68) return "";
        bytes memory text = new bytes(length);
        for (uint256 i; i < length; i++) {
            text[i] = reason[68 + i];
        }
        return string(text);
    }

    function rethrow(bytes memory reason) internal pure {
        assembly ("memory-safe") {
            revert(add(reason, 0x20), mload(reason))
        }
    }
}
