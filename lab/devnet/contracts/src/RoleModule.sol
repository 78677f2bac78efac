// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Errors} from "./Errors.sol";
import {Role} from "./Role.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title The role checks of the other contracts.
/// A check is the first thing an entry point does, so that a caller without the role loses little gas.
abstract contract RoleModule {
    RoleStore public immutable roleStore;

    constructor(RoleStore _roleStore) {
        roleStore = _roleStore;
    }

    modifier onlySelf() {
        if (msg.sender != address(this)) revert Errors.Unauthorized(msg.sender, "SELF");
        _;
    }

    modifier onlyController() {
        _requireRole(Role.CONTROLLER, "CONTROLLER");
        _;
    }

    modifier onlyRouterPlugin() {
        _requireRole(Role.ROUTER_PLUGIN, "ROUTER_PLUGIN");
        _;
    }

    modifier onlyConfigKeeper() {
        _requireRole(Role.CONFIG_KEEPER, "CONFIG_KEEPER");
        _;
    }

    modifier onlyMarketKeeper() {
        _requireRole(Role.MARKET_KEEPER, "MARKET_KEEPER");
        _;
    }

    modifier onlyOrderKeeper() {
        _requireRole(Role.ORDER_KEEPER, "ORDER_KEEPER");
        _;
    }

    modifier onlyLiquidationKeeper() {
        _requireRole(Role.LIQUIDATION_KEEPER, "LIQUIDATION_KEEPER");
        _;
    }

    modifier onlyAdlKeeper() {
        _requireRole(Role.ADL_KEEPER, "ADL_KEEPER");
        _;
    }

    function _requireRole(bytes32 roleKey, string memory label) internal view {
        if (!roleStore.hasRole(msg.sender, roleKey)) revert Errors.Unauthorized(msg.sender, label);
    }
}
