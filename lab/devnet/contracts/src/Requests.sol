// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";

/// @title The pending requests but orders, ABI-encoded in the DataStore: they outlive the handler that took them.
library Requests {
    bytes32 internal constant DEPOSIT = keccak256(abi.encode("DEPOSIT"));
    bytes32 internal constant WITHDRAWAL = keccak256(abi.encode("WITHDRAWAL"));
    bytes32 internal constant SHIFT = keccak256(abi.encode("SHIFT"));
    bytes32 internal constant GLV_DEPOSIT = keccak256(abi.encode("GLV_DEPOSIT"));
    bytes32 internal constant GLV_WITHDRAWAL = keccak256(abi.encode("GLV_WITHDRAWAL"));
    bytes32 internal constant GLV_SHIFT = keccak256(abi.encode("GLV_SHIFT"));

    /// Empty if there is no such request (any more).
    function load(DataStore dataStore, bytes32 kind, bytes32 key) internal view returns (bytes memory) {
        return dataStore.getBytes(keccak256(abi.encode(key, kind)));
    }

    function store(DataStore dataStore, bytes32 kind, bytes32 key, bytes memory request) internal {
        dataStore.setBytes(keccak256(abi.encode(key, kind)), request);
    }

    function remove(DataStore dataStore, bytes32 kind, bytes32 key) internal {
        dataStore.setBytes(keccak256(abi.encode(key, kind)), "");
    }
}
