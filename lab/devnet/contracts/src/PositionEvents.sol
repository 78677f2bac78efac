// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {Market} from "./Market.sol";
import {Order} from "./Order.sol";
import {Position, PositionKey} from "./Position.sol";
import {Price} from "./Price.sol";

/// @title The events of positions. Terms that this exchange does not have (price impact, borrowing, referrals) are
/// reported as zero, under the names that readers expect.
library PositionEvents {
    using EventUtils for EventUtils.EventLogData;

    /// What happened to a position, beside its state afterwards.
    struct Change {
        bytes32 orderKey;
        Order.OrderType orderType;
        Price.Props indexPrice;
        Price.Props collateralPrice;
        uint256 executionPrice;
        uint256 sizeDeltaUsd;
        uint256 sizeDeltaInTokens;
        int256 collateralDeltaAmount;
        int256 basePnlUsd;
    }

    /// What was charged: amounts in collateral tokens, for the pool but for funding.
    struct Fees {
        uint256 positionFeeFactor;
        uint256 positionFeeAmount;
        uint256 liquidationFeeAmount;
        uint256 fundingFeeAmount;
        uint256 latestFundingFeeAmountPerSize;
    }

    function increased(EventEmitter emitter, Position.Props memory position, Change memory c) public {
        EventUtils.EventLogData memory e = _common(position, c);
        e.putUint("increasedAtTime", position.increasedAtTime);
        e.putInt("collateralDeltaAmount", c.collateralDeltaAmount);
        e.putInt("pendingPriceImpactUsd", 0);
        e.putInt("pendingPriceImpactAmount", 0);
        emitter.emitEventLog1("PositionIncrease", EventUtils.topic(position.account), e);
    }

    function decreased(EventEmitter emitter, Position.Props memory position, Change memory c) public {
        EventUtils.EventLogData memory e = _common(position, c);
        e.putUint("collateralDeltaAmount", uint256(c.collateralDeltaAmount));
        e.putUint("values.priceImpactDiffUsd", 0);
        e.putUint("decreasedAtTime", position.decreasedAtTime);
        e.putInt("priceImpactUsd", 0);
        e.putInt("basePnlUsd", c.basePnlUsd);
        e.putInt("uncappedBasePnlUsd", c.basePnlUsd);
        e.putInt("proportionalPendingImpactUsd", 0);
        e.putInt("totalImpactUsd", 0);
        emitter.emitEventLog1("PositionDecrease", EventUtils.topic(position.account), e);
    }

    /// The collateral did not cover the costs. Carries no account, market or position: readers join it by orderKey.
    function insolvent(
        EventEmitter emitter,
        bytes32 orderKey,
        uint256 collateralAmount,
        int256 basePnlUsd,
        uint256 remainingCostUsd,
        string memory step
    ) public {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("orderKey", orderKey);
        e.putUint("positionCollateralAmount", collateralAmount);
        e.putInt("basePnlUsd", basePnlUsd);
        e.putUint("remainingCostUsd", remainingCostUsd);
        e.setString("step", step);
        emitter.emitEventLog("InsolventClose", e);
    }

    /// Emits PositionFeesCollected, or PositionFeesInfo for fees that an insolvent close could not collect.
    function fees(
        EventEmitter emitter,
        string memory eventName,
        Position.Props memory position,
        Change memory c,
        Fees memory f,
        address trader
    ) public {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("orderKey", c.orderKey);
        e.putBytes32("positionKey", _keyOf(position));
        e.putBytes32("referralCode", bytes32(0));
        e.put("market", position.market);
        e.put("collateralToken", position.collateralToken);
        e.put("affiliate", address(0));
        e.put("trader", trader);
        e.put("uiFeeReceiver", address(0));
        _putFees(e, c, f);
        e.putBool("isIncrease", Order.isIncreaseOrder(c.orderType));
        emitter.emitEventLog1(eventName, EventUtils.topic(position.market), e);
    }

    function _putFees(EventUtils.EventLogData memory e, Change memory c, Fees memory f) private pure {
        uint256 forPool = f.positionFeeAmount + f.liquidationFeeAmount;
        e.putUint("collateralTokenPrice.min", c.collateralPrice.min);
        e.putUint("collateralTokenPrice.max", c.collateralPrice.max);
        e.putUint("tradeSizeUsd", c.sizeDeltaUsd);
        e.putUint("fundingFeeAmount", f.fundingFeeAmount);
        e.putUint("claimableLongTokenAmount", 0);
        e.putUint("claimableShortTokenAmount", 0);
        e.putUint("latestFundingFeeAmountPerSize", f.latestFundingFeeAmountPerSize);
        e.putUint("latestLongTokenClaimableFundingAmountPerSize", 0);
        e.putUint("latestShortTokenClaimableFundingAmountPerSize", 0);
        e.putUint("borrowingFeeUsd", 0);
        e.putUint("borrowingFeeAmount", 0);
        e.putUint("borrowingFeeReceiverFactor", 0);
        e.putUint("borrowingFeeAmountForFeeReceiver", 0);
        e.putUint("positionFeeFactor", f.positionFeeFactor);
        e.putUint("protocolFeeAmount", f.positionFeeAmount);
        e.putUint("positionFeeReceiverFactor", 0);
        e.putUint("feeReceiverAmount", 0);
        e.putUint("feeAmountForPool", forPool);
        e.putUint("positionFeeAmountForPool", f.positionFeeAmount);
        e.putUint("positionFeeAmount", f.positionFeeAmount);
        e.putUint("totalCostAmount", forPool + f.fundingFeeAmount);
        e.putUint("uiFeeReceiverFactor", 0);
        e.putUint("uiFeeAmount", 0);
        if (f.liquidationFeeAmount == 0) return;
        e.putUint("liquidationFeeAmount", f.liquidationFeeAmount);
        e.putUint("liquidationFeeReceiverFactor", 0);
        e.putUint("liquidationFeeAmountForFeeReceiver", 0);
    }

    /// The items that PositionIncrease and PositionDecrease share.
    function _common(Position.Props memory position, Change memory c)
        private
        pure
        returns (EventUtils.EventLogData memory e)
    {
        e = EventUtils.create();
        e.put("account", position.account);
        e.put("market", position.market);
        e.put("collateralToken", position.collateralToken);
        e.putUint("sizeInUsd", position.sizeInUsd);
        e.putUint("sizeInTokens", position.sizeInTokens);
        e.putUint("collateralAmount", position.collateralAmount);
        e.putUint("borrowingFactor", 0);
        e.putUint("fundingFeeAmountPerSize", position.fundingFeeAmountPerSize);
        e.putUint("longTokenClaimableFundingAmountPerSize", 0);
        e.putUint("shortTokenClaimableFundingAmountPerSize", 0);
        e.putUint("executionPrice", c.executionPrice);
        e.putUint("indexTokenPrice.max", c.indexPrice.max);
        e.putUint("indexTokenPrice.min", c.indexPrice.min);
        e.putUint("collateralTokenPrice.max", c.collateralPrice.max);
        e.putUint("collateralTokenPrice.min", c.collateralPrice.min);
        e.putUint("sizeDeltaUsd", c.sizeDeltaUsd);
        e.putUint("sizeDeltaInTokens", c.sizeDeltaInTokens);
        e.putUint("orderType", uint256(c.orderType));
        e.putBool("isLong", position.isLong);
        e.putBytes32("orderKey", c.orderKey);
        e.putBytes32("positionKey", _keyOf(position));
    }

    function _keyOf(Position.Props memory p) private pure returns (bytes32) {
        return PositionKey.derive(p.account, p.market, p.collateralToken, p.isLong);
    }
}
