// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Errors} from "./Errors.sol";
import {Role} from "./Role.sol";

/// @title Who may do what.
/// Guarantee: there is always at least one ROLE_ADMIN.
contract RoleStore {
    mapping(address account => mapping(bytes32 roleKey => bool)) private granted;
    uint256 private admins;

    constructor() {
        granted[msg.sender][Role.ROLE_ADMIN] = true;
        admins = 1;
    }

    modifier onlyRoleAdmin() {
        if (!granted[msg.sender][Role.ROLE_ADMIN]) revert Errors.Unauthorized(msg.sender, "ROLE_ADMIN");
        _;
    }

    function hasRole(address account, bytes32 roleKey) external view returns (bool) {
        return granted[account][roleKey];
    }

    /// Granting twice changes nothing.
    function grantRole(address account, bytes32 roleKey) external onlyRoleAdmin {
        if (granted[account][roleKey]) return;
        granted[account][roleKey] = true;
        if (roleKey == Role.ROLE_ADMIN) admins++;
    }

    /// Revoking what was not granted changes nothing.
    function revokeRole(address account, bytes32 roleKey) external onlyRoleAdmin {
        if (!granted[account][roleKey]) return;
        if (roleKey == Role.ROLE_ADMIN && --admins == 0) revert Errors.ThereMustBeAtLeastOneRoleAdmin();
        granted[account][roleKey] = false;
    }
}
