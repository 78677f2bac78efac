// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Powers of numbers with 30 decimals, digit for digit those of a venue that computes them with 18.
/// The digits after the 18th are lost, and the logarithm's error stays: readers of the chain have to make the same.
library Power {
    uint256 private constant FLOAT = 1e30;
    uint256 private constant FLOAT_TO_WEI = 1e12;
    uint256 private constant ONE = 1e18;

    /// 2^(1/2^i) - 1 for i = 1 to 64, each with 64 bits after the point, rounded to the nearest.
    bytes private constant FRACTIONS =
        hex"6a09e667f3bcc909306fe0a31b7152df172b83c7d517adce0b5586cf9890f62a059b0d31585743ae02c9a3e778060ee7"
        hex"0163da9fb33356d800b1afa5abcbed610058c86da1c09ea2002c605e2e8cec5000162f3904051fa1000b175effdc76ba"
        hex"00058ba01fb9f96d0002c5cc37da9492000162e525ee05470000b17255775c04000058b91b5bc9ae00002c5c89d5ec6d"
        hex"0000162e43f4f83100000b1721bcfc9a0000058b90cf1e6e000002c5c863b73f00000162e430e5a2000000b172183551"
        hex"00000058b90c0b490000002c5c8601cc000000162e42fff00000000b17217fbb000000058b90bfce00000002c5c85fe3"
        hex"0000000162e42ff100000000b17217f80000000058b90bfc000000002c5c85fe00000000162e42ff000000000b17217f"
        hex"00000000058b90c00000000002c5c860000000000162e4300000000000b17218000000000058b90c00000000002c5c86"
        hex"0000000000162e4300000000000b17210000000000058b91000000000002c5c800000000000162e4000000000000b172"
        hex"00000000000058b90000000000002c5d000000000000162e0000000000000b17000000000000058c00000000000002c6"
        hex"000000000000016300000000000000b10000000000000059000000000000002c0000000000000016000000000000000b"
        hex"0000000000000006000000000000000300000000000000010000000000000001";

    /// value ^ exponent. What is less than one becomes zero, and a power of one changes nothing.
    function float(uint256 value, uint256 exponent) internal pure returns (uint256) {
        if (value < FLOAT) return 0;
        if (exponent == FLOAT) return value;
        return _exp2(_product(_log2(value / FLOAT_TO_WEI), exponent / FLOAT_TO_WEI)) * FLOAT_TO_WEI;
    }

    /// a * b in 18 decimals, rounded to the nearest.
    function _product(uint256 a, uint256 b) private pure returns (uint256 c) {
        uint256 full = a * b;
        c = full / ONE;
        if (full % ONE >= ONE / 2) c += 1;
    }

    /// The logarithm of a number of at least one: the whole part from the highest bit, the rest by squaring what remains.
    function _log2(uint256 x) private pure returns (uint256 result) {
        uint256 whole;
        for (uint256 n = x / ONE; n > 1; n >>= 1) {
            whole++;
        }
        result = whole * ONE;
        uint256 y = x >> whole;
        if (y == ONE) return result;
        for (uint256 delta = ONE / 2; delta > 0; delta >>= 1) {
            y = y * y / ONE;
            if (y < 2 * ONE) continue;
            result += delta;
            y >>= 1;
        }
    }

    /// 2^x: the product of the roots of two for the bits of x's fraction, with 191 bits after the point. Reverts from 2^192 on.
    function _exp2(uint256 x) private pure returns (uint256) {
        uint256 whole = x / ONE;
        assert(whole < 192);
        uint256 fraction = ((x % ONE) << 64) / ONE;
        bytes memory fractions = FRACTIONS;
        uint256 r = 1 << 191;
        for (uint256 i; i < 64; i++) {
            if ((fraction >> (63 - i)) & 1 == 0) continue;
            uint256 root;
            assembly ("memory-safe") {
                root := shr(192, mload(add(add(fractions, 0x20), mul(i, 8))))
            }
            unchecked {
                r = (r * ((1 << 64) + root)) >> 64;
            }
        }
        return (r * ONE) >> (191 - whole);
    }
}
