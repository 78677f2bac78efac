// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {RoleModule} from "./RoleModule.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title Parameters and sums, by key (see Keys).
/// Writing here emits nothing: whoever wants a change to be visible in the log goes through Config.
contract DataStore is RoleModule {
    mapping(bytes32 key => uint256) public getUint;
    mapping(bytes32 key => int256) public getInt;
    mapping(bytes32 key => bool) public getBool;
    mapping(bytes32 key => address) public getAddress;
    mapping(bytes32 key => bytes32) public getBytes32;
    mapping(bytes32 key => bytes) public getBytes;
    mapping(bytes32 setKey => address[]) private addressSets;

    constructor(RoleStore _roleStore) RoleModule(_roleStore) {}

    function setUint(bytes32 key, uint256 value) external onlyController {
        getUint[key] = value;
    }

    function setInt(bytes32 key, int256 value) external onlyController {
        getInt[key] = value;
    }

    function setBool(bytes32 key, bool value) external onlyController {
        getBool[key] = value;
    }

    function setAddress(bytes32 key, address value) external onlyController {
        getAddress[key] = value;
    }

    function setBytes32(bytes32 key, bytes32 value) external onlyController {
        getBytes32[key] = value;
    }

    /// An empty value takes away what is there.
    function setBytes(bytes32 key, bytes calldata value) external onlyController {
        getBytes[key] = value;
    }

    /// Adds to a set of addresses. Whoever adds makes sure that it is not in it yet.
    function addAddress(bytes32 setKey, address value) external onlyController {
        addressSets[setKey].push(value);
    }

    function getAddressCount(bytes32 setKey) external view returns (uint256) {
        return addressSets[setKey].length;
    }

    /// The values from start up to end, exclusive; end is cut to the size of the set.
    function getAddressValuesAt(bytes32 setKey, uint256 start, uint256 end)
        external
        view
        returns (address[] memory values)
    {
        address[] storage all = addressSets[setKey];
        if (end > all.length) end = all.length;
        if (start >= end) return values;
        values = new address[](end - start);
        for (uint256 i = start; i < end; i++) {
            values[i - start] = all[i];
        }
    }

    /// Adds to a number and returns the sum, in one call.
    function incrementUint(bytes32 key, uint256 value) external onlyController returns (uint256) {
        return getUint[key] += value;
    }
}
