// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title A request to move liquidity from one market to another whose pool holds the same two tokens.
library Shift {
    struct Props {
        address account;
        address receiver;
        address fromMarket;
        address toMarket;
        uint256 marketTokenAmount;
        uint256 minMarketTokens;
        uint256 updatedAtTime;
        uint256 executionFee;
    }

    struct CreateAddresses {
        address receiver;
        address callbackContract;
        address uiFeeReceiver;
        address fromMarket;
        address toMarket;
    }

    /// What a user asks for; the amount is the market tokens that were sent to the vault before.
    struct CreateParams {
        CreateAddresses addresses;
        uint256 minMarketTokens;
        uint256 executionFee;
        uint256 callbackGasLimit;
        bytes32[] dataList;
    }
}
