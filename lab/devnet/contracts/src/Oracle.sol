// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {IOracleProvider, SetPricesParams, ValidatedPrice} from "./OracleParams.sol";
import {Price} from "./Price.sol";
import {RoleModule} from "./RoleModule.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title The prices of one execution. Set before it, cleared after it, so no price outlives its transaction.
contract Oracle is RoleModule {
    using EventUtils for EventUtils.EventLogData;

    DataStore public immutable dataStore;
    EventEmitter public immutable eventEmitter;

    mapping(address token => Price.Props) private primaryPrices;
    address[] private tokensWithPrices;
    /// The oldest and the youngest timestamp of the current prices, in seconds.
    uint256 public minTimestamp;
    uint256 public maxTimestamp;

    constructor(RoleStore _roleStore, DataStore _dataStore, EventEmitter _eventEmitter) RoleModule(_roleStore) {
        dataStore = _dataStore;
        eventEmitter = _eventEmitter;
    }

    function setPrices(SetPricesParams calldata params) external onlyController {
        uint256 n = params.tokens.length;
        if (tokensWithPrices.length != 0) revert Errors.NonEmptyTokensWithPrices(tokensWithPrices.length);
        if (n == 0) revert Errors.EmptyValidatedPrices();
        if (params.providers.length != n) {
            revert Errors.InvalidOracleSetPricesProvidersParam(n, params.providers.length);
        }
        if (params.data.length != n) revert Errors.InvalidOracleSetPricesDataParam(n, params.data.length);

        uint256 oldest = type(uint256).max;
        uint256 youngest;
        for (uint256 i; i < n; i++) {
            ValidatedPrice memory price = _validatedPrice(params.tokens[i], params.providers[i], params.data[i]);
            if (price.timestamp < oldest) oldest = price.timestamp;
            if (price.timestamp > youngest) youngest = price.timestamp;
            _setPrimaryPrice(price);
        }
        uint256 maxRange = dataStore.getUint(Keys.MAX_ORACLE_TIMESTAMP_RANGE);
        if (youngest - oldest > maxRange) revert Errors.MaxOracleTimestampRangeExceeded(youngest - oldest, maxRange);
        minTimestamp = oldest;
        maxTimestamp = youngest;
    }

    function clearAllPrices() external onlyController {
        for (uint256 i; i < tokensWithPrices.length; i++) {
            delete primaryPrices[tokensWithPrices[i]];
        }
        delete tokensWithPrices;
        minTimestamp = 0;
        maxTimestamp = 0;
    }

    /// The prices a market needs; reverts with EmptyPrimaryPrice if the keeper left one out.
    function getMarketPrices(Market.Props calldata market) external view returns (Market.Prices memory) {
        return Market.Prices(
            getPrimaryPrice(market.indexToken), getPrimaryPrice(market.longToken), getPrimaryPrice(market.shortToken)
        );
    }

    function getPrimaryPrice(address token) public view returns (Price.Props memory price) {
        if (token == address(0)) return price; // The index of a market that only swaps.
        price = primaryPrices[token];
        if (price.max == 0) revert Errors.EmptyPrimaryPrice(token);
    }

    function _validatedPrice(address token, address provider, bytes calldata data)
        private
        view
        returns (ValidatedPrice memory price)
    {
        if (!dataStore.getBool(Keys.ofAddress(Keys.IS_ORACLE_PROVIDER_ENABLED, provider))) {
            revert Errors.InvalidOracleProvider(provider);
        }
        address expected = dataStore.getAddress(Keys.oracleProviderForTokenKey(address(this), token));
        if (provider != expected) revert Errors.InvalidOracleProviderForToken(provider, expected);
        price = IOracleProvider(provider).getOraclePrice(token, data);
        if (price.min == 0 || price.min > price.max) {
            revert Errors.InvalidMinMaxForPrice(token, price.min, price.max);
        }
        if (price.timestamp + dataStore.getUint(Keys.MAX_ORACLE_PRICE_AGE) < block.timestamp) {
            revert Errors.MaxPriceAgeExceeded(price.timestamp, block.timestamp);
        }
    }

    function _setPrimaryPrice(ValidatedPrice memory price) private {
        Price.Props storage existing = primaryPrices[price.token];
        if (existing.max != 0) revert Errors.PriceAlreadySet(price.token, existing.min, existing.max);
        primaryPrices[price.token] = Price.Props(price.min, price.max);
        tokensWithPrices.push(price.token);

        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("token", price.token);
        e.put("provider", price.provider);
        e.putUint("minPrice", price.min);
        e.putUint("maxPrice", price.max);
        e.putUint("timestamp", price.timestamp);
        eventEmitter.emitEventLog1("OraclePriceUpdate", EventUtils.topic(price.token), e);
    }
}
