// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title A request to turn GLV tokens into the pool tokens of one of the GLV's markets.
library GlvWithdrawal {
    struct Props {
        address account;
        address receiver;
        address glv;
        address market;
        uint256 glvTokenAmount;
        uint256 minLongTokenAmount;
        uint256 minShortTokenAmount;
        uint256 updatedAtTime;
        uint256 executionFee;
    }

    struct CreateAddresses {
        address receiver;
        address callbackContract;
        address uiFeeReceiver;
        address market;
        address glv;
        address[] longTokenSwapPath;
        address[] shortTokenSwapPath;
    }

    /// What a user asks for; the amount is the GLV tokens that were sent to the vault before.
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
