// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Keys} from "./Keys.sol";

/// @title What of funding is another rule in v2.2c.
library FundingVersion {
    /// The saved factor of a market after an update while one of its sides is empty.
    function keptWhileEmpty(int256) internal pure returns (int256) {
        return 0;
    }

    /// A bound of the factor, whoever pays.
    function bound(DataStore dataStore, bytes32 baseKey, address market, bool) internal view returns (uint256) {
        return dataStore.getUint(Keys.ofAddress(baseKey, market));
    }

    /// The factor may grow as slowly as its rate says.
    function minIncreaseRate(DataStore, address) internal pure returns (uint256) {
        return 0;
    }
}
