// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Integer arithmetic with 30 decimals.
/// USD values and factors carry 30 decimals. Overflow reverts, it never wraps.
library Precision {
    uint256 internal constant FLOAT_PRECISION = 1e30;

    /// value * factor, rounded down.
    function applyFactor(uint256 value, uint256 factor) internal pure returns (uint256) {
        return value * factor / FLOAT_PRECISION;
    }

    /// a * b / c, rounded down. The product of a pool's value, 41 digits or less, and a token amount, 36 digits or less, fits.
    function mulDiv(uint256 a, uint256 b, uint256 c) internal pure returns (uint256) {
        return a * b / c;
    }

    function roundUpDivision(uint256 a, uint256 b) internal pure returns (uint256) {
        return (a + b - 1) / b;
    }

    function diff(uint256 a, uint256 b) internal pure returns (uint256) {
        return a > b ? a - b : b - a;
    }

    /// value as a signed number; reverts above the signed maximum.
    function signed(uint256 value) internal pure returns (int256) {
        assert(value <= uint256(type(int256).max));
        return int256(value);
    }
}
