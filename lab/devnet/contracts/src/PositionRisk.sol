// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Position} from "./Position.sol";
import {Precision} from "./Precision.sol";
import {Price} from "./Price.sol";

/// @title When a position is liquidatable, to the wei.
///
/// With integer division rounding down, and 30-decimal USD throughout:
///   pnl       = long:  sizeInTokens * index.min - sizeInUsd
///               short: sizeInUsd - sizeInTokens * index.max
///   fee       = (sizeInUsd * positionFeeFactor / 1e30) / collateral.min + funding owed, in collateral tokens
///   remaining = collateralAmount * collateral.min + pnl - fee * collateral.min
///   leverage  = sizeInUsd * minCollateralFactor / 1e30
///   required  = max(minCollateralUsd, leverage)
///   threshold = max(required, required * ratioFactor / 1e30)
///   liquidatable  <=>  remaining <= 0  or  remaining < threshold
/// positionFeeFactor is the one for a close of the whole position: the improving factor if that makes the open interest of
/// the two sides more equal. ratioFactor is LIQUIDATION_RATIO_FACTOR: 1e30 (or less, or unset) is the plain rule of GMX,
/// 1.1e30 liquidates below 110 % of the required collateral.
library PositionRisk {
    struct Terms {
        uint256 minCollateralUsd;
        uint256 minCollateralFactor;
        uint256 positionFeeFactor;
        uint256 ratioFactor;
        uint256 fundingFeeAmount;
    }

    struct Verdict {
        bool liquidatable;
        string reason;
        int256 remainingCollateralUsd;
        int256 minCollateralUsd;
        int256 minCollateralUsdForLeverage;
    }

    function judge(
        Position.Props memory position,
        Price.Props memory index,
        Price.Props memory collateral,
        Terms memory terms
    ) internal pure returns (Verdict memory v) {
        uint256 fee = Precision.applyFactor(position.sizeInUsd, terms.positionFeeFactor) / collateral.min
            + terms.fundingFeeAmount;
        v.remainingCollateralUsd = Precision.signed(position.collateralAmount * collateral.min)
            + pnlUsd(position, index) - Precision.signed(fee * collateral.min);
        uint256 leverage = Precision.applyFactor(position.sizeInUsd, terms.minCollateralFactor);
        v.minCollateralUsd = Precision.signed(terms.minCollateralUsd);
        v.minCollateralUsdForLeverage = Precision.signed(leverage);

        uint256 required = leverage > terms.minCollateralUsd ? leverage : terms.minCollateralUsd;
        uint256 threshold = Precision.applyFactor(required, terms.ratioFactor);
        if (threshold < required) threshold = required;
        v.reason = _reason(v, Precision.signed(threshold));
        v.liquidatable = bytes(v.reason).length != 0;
    }

    /// Profit of the whole position at the price at which it would be closed.
    function pnlUsd(Position.Props memory position, Price.Props memory index) internal pure returns (int256) {
        uint256 price = Price.pick(index, !position.isLong);
        int256 value = Precision.signed(position.sizeInTokens * price);
        int256 cost = Precision.signed(position.sizeInUsd);
        return position.isLong ? value - cost : cost - value;
    }

    /// The first condition that holds, or nothing for a healthy position.
    function _reason(Verdict memory v, int256 threshold) private pure returns (string memory) {
        if (v.remainingCollateralUsd < v.minCollateralUsd) return "min collateral";
        if (v.remainingCollateralUsd <= 0) return "< 0";
        if (v.remainingCollateralUsd < v.minCollateralUsdForLeverage) return "min collateral for leverage";
        if (v.remainingCollateralUsd < threshold) return "liquidation ratio";
        return "";
    }
}
