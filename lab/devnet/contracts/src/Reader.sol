// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AdlState} from "./AdlState.sol";
import {DataStore} from "./DataStore.sol";
import {Market} from "./Market.sol";

/// @title What an onlooker asks by call; the name and the answers are the original's.
contract Reader {
    /// When the side was compared last (seconds), whether it has gained too much at these prices, its profits over its
    /// pool, and the limit, with 30 decimals.
    function getAdlState(DataStore dataStore, address market, bool isLong, Market.Prices memory prices)
        external
        view
        returns (uint256 latestAdlAt, bool shouldEnableAdl, int256 pnlToPoolFactor, uint256 maxPnlFactor)
    {
        latestAdlAt = AdlState.latestAt(dataStore, market, isLong);
        pnlToPoolFactor = AdlState.pnlToPoolFactor(dataStore, Market.load(dataStore, market), prices, isLong);
        maxPnlFactor = AdlState.limit(dataStore, market, isLong);
        shouldEnableAdl = AdlState.exceeds(pnlToPoolFactor, maxPnlFactor);
    }
}
