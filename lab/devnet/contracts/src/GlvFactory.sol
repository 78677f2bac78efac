// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {GlvToken} from "./GlvToken.sol";
import {Market} from "./Market.sol";
import {RoleModule} from "./RoleModule.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title Creates GLVs and knows their markets.
/// A GLV spreads liquidity over markets whose pools hold the same two tokens; its address is that of its GLV token.
contract GlvFactory is RoleModule {
    using EventUtils for EventUtils.EventLogData;

    struct Glv {
        address longToken;
        address shortToken;
        address[] markets;
    }

    DataStore public immutable dataStore;
    EventEmitter public immutable eventEmitter;
    mapping(bytes32 salt => address) public glvOf;
    mapping(address glv => Glv) private glvs;

    constructor(RoleStore _roleStore, DataStore _dataStore, EventEmitter _eventEmitter) RoleModule(_roleStore) {
        dataStore = _dataStore;
        eventEmitter = _eventEmitter;
    }

    function createGlv(address longToken, address shortToken, bytes32 glvType)
        external
        onlyMarketKeeper
        returns (address glv)
    {
        bytes32 salt = keccak256(abi.encode("GMX_GLV", longToken, shortToken, glvType));
        if (glvOf[salt] != address(0)) revert Errors.GlvAlreadyExists(salt, glvOf[salt]);
        glv = address(new GlvToken{salt: salt}(roleStore));
        glvOf[salt] = glv;
        glvs[glv].longToken = longToken;
        glvs[glv].shortToken = shortToken;

        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("glvToken", glv);
        e.put("longToken", longToken);
        e.put("shortToken", shortToken);
        e.putBytes32("salt", salt);
        e.putBytes32("glvType", glvType);
        eventEmitter.emitEventLog1("GlvCreated", EventUtils.topic(glv), e);
    }

    function addMarketToGlv(address glv, address market) external onlyConfigKeeper {
        Glv storage props = _existing(glv);
        Market.Props memory m = Market.loadEnabled(dataStore, market);
        if (m.longToken != props.longToken) revert Errors.GlvInvalidLongToken(glv, m.longToken, props.longToken);
        if (m.shortToken != props.shortToken) revert Errors.GlvInvalidShortToken(glv, m.shortToken, props.shortToken);
        if (_holds(props, market)) revert Errors.GlvMarketAlreadyExists(glv, market);
        props.markets.push(market);

        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("glv", glv);
        e.put("market", market);
        eventEmitter.emitEventLog2("GlvMarketAdded", EventUtils.topic(glv), EventUtils.topic(market), e);
    }

    /// Reverts with EmptyGlv for an unknown address.
    function getGlv(address glv) external view returns (Glv memory) {
        return _existing(glv);
    }

    /// Reverts with GlvUnsupportedMarket unless the market is one of the GLV's.
    function requireMarket(address glv, address market) external view {
        if (!_holds(_existing(glv), market)) revert Errors.GlvUnsupportedMarket(glv, market);
    }

    function _existing(address glv) private view returns (Glv storage props) {
        props = glvs[glv];
        if (props.longToken == address(0)) revert Errors.EmptyGlv(glv);
    }

    function _holds(Glv storage props, address market) private view returns (bool) {
        for (uint256 i; i < props.markets.length; i++) {
            if (props.markets[i] == market) return true;
        }
        return false;
    }
}
