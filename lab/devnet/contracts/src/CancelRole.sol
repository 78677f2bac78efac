// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Errors} from "./Errors.sol";
import {Role} from "./Role.sol";
import {RoleModule} from "./RoleModule.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title Who may cancel requests: routers for their users, and keepers.
abstract contract CancelRole is RoleModule {
    constructor(RoleStore _roleStore) RoleModule(_roleStore) {}

    modifier onlyCanceller() {
        if (!roleStore.hasRole(msg.sender, Role.ORDER_KEEPER) && !roleStore.hasRole(msg.sender, Role.CONTROLLER)) {
            revert Errors.Unauthorized(msg.sender, "ORDER_KEEPER|CONTROLLER");
        }
        _;
    }
}
