// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {Market} from "./Market.sol";
import {MarketToken} from "./MarketToken.sol";
import {RoleModule} from "./RoleModule.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title Creates markets, at addresses that depend on this factory and the market's tokens alone.
contract MarketFactory is RoleModule {
    using EventUtils for EventUtils.EventLogData;

    DataStore public immutable dataStore;
    EventEmitter public immutable eventEmitter;
    mapping(bytes32 salt => address) public marketOf;

    constructor(RoleStore _roleStore, DataStore _dataStore, EventEmitter _eventEmitter) RoleModule(_roleStore) {
        dataStore = _dataStore;
        eventEmitter = _eventEmitter;
    }

    function createMarket(address indexToken, address longToken, address shortToken, bytes32 marketType)
        external
        onlyMarketKeeper
        returns (Market.Props memory market)
    {
        if (longToken == shortToken) revert Errors.InvalidToken(shortToken);
        bytes32 salt = keccak256(abi.encode("GMX_MARKET", indexToken, longToken, shortToken, marketType));
        if (marketOf[salt] != address(0)) revert Errors.MarketAlreadyExists(salt, marketOf[salt]);
        address marketToken = address(new MarketToken{salt: salt}(roleStore));
        marketOf[salt] = marketToken;
        market = Market.Props(marketToken, indexToken, longToken, shortToken);
        Market.store(dataStore, market);

        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("marketToken", marketToken);
        e.put("indexToken", indexToken);
        e.put("longToken", longToken);
        e.put("shortToken", shortToken);
        e.putBytes32("salt", salt);
        e.putBytes32("marketType", marketType);
        eventEmitter.emitEventLog1("MarketCreated", EventUtils.topic(marketToken), e);
    }
}
