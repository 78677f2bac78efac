// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Keys} from "./Keys.sol";

/// @title What of funding is another rule in v2.2b.
library FundingVersion {
    /// The saved factor of a market after an update while one of its sides is empty.
    function keptWhileEmpty(int256 saved) internal pure returns (int256) {
        return saved;
    }

    /// A bound of the factor while that side pays.
    function bound(DataStore dataStore, bytes32 baseKey, address market, bool isLong) internal view returns (uint256) {
        return dataStore.getUint(Keys.ofMarketFlag(baseKey, market, isLong));
    }

    /// The least by which the factor grows per second while it grows at all.
    function minIncreaseRate(DataStore dataStore, address market) internal view returns (uint256) {
        return dataStore.getUint(Keys.ofAddress(Keys.MIN_FUNDING_INCREASE_RATE_PER_SECOND, market));
    }
}
