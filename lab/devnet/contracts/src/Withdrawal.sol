// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title A request to turn market tokens back into the pool's tokens, or what two swap paths make of them.
library Withdrawal {
    struct Props {
        address account;
        address receiver;
        address market;
        uint256 marketTokenAmount;
        uint256 minLongTokenAmount;
        uint256 minShortTokenAmount;
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
        address[] longTokenSwapPath;
        address[] shortTokenSwapPath;
    }

    /// What a user asks for; the amount is the market tokens that were sent to the vault before.
    struct CreateParams {
        CreateAddresses addresses;
        uint256 minLongTokenAmount;
        uint256 minShortTokenAmount;
        bool shouldUnwrapNativeToken;
        uint256 executionFee;
        uint256 callbackGasLimit;
        bytes32[] dataList;
    }
}
