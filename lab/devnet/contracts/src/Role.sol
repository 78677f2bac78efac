// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title The role hashes: keccak256 of the ABI-encoded name, as in GMX.
library Role {
    /// Grants and revokes roles.
    bytes32 internal constant ROLE_ADMIN = keccak256(abi.encode("ROLE_ADMIN"));
    /// A contract of the exchange: may write state and emit events.
    bytes32 internal constant CONTROLLER = keccak256(abi.encode("CONTROLLER"));
    /// A door for users: may move the tokens that they approved to the Router.
    bytes32 internal constant ROUTER_PLUGIN = keccak256(abi.encode("ROUTER_PLUGIN"));
    /// Changes parameters through Config.
    bytes32 internal constant CONFIG_KEEPER = keccak256(abi.encode("CONFIG_KEEPER"));
    /// Creates markets.
    bytes32 internal constant MARKET_KEEPER = keccak256(abi.encode("MARKET_KEEPER"));
    /// Executes orders, deposits, withdrawals and shifts, also those of GLVs.
    bytes32 internal constant ORDER_KEEPER = keccak256(abi.encode("ORDER_KEEPER"));
    /// May execute orders that an earlier failure froze.
    bytes32 internal constant FROZEN_ORDER_KEEPER = keccak256(abi.encode("FROZEN_ORDER_KEEPER"));
    /// Deleverages.
    bytes32 internal constant ADL_KEEPER = keccak256(abi.encode("ADL_KEEPER"));
    /// Liquidates positions.
    bytes32 internal constant LIQUIDATION_KEEPER = keccak256(abi.encode("LIQUIDATION_KEEPER"));
}
