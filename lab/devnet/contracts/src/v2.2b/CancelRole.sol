// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Role} from "./Role.sol";
import {RoleModule} from "./RoleModule.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title Who may cancel requests: routers for their users.
abstract contract CancelRole is RoleModule {
    constructor(RoleStore _roleStore) RoleModule(_roleStore) {}

    modifier onlyCanceller() {
        _requireRole(Role.CONTROLLER, "CONTROLLER");
        _;
    }
}
