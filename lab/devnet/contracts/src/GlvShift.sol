// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title A keeper's request to move liquidity of a GLV from one of its markets to another.
library GlvShift {
    struct Props {
        address glv;
        address fromMarket;
        address toMarket;
        uint256 marketTokenAmount;
        uint256 minMarketTokens;
        uint256 updatedAtTime;
    }

    struct CreateParams {
        address glv;
        address fromMarket;
        address toMarket;
        uint256 marketTokenAmount;
        uint256 minMarketTokens;
    }
}
