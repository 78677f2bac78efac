// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {Keys} from "./Keys.sol";
import {Price} from "./Price.sol";

/// @title A market: what is traded (index) and the two tokens of its pool. Its address is that of its market token.
/// A market's long and short token differ. One without an index token only swaps.
library Market {
    struct Props {
        address marketToken;
        address indexToken;
        address longToken;
        address shortToken;
    }

    struct Prices {
        Price.Props indexTokenPrice;
        Price.Props longTokenPrice;
        Price.Props shortTokenPrice;
    }

    bytes32 private constant MARKET_LIST = keccak256(abi.encode("MARKET_LIST"));
    bytes32 private constant MARKET_TOKEN = keccak256(abi.encode("MARKET_TOKEN"));
    bytes32 private constant INDEX_TOKEN = keccak256(abi.encode("INDEX_TOKEN"));
    bytes32 private constant LONG_TOKEN = keccak256(abi.encode("LONG_TOKEN"));
    bytes32 private constant SHORT_TOKEN = keccak256(abi.encode("SHORT_TOKEN"));

    function store(DataStore dataStore, Props memory market) internal {
        address key = market.marketToken;
        dataStore.addAddress(MARKET_LIST, key);
        dataStore.setAddress(keccak256(abi.encode(key, MARKET_TOKEN)), market.marketToken);
        dataStore.setAddress(keccak256(abi.encode(key, INDEX_TOKEN)), market.indexToken);
        dataStore.setAddress(keccak256(abi.encode(key, LONG_TOKEN)), market.longToken);
        dataStore.setAddress(keccak256(abi.encode(key, SHORT_TOKEN)), market.shortToken);
    }

    /// Reverts with EmptyMarket for an unknown address.
    function load(DataStore dataStore, address key) internal view returns (Props memory market) {
        market.marketToken = dataStore.getAddress(keccak256(abi.encode(key, MARKET_TOKEN)));
        if (market.marketToken == address(0)) revert Errors.EmptyMarket();
        market.indexToken = dataStore.getAddress(keccak256(abi.encode(key, INDEX_TOKEN)));
        market.longToken = dataStore.getAddress(keccak256(abi.encode(key, LONG_TOKEN)));
        market.shortToken = dataStore.getAddress(keccak256(abi.encode(key, SHORT_TOKEN)));
    }

    /// Like load, and reverts with DisabledMarket if the market is switched off.
    function loadEnabled(DataStore dataStore, address key) internal view returns (Props memory market) {
        market = load(dataStore, key);
        if (dataStore.getBool(Keys.ofAddress(Keys.IS_MARKET_DISABLED, key))) revert Errors.DisabledMarket(key);
    }

    /// Like loadEnabled, and reverts with InvalidPositionMarket if the market only swaps.
    function loadForPositions(DataStore dataStore, address key) internal view returns (Props memory market) {
        market = loadEnabled(dataStore, key);
        if (market.indexToken == address(0)) revert Errors.InvalidPositionMarket(key);
    }

    /// Whether a token is the long token of a market.
    function isLongToken(DataStore dataStore, address key, address token) internal view returns (bool) {
        return token == dataStore.getAddress(keccak256(abi.encode(key, LONG_TOKEN)));
    }

    function requireCollateral(Props memory market, address token) internal pure {
        if (token != market.longToken && token != market.shortToken) {
            revert Errors.InvalidCollateralTokenForMarket(market.marketToken, token);
        }
    }

    /// The other one of the market's pool tokens.
    function opposite(Props memory market, address token) internal pure returns (address) {
        return token == market.longToken ? market.shortToken : market.longToken;
    }

    /// The price of one of the market's pool tokens.
    function priceOf(Props memory market, Prices memory prices, address token)
        internal
        pure
        returns (Price.Props memory)
    {
        return token == market.longToken ? prices.longTokenPrice : prices.shortTokenPrice;
    }
}
