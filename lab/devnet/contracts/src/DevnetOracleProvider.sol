// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {Keys} from "./Keys.sol";
import {IOracleProvider, ValidatedPrice} from "./OracleParams.sol";

/// @title Accepts price reports signed by the devnet's price feed.
/// A report is abi.encode(token, min, max, timestamp, v, r, s); the signature covers
/// keccak256(abi.encode(chainid, token, min, max, timestamp)).
contract DevnetOracleProvider is IOracleProvider {
    DataStore public immutable dataStore;

    constructor(DataStore _dataStore) {
        dataStore = _dataStore;
    }

    function getOraclePrice(address token, bytes calldata data) external view returns (ValidatedPrice memory) {
        (address reported, uint256 min, uint256 max, uint256 timestamp, uint8 v, bytes32 r, bytes32 s) =
            abi.decode(data, (address, uint256, uint256, uint256, uint8, bytes32, bytes32));
        if (reported != token) revert Errors.InvalidToken(reported);
        bytes32 digest = keccak256(abi.encode(block.chainid, token, min, max, timestamp));
        address signer = ecrecover(digest, v, r, s);
        if (signer == address(0) || signer != dataStore.getAddress(Keys.DEVNET_ORACLE_SIGNER)) {
            revert Errors.InvalidOracleSigner(signer);
        }
        return ValidatedPrice(token, min, max, timestamp, address(this));
    }
}
