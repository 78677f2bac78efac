// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title A request to put tokens, or what two swap paths make of them, into a market's pool for market tokens.
library Deposit {
    struct Props {
        address account;
        address receiver;
        address market;
        address initialLongToken;
        address initialShortToken;
        uint256 initialLongTokenAmount;
        uint256 initialShortTokenAmount;
        uint256 minMarketTokens;
        uint256 updatedAtTime;
        uint256 executionFee;
        address callbackContract;
        address uiFeeReceiver;
        uint256 callbackGasLimit;
        address[] longTokenSwapPath;
        address[] shortTokenSwapPath;
    }

    struct CreateAddresses {
        address receiver;
        address callbackContract;
        address uiFeeReceiver;
        address market;
        address initialLongToken;
        address initialShortToken;
        address[] longTokenSwapPath;
        address[] shortTokenSwapPath;
    }

    /// What a user asks for; the amounts are what was sent to the vault before.
    struct CreateParams {
        CreateAddresses addresses;
        uint256 minMarketTokens;
        bool shouldUnwrapNativeToken;
        uint256 executionFee;
        uint256 callbackGasLimit;
        bytes32[] dataList;
    }
}
