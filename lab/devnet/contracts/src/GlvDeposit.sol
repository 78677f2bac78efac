// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title A request to put tokens, or market tokens of one of its markets, into a GLV for GLV tokens.
library GlvDeposit {
    struct Props {
        address account;
        address receiver;
        address glv;
        address market;
        bool isMarketTokenDeposit;
        uint256 initialLongTokenAmount;
        uint256 initialShortTokenAmount;
        uint256 marketTokenAmount;
        uint256 minGlvTokens;
        uint256 updatedAtTime;
        uint256 executionFee;
    }

    struct CreateAddresses {
        address receiver;
        address callbackContract;
        address uiFeeReceiver;
        address glv;
        address market;
        address initialLongToken;
        address initialShortToken;
        address[] longTokenSwapPath;
        address[] shortTokenSwapPath;
    }

    /// What a user asks for; the amounts are what was sent to the vault before. A deposit of market tokens names no
    /// initial tokens.
    struct CreateParams {
        CreateAddresses addresses;
        uint256 minGlvTokens;
        uint256 executionFee;
        uint256 callbackGasLimit;
        bool shouldUnwrapNativeToken;
        bool isMarketTokenDeposit;
        bytes32[] dataList;
    }
}
