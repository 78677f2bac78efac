// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC20} from "./ERC20.sol";
import {RoleModule} from "./RoleModule.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title What users approve their tokens to, once: doors come and go with the versions of the exchange.
contract Router is RoleModule {
    constructor(RoleStore _roleStore) RoleModule(_roleStore) {}

    function pluginTransfer(address token, address account, address receiver, uint256 amount) external onlyRouterPlugin {
        ERC20(token).transferFrom(account, receiver, amount);
    }
}
