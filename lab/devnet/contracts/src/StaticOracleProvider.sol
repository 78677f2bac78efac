// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {Keys} from "./Keys.sol";
import {IOracleProvider, ValidatedPrice} from "./OracleParams.sol";

/// @title Answers with the price that Config froze for a token, as of now. Reports are ignored.
contract StaticOracleProvider is IOracleProvider {
    DataStore public immutable dataStore;

    constructor(DataStore _dataStore) {
        dataStore = _dataStore;
    }

    /// Lower and upper price are given the wrong way round, as by the original's: only a price without a spread passes.
    function getOraclePrice(address token, bytes calldata) external view returns (ValidatedPrice memory) {
        uint256 min = dataStore.getUint(Keys.staticOraclePriceKey(token, true));
        uint256 max = dataStore.getUint(Keys.staticOraclePriceKey(token, false));
        if (min == 0 || max == 0) revert Errors.StaticPriceNotSet(token);
        return ValidatedPrice(token, min, max, block.timestamp, address(this));
    }
}
