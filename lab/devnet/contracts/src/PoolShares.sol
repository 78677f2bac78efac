// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {MarketLedger} from "./MarketLedger.sol";
import {MarketToken} from "./MarketToken.sol";
import {Precision} from "./Precision.sol";

/// @title What market tokens are given for, and paid with: the share of a pool.
library PoolShares {
    using MarketLedger for MarketLedger.Books;

    /// The tokens' value at the lowest prices, in market tokens at the highest value of the pool; 1 USD each for the first
    /// deposit.
    function issued(
        DataStore dataStore,
        Market.Props memory market,
        Market.Prices memory prices,
        uint256 longAmount,
        uint256 shortAmount
    ) internal view returns (uint256) {
        uint256 usd = longAmount * prices.longTokenPrice.min + shortAmount * prices.shortTokenPrice.min;
        uint256 supply = MarketToken(market.marketToken).totalSupply();
        if (supply == 0) return usd * 1e18 / Precision.FLOAT_PRECISION;
        int256 value = MarketLedger.poolValue(dataStore, market, prices, true);
        if (value <= 0) revert Errors.InvalidPoolValueForDeposit(value);
        return Precision.mulDiv(supply, usd, uint256(value));
    }

    /// The share of the pool at its lowest value, in both tokens in the proportion in which the pool holds them.
    function redeemed(
        DataStore dataStore,
        Market.Props memory market,
        Market.Prices memory prices,
        uint256 marketTokenAmount
    ) internal view returns (uint256 longAmount, uint256 shortAmount) {
        int256 value = MarketLedger.poolValue(dataStore, market, prices, false);
        if (value <= 0) revert Errors.InvalidPoolValueForWithdrawal(value);
        uint256 supply = MarketToken(market.marketToken).totalSupply();
        uint256 usd = Precision.mulDiv(uint256(value), marketTokenAmount, supply);
        uint256 longPool = dataStore.getUint(Keys.poolAmountKey(market.marketToken, market.longToken));
        uint256 shortPool = dataStore.getUint(Keys.poolAmountKey(market.marketToken, market.shortToken));
        uint256 poolUsd = longPool * prices.longTokenPrice.max + shortPool * prices.shortTokenPrice.max;
        longAmount = Precision.mulDiv(longPool, usd, poolUsd);
        shortAmount = Precision.mulDiv(shortPool, usd, poolUsd);
    }

    /// Adds tokens to a pool. The limit keeps the sums of a market, whose tokens anyone may mint, far from overflow.
    function credit(MarketLedger.Books memory books, address market, address token, uint256 amount) internal {
        if (amount == 0) return;
        books.applyToPool(market, token, Precision.signed(amount));
        uint256 pool = books.dataStore.getUint(Keys.poolAmountKey(market, token));
        uint256 limit = books.dataStore.getUint(Keys.maxPoolAmountKey(market, token));
        if (pool > limit) revert Errors.MaxPoolAmountExceeded(pool, limit);
    }

    /// Takes tokens from a pool, which must stay able to pay the open positions.
    function debit(
        MarketLedger.Books memory books,
        Market.Props memory market,
        Market.Prices memory prices,
        uint256 longAmount,
        uint256 shortAmount
    ) internal {
        books.applyToPool(market.marketToken, market.longToken, -Precision.signed(longAmount));
        books.applyToPool(market.marketToken, market.shortToken, -Precision.signed(shortAmount));
        MarketLedger.validateReserve(books.dataStore, market, prices, true);
        MarketLedger.validateReserve(books.dataStore, market, prices, false);
    }
}
