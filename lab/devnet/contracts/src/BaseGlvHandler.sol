// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BaseHandler} from "./BaseHandler.sol";
import {DataStore} from "./DataStore.sol";
import {ERC20} from "./ERC20.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {GlvFactory} from "./GlvFactory.sol";
import {Keys} from "./Keys.sol";
import {Oracle} from "./Oracle.sol";
import {PoolBook} from "./PoolBook.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title What the handlers of GLV requests share.
abstract contract BaseGlvHandler is BaseHandler {
    using EventUtils for EventUtils.EventLogData;

    GlvFactory public immutable glvFactory;
    PoolBook public immutable poolBook;

    constructor(
        RoleStore _roleStore,
        DataStore _dataStore,
        EventEmitter _eventEmitter,
        Oracle _oracle,
        GlvFactory _glvFactory,
        PoolBook _poolBook
    ) BaseHandler(_roleStore, _dataStore, _eventEmitter, _oracle) {
        glvFactory = _glvFactory;
        poolBook = _poolBook;
    }

    /// An execution values every market of the GLV.
    function _gasLimitOfMarkets(address glv) internal view returns (uint256) {
        return dataStore.getUint(Keys.GLV_PER_MARKET_GAS_LIMIT) * glvFactory.getGlv(glv).markets.length;
    }

    /// What the GLV's market tokens are worth in USD; the prices of all its markets must be there.
    function _glvValue(address glv, bool maximize) internal view returns (uint256 usd) {
        address[] memory markets = glvFactory.getGlv(glv).markets;
        for (uint256 i; i < markets.length; i++) {
            usd += poolBook.usdOf(glv, markets[i], ERC20(markets[i]).balanceOf(glv), maximize);
        }
    }

    /// Announces the value of a GLV after a deposit or a withdrawal.
    function _emitValue(address glv) internal {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("glv", glv);
        e.putUint("value", _glvValue(glv, true));
        e.putUint("supply", ERC20(glv).totalSupply());
        eventEmitter.emitEventLog1("GlvValueUpdated", EventUtils.topic(glv), e);
    }
}
