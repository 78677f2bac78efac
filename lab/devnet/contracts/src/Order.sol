// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title An order, and how users describe one.
library Order {
    enum OrderType {
        MarketSwap,
        LimitSwap,
        MarketIncrease,
        LimitIncrease,
        MarketDecrease,
        LimitDecrease,
        StopLossDecrease,
        Liquidation,
        StopIncrease
    }

    enum DecreasePositionSwapType {
        NoSwap,
        SwapPnlTokenToCollateralToken,
        SwapCollateralTokenToPnlToken
    }

    enum SecondaryOrderType {
        None,
        Adl
    }

    /// A stored order. Times are seconds, sizes USD with 30 decimals, prices USD with 30 decimals per smallest unit,
    /// initialCollateralDeltaAmount is in collateral tokens: brought in by an increase or a swap, taken out by a decrease.
    struct Props {
        address account;
        address receiver;
        address cancellationReceiver;
        address callbackContract;
        address uiFeeReceiver;
        address market;
        address initialCollateralToken;
        OrderType orderType;
        bool isLong;
        bool shouldUnwrapNativeToken;
        bool isFrozen;
        bool autoCancel;
        uint256 sizeDeltaUsd;
        uint256 initialCollateralDeltaAmount;
        uint256 triggerPrice;
        uint256 acceptablePrice;
        uint256 executionFee;
        uint256 minOutputAmount;
        uint256 updatedAtTime;
        uint256 validFromTime;
        DecreasePositionSwapType decreasePositionSwapType;
        uint256 callbackGasLimit;
        address[] swapPath;
        bytes32[] dataList;
    }

    struct CreateAddresses {
        address receiver;
        address cancellationReceiver;
        address callbackContract;
        address uiFeeReceiver;
        address market;
        address initialCollateralToken;
        address[] swapPath;
    }

    struct CreateNumbers {
        uint256 sizeDeltaUsd;
        uint256 initialCollateralDeltaAmount;
        uint256 triggerPrice;
        uint256 acceptablePrice;
        uint256 executionFee;
        uint256 callbackGasLimit;
        uint256 minOutputAmount;
        uint256 validFromTime;
    }

    /// What a user asks for. For an increase or a swap the collateral is what was sent to the vault before;
    /// initialCollateralDeltaAmount counts for decreases alone.
    struct CreateParams {
        CreateAddresses addresses;
        CreateNumbers numbers;
        OrderType orderType;
        DecreasePositionSwapType decreasePositionSwapType;
        bool isLong;
        bool shouldUnwrapNativeToken;
        bool autoCancel;
        bytes32 referralCode;
        bytes32[] dataList;
    }

    /// What a user may change about a waiting order.
    struct UpdateParams {
        uint256 sizeDeltaUsd;
        uint256 acceptablePrice;
        uint256 triggerPrice;
        uint256 minOutputAmount;
        uint256 validFromTime;
        bool autoCancel;
    }

    function isMarketOrder(OrderType t) internal pure returns (bool) {
        return t == OrderType.MarketSwap || t == OrderType.MarketIncrease || t == OrderType.MarketDecrease;
    }

    function isSwapOrder(OrderType t) internal pure returns (bool) {
        return t == OrderType.MarketSwap || t == OrderType.LimitSwap;
    }

    function isIncreaseOrder(OrderType t) internal pure returns (bool) {
        return t == OrderType.MarketIncrease || t == OrderType.LimitIncrease || t == OrderType.StopIncrease;
    }

    /// Orders that bring tokens along.
    function paysIn(OrderType t) internal pure returns (bool) {
        return isIncreaseOrder(t) || isSwapOrder(t);
    }

    /// Take-profit and stop-loss: the orders that auto-cancel and shrink with their position.
    function isProtective(OrderType t) internal pure returns (bool) {
        return t == OrderType.LimitDecrease || t == OrderType.StopLossDecrease;
    }

    /// Who gets the collateral and the fee back when the order is cancelled.
    function refundReceiver(Props memory order) internal pure returns (address) {
        return order.cancellationReceiver == address(0) ? order.account : order.cancellationReceiver;
    }
}
