// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Order} from "./Order.sol";

/// @title An open position.
library Position {
    /// Sizes: USD with 30 decimals, and smallest units of the index token. collateralAmount: smallest units of the
    /// collateral token. Times: seconds.
    struct Props {
        address account;
        address market;
        address collateralToken;
        bool isLong;
        uint256 sizeInUsd;
        uint256 sizeInTokens;
        uint256 collateralAmount;
        uint256 increasedAtTime;
        uint256 decreasedAtTime;
        uint256 fundingFeeAmountPerSize;
    }
}

/// @title The key of a position: one per account, market, collateral token and side.
library PositionKey {
    function derive(address account, address market, address collateralToken, bool isLong)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(account, market, collateralToken, isLong));
    }

    function ofOrder(Order.Props memory order) internal pure returns (bytes32) {
        return derive(order.account, order.market, order.initialCollateralToken, order.isLong);
    }
}
