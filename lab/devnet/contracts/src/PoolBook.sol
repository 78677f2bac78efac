// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Deposit} from "./Deposit.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {Market} from "./Market.sol";
import {MarketLedger} from "./MarketLedger.sol";
import {MarketToken} from "./MarketToken.sol";
import {Nonce} from "./Nonce.sol";
import {Oracle} from "./Oracle.sol";
import {PoolEvents} from "./PoolEvents.sol";
import {PoolShares} from "./PoolShares.sol";
import {Precision} from "./Precision.sol";
import {RoleModule} from "./RoleModule.sol";
import {RoleStore} from "./RoleStore.sol";
import {Shift} from "./Shift.sol";
import {Withdrawal} from "./Withdrawal.sol";

/// @title Deposits and withdrawals that are part of something else: of a shift, or of a request of a GLV.
/// Each is announced under a key of its own as created and executed in the same transaction: nobody has to execute it.
/// Whatever is paid in lies with the market token before the call.
contract PoolBook is RoleModule {
    using MarketLedger for MarketLedger.Books;

    DataStore public immutable dataStore;
    EventEmitter public immutable eventEmitter;
    Oracle public immutable oracle;

    constructor(RoleStore _roleStore, DataStore _dataStore, EventEmitter _eventEmitter, Oracle _oracle)
        RoleModule(_roleStore)
    {
        dataStore = _dataStore;
        eventEmitter = _eventEmitter;
        oracle = _oracle;
    }

    /// Takes the deposit's tokens into the pool and mints market tokens for its receiver.
    function deposit(Deposit.Props memory d, PoolEvents.Cause cause) public onlyController returns (uint256 minted) {
        Market.Props memory market = Market.loadEnabled(dataStore, d.market);
        bytes32 key = Nonce.nextKey(dataStore);
        d.initialLongToken = market.longToken;
        d.initialShortToken = market.shortToken;
        PoolEvents.depositCreated(eventEmitter, key, d, cause);
        minted = PoolShares.issued(
            dataStore, market, oracle.getMarketPrices(market), d.initialLongTokenAmount, d.initialShortTokenAmount
        );
        if (minted < d.minMarketTokens) revert Errors.MinMarketTokens(minted, d.minMarketTokens);
        MarketLedger.Books memory books = MarketLedger.Books(dataStore, eventEmitter);
        PoolShares.credit(books, d.market, market.longToken, d.initialLongTokenAmount);
        PoolShares.credit(books, d.market, market.shortToken, d.initialShortTokenAmount);
        MarketToken(d.market).mint(d.receiver, minted);
        PoolEvents.depositExecuted(eventEmitter, key, d, minted);
    }

    /// Burns the withdrawal's market tokens and pays its receiver out of the pool.
    function withdraw(Withdrawal.Props memory w, PoolEvents.Cause cause)
        public
        onlyController
        returns (uint256 longAmount, uint256 shortAmount)
    {
        Market.Props memory market = Market.loadEnabled(dataStore, w.market);
        Market.Prices memory prices = oracle.getMarketPrices(market);
        bytes32 key = Nonce.nextKey(dataStore);
        PoolEvents.withdrawalCreated(eventEmitter, key, w, cause);
        (longAmount, shortAmount) = PoolShares.redeemed(dataStore, market, prices, w.marketTokenAmount);
        if (longAmount < w.minLongTokenAmount) revert Errors.MinLongTokens(longAmount, w.minLongTokenAmount);
        if (shortAmount < w.minShortTokenAmount) revert Errors.MinShortTokens(shortAmount, w.minShortTokenAmount);
        MarketToken(w.market).burn(w.market, w.marketTokenAmount);
        MarketLedger.Books memory books = MarketLedger.Books(dataStore, eventEmitter);
        PoolShares.debit(books, market, prices, longAmount, shortAmount);
        MarketToken(w.market).transferOut(market.longToken, w.receiver, longAmount);
        MarketToken(w.market).transferOut(market.shortToken, w.receiver, shortAmount);
        PoolEvents.withdrawalExecuted(eventEmitter, key, w.account);
    }

    /// What so many of a market's tokens are worth in USD, at the highest or the lowest value of the pool; 1 USD each while
    /// there are none. Reverts for a pool that owes more than it holds.
    function usdOf(address glv, address marketToken, uint256 amount, bool maximize) external view returns (uint256) {
        Market.Props memory market = Market.loadEnabled(dataStore, marketToken);
        int256 pool = MarketLedger.poolValue(dataStore, market, oracle.getMarketPrices(market), maximize);
        if (pool < 0) revert Errors.GlvNegativeMarketPoolValue(glv, marketToken);
        uint256 supply = MarketToken(marketToken).totalSupply();
        if (supply == 0) return amount * (Precision.FLOAT_PRECISION / 1e18);
        return Precision.mulDiv(uint256(pool), amount, supply);
    }

    /// Moves liquidity between two pools of the same tokens: a withdrawal whose tokens are the deposit's.
    function shift(Shift.Props memory s) external onlyController returns (uint256 minted) {
        Withdrawal.Props memory w;
        w.account = s.account;
        w.receiver = s.toMarket;
        w.market = s.fromMarket;
        w.marketTokenAmount = s.marketTokenAmount;
        w.updatedAtTime = s.updatedAtTime;
        (uint256 longAmount, uint256 shortAmount) = this.withdraw(w, PoolEvents.Cause.Shift);

        Deposit.Props memory d;
        d.account = s.account;
        d.receiver = s.receiver;
        d.market = s.toMarket;
        d.initialLongTokenAmount = longAmount;
        d.initialShortTokenAmount = shortAmount;
        d.minMarketTokens = s.minMarketTokens;
        d.updatedAtTime = s.updatedAtTime;
        return this.deposit(d, PoolEvents.Cause.Shift);
    }
}
