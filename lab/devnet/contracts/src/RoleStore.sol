// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Errors} from "./Errors.sol";
import {Role} from "./Role.sol";

/// @title Who may do what.
/// Guarantee: there is always at least one ROLE_ADMIN. Who holds a role can be listed, in no order that lasts.
contract RoleStore {
    mapping(bytes32 roleKey => address[]) private members;
    /// Where an account stands among a role's members, from 1; 0 if it does not hold the role.
    mapping(address account => mapping(bytes32 roleKey => uint256)) private places;

    constructor() {
        _add(msg.sender, Role.ROLE_ADMIN);
    }

    modifier onlyRoleAdmin() {
        if (!hasRole(msg.sender, Role.ROLE_ADMIN)) revert Errors.Unauthorized(msg.sender, "ROLE_ADMIN");
        _;
    }

    function hasRole(address account, bytes32 roleKey) public view returns (bool) {
        return places[account][roleKey] != 0;
    }

    function getRoleMemberCount(bytes32 roleKey) external view returns (uint256) {
        return members[roleKey].length;
    }

    /// The members from number `start`, counted from 0, to before `end`; fewer where there are not so many.
    function getRoleMembers(bytes32 roleKey, uint256 start, uint256 end) external view returns (address[] memory list) {
        address[] storage all = members[roleKey];
        if (end > all.length) end = all.length;
        if (start >= end) return list;
        list = new address[](end - start);
        for (uint256 i; i < list.length; i++) list[i] = all[start + i];
    }

    /// Granting twice changes nothing.
    function grantRole(address account, bytes32 roleKey) external onlyRoleAdmin {
        if (!hasRole(account, roleKey)) _add(account, roleKey);
    }

    /// Revoking what was not granted changes nothing. The last member takes the place that becomes free.
    function revokeRole(address account, bytes32 roleKey) external onlyRoleAdmin {
        uint256 place = places[account][roleKey];
        if (place == 0) return;
        address[] storage all = members[roleKey];
        if (roleKey == Role.ROLE_ADMIN && all.length == 1) revert Errors.ThereMustBeAtLeastOneRoleAdmin();
        address last = all[all.length - 1];
        all[place - 1] = last;
        places[last][roleKey] = place;
        all.pop();
        delete places[account][roleKey];
    }

    function _add(address account, bytes32 roleKey) private {
        members[roleKey].push(account);
        places[account][roleKey] = members[roleKey].length;
    }
}
