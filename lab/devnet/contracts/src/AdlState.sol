// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {MarketLedger} from "./MarketLedger.sol";
import {Precision} from "./Precision.sol";

/// @title When a side of a market is to be deleveraged: its positions have gained more than a part of the pool.
///
///   factor   = profits of the side, at the index price that is better for it, * 1e30 / what the pool holds to pay them, at
///              the lower price; the quotient is rounded towards zero, and is 0 for an empty pool
///   exceeded <=> factor > 0 and factor > MAX_PNL_FACTOR(MAX_PNL_FACTOR_FOR_ADL, market, side)
/// After each deleveraging the factor must be lower than before, and not below MIN_PNL_FACTOR_AFTER_ADL(market, side).
library AdlState {
    function pnlToPoolFactor(
        DataStore dataStore,
        Market.Props memory market,
        Market.Prices memory prices,
        bool isLong
    ) internal view returns (int256) {
        uint256 pool = MarketLedger.poolUsd(dataStore, market, prices, isLong, false);
        if (pool == 0) return 0;
        uint256 price = isLong ? prices.indexTokenPrice.max : prices.indexTokenPrice.min;
        int256 pnl = MarketLedger.pnl(dataStore, market, price, isLong);
        return pnl * int256(Precision.FLOAT_PRECISION) / Precision.signed(pool);
    }

    function limit(DataStore dataStore, address market, bool isLong) internal view returns (uint256) {
        return maxPnlFactor(dataStore, Keys.MAX_PNL_FACTOR_FOR_ADL, market, isLong);
    }

    /// The limit of a side's profits for one purpose.
    function maxPnlFactor(DataStore dataStore, bytes32 purpose, address market, bool isLong)
        internal
        view
        returns (uint256)
    {
        return dataStore.getUint(keccak256(abi.encode(Keys.MAX_PNL_FACTOR, purpose, market, isLong)));
    }

    function exceeds(int256 factor, uint256 max) internal pure returns (bool) {
        return factor > 0 && uint256(factor) > max;
    }

    function isEnabled(DataStore dataStore, address market, bool isLong) internal view returns (bool) {
        return dataStore.getBool(Keys.ofMarketFlag(Keys.IS_ADL_ENABLED, market, isLong));
    }

    function set(DataStore dataStore, address market, bool isLong, bool enabled) internal {
        dataStore.setBool(Keys.ofMarketFlag(Keys.IS_ADL_ENABLED, market, isLong), enabled);
        dataStore.setUint(Keys.ofMarketFlag(Keys.LATEST_ADL_AT, market, isLong), block.timestamp);
    }

    function latestAt(DataStore dataStore, address market, bool isLong) internal view returns (uint256) {
        return dataStore.getUint(Keys.ofMarketFlag(Keys.LATEST_ADL_AT, market, isLong));
    }

    /// Prices from before the last update decide nothing.
    function validateTimestamp(DataStore dataStore, address market, bool isLong, uint256 youngest) internal view {
        uint256 latest = latestAt(dataStore, market, isLong);
        if (youngest < latest) revert Errors.OracleTimestampsAreSmallerThanRequired(youngest, latest);
    }
}
