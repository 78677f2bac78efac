// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title A price with its spread: USD with 30 decimals for one smallest unit of the token.
library Price {
    struct Props {
        uint256 min;
        uint256 max;
    }

    function mid(Props memory price) internal pure returns (uint256) {
        return (price.min + price.max) / 2;
    }

    function pick(Props memory price, bool maximize) internal pure returns (uint256) {
        return maximize ? price.max : price.min;
    }
}
