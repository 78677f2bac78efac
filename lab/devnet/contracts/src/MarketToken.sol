// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC20} from "./ERC20.sol";
import {RoleModule} from "./RoleModule.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title A share of one market's pool, and the purse that holds the pool's and the positions' tokens.
/// Invariant, for each of the market's two tokens: balance = POOL_AMOUNT + the COLLATERAL_SUM of both sides.
contract MarketToken is ERC20, RoleModule {
    constructor(RoleStore _roleStore) ERC20("Devnet Market", "DM", 18) RoleModule(_roleStore) {}

    function mint(address to, uint256 value) external onlyController {
        _mint(to, value);
    }

    function burn(address from, uint256 value) external onlyController {
        _burn(from, value);
    }

    function transferOut(address token, address receiver, uint256 amount) external onlyController {
        if (amount != 0) ERC20(token).transfer(receiver, amount);
    }
}
