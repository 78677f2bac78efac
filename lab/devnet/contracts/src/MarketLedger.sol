// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {Precision} from "./Precision.sol";
import {Price} from "./Price.sol";

/// @title The sums of a market. Every change of a sum emits its delta and its next value.
library MarketLedger {
    using EventUtils for EventUtils.EventLogData;
    using Price for Price.Props;

    /// Where the sums live and who announces them.
    struct Books {
        DataStore dataStore;
        EventEmitter eventEmitter;
    }

    /// One line of positions: a market, the collateral token and the side.
    struct Line {
        address market;
        address collateralToken;
        bool isLong;
    }

    /// Reverts with InsufficientPoolAmount rather than let the pool go below zero.
    function applyToPool(Books memory books, address market, address token, int256 delta) public {
        bytes32 key = Keys.poolAmountKey(market, token);
        uint256 current = books.dataStore.getUint(key);
        if (delta < 0 && uint256(-delta) > current) revert Errors.InsufficientPoolAmount(current, uint256(-delta));
        uint256 next = _write(books, key, current, delta);
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("market", market);
        e.put("token", token);
        e.putInt("delta", delta);
        e.putUint("nextValue", next);
        books.eventEmitter.emitEventLog1("PoolAmountUpdated", EventUtils.topic(market), e);
        _applyToVirtualInventory(books, market, token, delta);
    }

    function applyToSwapImpactPool(Books memory books, address market, address token, int256 delta) public {
        bytes32 key = Keys.swapImpactPoolAmountKey(market, token);
        uint256 next = _write(books, key, books.dataStore.getUint(key), delta);
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("market", market);
        e.put("token", token);
        e.putInt("delta", delta);
        e.putUint("nextValue", next);
        books.eventEmitter.emitEventLog1("SwapImpactPoolAmountUpdated", EventUtils.topic(market), e);
    }

    /// What earlier swaps have left of a token to pay those that make the pool more even.
    function swapImpactPool(DataStore dataStore, address market, address token) internal view returns (uint256) {
        return dataStore.getUint(Keys.swapImpactPoolAmountKey(market, token));
    }

    /// Reverts with MaxPoolAmountExceeded if the pool holds more of a token than it may. The limit also keeps the sums of a market,
    /// whose tokens anyone may mint, far from overflow.
    function validatePool(DataStore dataStore, address market, address token) public view {
        uint256 pool = dataStore.getUint(Keys.poolAmountKey(market, token));
        uint256 limit = dataStore.getUint(Keys.maxPoolAmountKey(market, token));
        if (pool > limit) revert Errors.MaxPoolAmountExceeded(pool, limit);
    }

    function applyToOpenInterest(Books memory books, Line memory line, int256 delta) public {
        bytes32 key = Keys.openInterestKey(line.market, line.collateralToken, line.isLong);
        _applyToLine(books, "OpenInterestUpdated", key, line, delta);
    }

    function applyToOpenInterestInTokens(Books memory books, Line memory line, int256 delta) public {
        bytes32 key = Keys.openInterestInTokensKey(line.market, line.collateralToken, line.isLong);
        _applyToLine(books, "OpenInterestInTokensUpdated", key, line, delta);
    }

    function applyToCollateralSum(Books memory books, Line memory line, int256 delta) public {
        bytes32 key = Keys.collateralSumKey(line.market, line.collateralToken, line.isLong);
        _applyToLine(books, "CollateralSumUpdated", key, line, delta);
    }

    /// Open interest of one side in USD, over both collateral tokens.
    function openInterest(DataStore dataStore, Market.Props memory market, bool isLong)
        internal
        view
        returns (uint256)
    {
        return dataStore.getUint(Keys.openInterestKey(market.marketToken, market.longToken, isLong))
            + dataStore.getUint(Keys.openInterestKey(market.marketToken, market.shortToken, isLong));
    }

    /// Open interest of one side in index tokens, over both collateral tokens.
    function openInterestInTokens(DataStore dataStore, Market.Props memory market, bool isLong)
        internal
        view
        returns (uint256)
    {
        return dataStore.getUint(Keys.openInterestInTokensKey(market.marketToken, market.longToken, isLong))
            + dataStore.getUint(Keys.openInterestInTokensKey(market.marketToken, market.shortToken, isLong));
    }

    /// What the pool is worth in USD: its tokens, less what it owes to the open positions at the index price.
    /// Deposits take the highest value that the spread allows and withdrawals the lowest, in favour of those who stay.
    function poolValue(DataStore dataStore, Market.Props memory market, Market.Prices memory prices, bool maximize)
        public
        view
        returns (int256)
    {
        uint256 tokens = poolUsd(dataStore, market, prices, true, maximize) + poolUsd(dataStore, market, prices, false, maximize);
        return Precision.signed(tokens) - pnl(dataStore, market, prices.indexTokenPrice.pick(!maximize), true)
            - pnl(dataStore, market, prices.indexTokenPrice.pick(maximize), false);
    }

    /// Reverts with InsufficientReserve unless the pool could pay the largest profit of the side, times RESERVE_FACTOR.
    function validateReserve(
        DataStore dataStore,
        Market.Props memory market,
        Market.Prices memory prices,
        bool isLong
    ) public view {
        uint256 reserved = isLong
            ? openInterestInTokens(dataStore, market, true) * prices.indexTokenPrice.max
            : openInterest(dataStore, market, false);
        uint256 factor = dataStore.getUint(Keys.ofMarketFlag(Keys.RESERVE_FACTOR, market.marketToken, isLong));
        uint256 available = Precision.applyFactor(poolUsd(dataStore, market, prices, isLong, false), factor);
        if (reserved > available) revert Errors.InsufficientReserve(reserved, available);
    }

    /// What the pool holds of its long or its short token.
    function poolUsd(
        DataStore dataStore,
        Market.Props memory market,
        Market.Prices memory prices,
        bool long,
        bool maximize
    ) internal view returns (uint256) {
        address token = long ? market.longToken : market.shortToken;
        uint256 amount = dataStore.getUint(Keys.poolAmountKey(market.marketToken, token));
        return amount * Market.priceOf(market, prices, token).pick(maximize);
    }

    /// Profit of one side's positions together, negative for a loss.
    function pnl(DataStore dataStore, Market.Props memory market, uint256 price, bool isLong)
        internal
        view
        returns (int256)
    {
        int256 cost = Precision.signed(openInterest(dataStore, market, isLong));
        int256 value = Precision.signed(openInterestInTokens(dataStore, market, isLong) * price);
        return isLong ? value - cost : cost - value;
    }

    function _applyToLine(Books memory books, string memory name, bytes32 key, Line memory line, int256 delta) private {
        uint256 next = _write(books, key, books.dataStore.getUint(key), delta);
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("market", line.market);
        e.put("collateralToken", line.collateralToken);
        e.putBool("isLong", line.isLong);
        e.putInt("delta", delta);
        e.putUint("nextValue", next);
        books.eventEmitter.emitEventLog1(name, EventUtils.topic(line.market), e);
    }

    /// Markets with a virtual market share an inventory, which follows their pools and stops at zero.
    function _applyToVirtualInventory(Books memory books, address market, address token, int256 delta) private {
        bytes32 id = books.dataStore.getBytes32(Keys.ofAddress(Keys.VIRTUAL_MARKET_ID, market));
        if (id == bytes32(0)) return;
        bool isLong = Market.isLongToken(books.dataStore, market, token);
        bytes32 key = Keys.virtualInventoryForSwapsKey(id, isLong);
        uint256 current = books.dataStore.getUint(key);
        if (delta < 0 && uint256(-delta) > current) delta = -Precision.signed(current);
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("market", market);
        e.putBool("isLongToken", isLong);
        e.putBytes32("virtualMarketId", id);
        e.putInt("delta", delta);
        e.putUint("nextValue", _write(books, key, current, delta));
        books.eventEmitter.emitEventLog2("VirtualSwapInventoryUpdated", EventUtils.topic(market), id, e);
    }

    function _write(Books memory books, bytes32 key, uint256 current, int256 delta) private returns (uint256 next) {
        next = delta < 0 ? current - uint256(-delta) : current + uint256(delta);
        books.dataStore.setUint(key, next);
    }
}
