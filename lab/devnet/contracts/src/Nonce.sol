// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Keys} from "./Keys.sol";

/// @title The key of a new request: keccak256(abi.encode(dataStore, nonce)), one counter for all kinds.
library Nonce {
    function nextKey(DataStore dataStore) internal returns (bytes32) {
        return keccak256(abi.encode(address(dataStore), dataStore.incrementUint(Keys.NONCE, 1)));
    }
}
