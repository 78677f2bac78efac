// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AdlState} from "./AdlState.sol";
import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {MarketLedger} from "./MarketLedger.sol";
import {Oracle} from "./Oracle.sol";
import {RoleModule} from "./RoleModule.sol";
import {RoleStore} from "./RoleStore.sol";
import {SwapHop} from "./SwapHop.sol";

/// Whoever holds tokens for others: a vault of requests, or a market token.
interface ITokenHolder {
    function transferOut(address token, address receiver, uint256 amount) external;
}

/// What is to be swapped: an amount that `bank` holds, along a path of markets, for `receiver`. feeKey is the base key of the fee's factor.
struct SwapParams {
    bytes32 key;
    bytes32 feeKey;
    address bank;
    address tokenIn;
    uint256 amountIn;
    address[] path;
    uint256 minOutputAmount;
    address receiver;
    address uiFeeReceiver;
}

/// @title Swaps along paths of markets, at the prices of the execution under way.
contract SwapHandler is RoleModule {
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

    /// Swaps everything or reverts. Without a path the tokens only move. Nothing to swap is no failure, whatever the minimum.
    function swap(SwapParams calldata p) external onlyController returns (address token, uint256 amount) {
        token = p.tokenIn;
        amount = p.amountIn;
        if (amount == 0) return (token, amount);
        if (p.path.length == 0) {
            if (amount < p.minOutputAmount) revert Errors.InsufficientOutputAmount(amount, p.minOutputAmount);
            _move(p.bank, token, p.receiver, amount);
            return (token, amount);
        }
        _move(p.bank, token, p.path[0], amount);
        for (uint256 i; i < p.path.length; i++) {
            for (uint256 j; j < i; j++) {
                if (p.path[j] == p.path[i]) revert Errors.DuplicatedMarketInSwapPath(p.path[i]);
            }
            address next = i + 1 < p.path.length ? p.path[i + 1] : p.receiver;
            (token, amount) = _swapOnce(p, p.path[i], token, amount, next);
        }
        if (amount < p.minOutputAmount) revert Errors.InsufficientSwapOutputAmount(amount, p.minOutputAmount);
    }

    /// The worth of an amount at the lowest price, USD with 30 decimals.
    function worth(address token, uint256 amount) external view returns (uint256) {
        return amount == 0 ? 0 : amount * oracle.getPrimaryPrice(token).min;
    }

    function _swapOnce(SwapParams calldata p, address market, address tokenIn, uint256 amountIn, address receiver)
        private
        returns (address, uint256)
    {
        MarketLedger.Books memory books = MarketLedger.Books(dataStore, eventEmitter);
        SwapHop.Props memory h;
        h.key = p.key;
        h.feeKey = p.feeKey;
        h.market = Market.loadEnabled(dataStore, market);
        if (tokenIn != h.market.longToken && tokenIn != h.market.shortToken) revert Errors.InvalidTokenIn(tokenIn, market);
        h.tokenIn = tokenIn;
        h.tokenOut = Market.opposite(h.market, tokenIn);
        h.amountIn = amountIn;
        h.receiver = receiver;
        h.uiFeeReceiver = p.uiFeeReceiver;
        h.inPrice = oracle.getPrimaryPrice(tokenIn);
        h.outPrice = oracle.getPrimaryPrice(h.tokenOut);
        SwapHop.settle(books, h);
        _move(market, h.tokenOut, receiver, h.amountOut);
        MarketLedger.validatePool(dataStore, market, tokenIn);
        Market.Prices memory prices = oracle.getMarketPrices(h.market);
        MarketLedger.validateReserve(dataStore, h.market, prices, h.tokenOut == h.market.longToken);
        _validateProfits(h, prices);
        SwapHop.announce(books, h);
        return (h.tokenOut, h.amountOut);
    }

    /// While a side's positions have gained too much of the pool, nobody may take out what is to pay them; more of it may come in for as long
    /// as the limit for deposits allows.
    function _validateProfits(SwapHop.Props memory h, Market.Prices memory prices) private view {
        (bytes32 forLongs, bytes32 forShorts) = h.tokenIn == h.market.longToken
            ? (Keys.MAX_PNL_FACTOR_FOR_DEPOSITS, Keys.MAX_PNL_FACTOR_FOR_WITHDRAWALS)
            : (Keys.MAX_PNL_FACTOR_FOR_WITHDRAWALS, Keys.MAX_PNL_FACTOR_FOR_DEPOSITS);
        address market = h.market.marketToken;
        int256 factor = AdlState.pnlToPoolFactor(dataStore, h.market, prices, true);
        uint256 limit = AdlState.maxPnlFactor(dataStore, forLongs, market, true);
        if (AdlState.exceeds(factor, limit)) revert Errors.PnlFactorExceededForLongs(factor, limit);
        factor = AdlState.pnlToPoolFactor(dataStore, h.market, prices, false);
        limit = AdlState.maxPnlFactor(dataStore, forShorts, market, false);
        if (AdlState.exceeds(factor, limit)) revert Errors.PnlFactorExceededForShorts(factor, limit);
    }

    function _move(address from, address token, address to, uint256 amount) private {
        if (from != to) ITokenHolder(from).transferOut(token, to, amount);
    }
}
