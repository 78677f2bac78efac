// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ERC20} from "./ERC20.sol";

/// @title A token of the devnet that anyone may mint: WETH, WBTC and USDC without value.
contract MintableToken is ERC20 {
    constructor(string memory _name, string memory _symbol, uint8 _decimals) ERC20(_name, _symbol, _decimals) {}

    function mint(address to, uint256 value) external {
        _mint(to, value);
    }
}
