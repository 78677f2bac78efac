// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title Every custom error of the exchange.
/// Names and arguments are those of the GMX v2.2 line, because a keeper tells causes apart by selector.
library Errors {
    // Roles and configuration.
    error Unauthorized(address msgSender, string role);
    error ThereMustBeAtLeastOneRoleAdmin();
    error InvalidBaseKey(bytes32 baseKey);
    error DisabledFeature(bytes32 key);
    error OracleProviderAlreadyExistsForToken(address oracle, address token);

    // Gas and the fee of an execution.
    error InsufficientWntAmountForExecutionFee(uint256 wntAmount, uint256 executionFee);
    error InsufficientExecutionFee(uint256 minExecutionFee, uint256 executionFee);
    error InsufficientExecutionGas(uint256 startingGas, uint256 estimatedGasLimit, uint256 minAdditionalGasForExecution);
    error InsufficientExecutionGasForErrorHandling(uint256 startingGas, uint256 minHandleErrorGas);
    error InsufficientHandleExecutionErrorGas(uint256 gas, uint256 minHandleExecutionErrorGas);
    error InsufficientGasForCancellation(uint256 gas, uint256 minHandleExecutionErrorGas);
    error InsufficientGasForAutoCancellation(uint256 gas, uint256 minHandleExecutionErrorGas);
    error InsufficientGasLeftForCallback(uint256 gasToBeForwarded, uint256 callbackGasLimit);

    // Oracle.
    error NonEmptyTokensWithPrices(uint256 tokensWithPricesLength);
    error EmptyValidatedPrices();
    error InvalidOracleSetPricesProvidersParam(uint256 tokensLength, uint256 providersLength);
    error InvalidOracleSetPricesDataParam(uint256 tokensLength, uint256 dataLength);
    error InvalidOracleProvider(address provider);
    error InvalidOracleProviderForToken(address provider, address expectedProvider);
    error InvalidOracleSigner(address signer);
    error InvalidToken(address token);
    error StaticPriceNotSet(address token);
    error InvalidMinMaxForPrice(address token, uint256 min, uint256 max);
    error PriceAlreadySet(address token, uint256 minPrice, uint256 maxPrice);
    error EmptyPrimaryPrice(address token);
    error MaxPriceAgeExceeded(uint256 oracleTimestamp, uint256 currentTimestamp);
    error MaxOracleTimestampRangeExceeded(uint256 range, uint256 maxRange);
    error OracleTimestampsAreSmallerThanRequired(uint256 minOracleTimestamp, uint256 expectedTimestamp);
    error OracleTimestampsAreLargerThanRequestExpirationTime(
        uint256 maxOracleTimestamp, uint256 requestTimestamp, uint256 requestExpirationTime
    );

    // Markets.
    error EmptyMarket();
    error DisabledMarket(address market);
    error MarketAlreadyExists(bytes32 salt, address existingMarketAddress);
    error InsufficientPoolAmount(uint256 poolAmount, uint256 amount);
    error MaxPoolAmountExceeded(uint256 poolAmount, uint256 maxPoolAmount);
    error InsufficientReserve(uint256 reservedUsd, uint256 maxReservedUsd);
    error InvalidCollateralTokenForMarket(address market, address token);
    error InvalidPositionMarket(address market);

    // Swaps.
    error InvalidTokenIn(address tokenIn, address market);
    error DuplicatedMarketInSwapPath(address market);
    error InvalidSwapOutputToken(address outputToken, address expectedOutputToken);
    error InsufficientSwapOutputAmount(uint256 outputAmount, uint256 minOutputAmount);
    error SwapPriceImpactExceedsAmountIn(uint256 amountAfterFees, int256 negativeImpactAmount);
    error UsdDeltaExceedsPoolValue(int256 usdDelta, uint256 poolUsd);
    error PnlFactorExceededForLongs(int256 pnlToPoolFactor, uint256 maxPnlFactor);
    error PnlFactorExceededForShorts(int256 pnlToPoolFactor, uint256 maxPnlFactor);

    // Requests in general.
    error EmptyAccount();
    error EmptyReceiver();
    error MaxSwapPathLengthExceeded(uint256 swapPathLengh, uint256 maxSwapPathLength);
    error MaxCallbackGasLimitExceeded(uint256 callbackGasLimit, uint256 maxCallbackGasLimit);
    error MaxDataListLengthExceeded(uint256 dataLength, uint256 maxDataLength);
    error RequestNotYetCancellable(uint256 requestAge, uint256 requestExpirationAge, string requestType);

    // Orders.
    error EmptyOrder();
    error OrderTypeCannotBeCreated(uint256 orderType);
    error UnsupportedOrderType(uint256 orderType);
    error UnsupportedOrderTypeForAutoCancellation(uint256 orderType);
    error UnexpectedValidFromTime(uint256 orderType);
    error OrderNotUpdatable(uint256 orderType);
    error InvalidKeeperForFrozenOrder(address keeper);
    error OrderValidFromTimeNotReached(uint256 validFromTime, uint256 currentTimestamp);
    error InvalidOrderPrices(uint256 primaryPriceMin, uint256 primaryPriceMax, uint256 triggerPrice, uint256 orderType);
    error OrderNotFulfillableAtAcceptablePrice(uint256 price, uint256 acceptablePrice);
    error MaxAutoCancelOrdersExceeded(uint256 count, uint256 maxAutoCancelOrders);
    error MaxTotalCallbackGasLimitForAutoCancelOrdersExceeded(
        uint256 totalCallbackGasLimit, uint256 maxTotalCallbackGasLimit
    );
    error InvalidTwapCount(uint256 twapCount);
    error InvalidInterval(uint256 interval);
    error UnexpectedMarket();
    error InsufficientOutputAmount(uint256 outputAmount, uint256 minOutputAmount);

    // Positions.
    error EmptyPosition();
    error InvalidPositionSizeValues(uint256 sizeInUsd, uint256 sizeInTokens);
    error MinPositionSize(uint256 positionSizeInUsd, uint256 minPositionSizeUsd);
    error InvalidDecreaseOrderSize(uint256 sizeDeltaUsd, uint256 positionSizeInUsd);
    error InsufficientCollateralAmount(uint256 collateralAmount, int256 collateralDeltaAmount);
    error InsufficientFundsToPayForCosts(uint256 remainingCostUsd, string step);
    error LiquidatablePosition(
        string reason, int256 remainingCollateralUsd, int256 minCollateralUsd, int256 minCollateralUsdForLeverage
    );
    error PositionShouldNotBeLiquidated(
        string reason, int256 remainingCollateralUsd, int256 minCollateralUsd, int256 minCollateralUsdForLeverage
    );

    // Deposits and withdrawals.
    error EmptyDeposit();
    error EmptyDepositAmounts();
    error EmptyDepositAmountsAfterSwap();
    error MinMarketTokens(uint256 received, uint256 expected);
    error MinLongTokens(uint256 received, uint256 expected);
    error MinShortTokens(uint256 received, uint256 expected);
    error InvalidPoolValueForDeposit(int256 poolValue);
    error EmptyWithdrawal();
    error EmptyWithdrawalAmount();
    error InvalidPoolValueForWithdrawal(int256 poolValue);

    // Shifts.
    error EmptyShift();
    error EmptyShiftAmount();
    error ShiftFromAndToMarketAreEqual(address market);
    error LongTokensAreNotEqual(address fromMarketLongToken, address toMarketLongToken);
    error ShortTokensAreNotEqual(address fromMarketShortToken, address toMarketShortToken);

    // GLVs.
    error EmptyGlv(address glv);
    error GlvAlreadyExists(bytes32 salt, address glv);
    error GlvMarketAlreadyExists(address glv, address market);
    error GlvUnsupportedMarket(address glv, address market);
    error GlvInvalidLongToken(address glv, address provided, address expected);
    error GlvInvalidShortToken(address glv, address provided, address expected);
    error GlvNegativeMarketPoolValue(address glv, address market);
    error GlvInsufficientMarketTokenBalance(
        address glv, address market, uint256 marketTokenBalance, uint256 marketTokenAmount
    );
    error GlvDepositNotFound(bytes32 key);
    error EmptyGlvDepositAmounts();
    error EmptyGlvMarketAmount();
    error InvalidGlvDepositInitialLongToken(address initialLongToken);
    error InvalidGlvDepositInitialShortToken(address initialShortToken);
    error MinGlvTokens(uint256 received, uint256 expected);
    error GlvWithdrawalNotFound(bytes32 key);
    error EmptyGlvWithdrawalAmount();
    error GlvShiftNotFound(bytes32 key);
    error GlvShiftIntervalNotYetPassed(
        uint256 currentTimestamp, uint256 lastGlvShiftExecutedAt, uint256 glvShiftMinInterval
    );

    // Deleveraging.
    error AdlNotEnabled();
    error AdlNotRequired(int256 pnlToPoolFactor, uint256 maxPnlFactorForAdl);
    error InvalidAdl(int256 nextPnlToPoolFactor, int256 pnlToPoolFactor);
    error PnlOvercorrected(int256 nextPnlToPoolFactor, uint256 minPnlFactorForAdl);
    error InvalidSizeDeltaForAdl(uint256 sizeDeltaUsd, uint256 positionSizeInUsd);
}
