// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {Funding} from "./Funding.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {MarketLedger} from "./MarketLedger.sol";
import {MarketToken} from "./MarketToken.sol";
import {Order} from "./Order.sol";
import {OrderEvents} from "./OrderEvents.sol";
import {Position, PositionKey} from "./Position.sol";
import {PositionEvents} from "./PositionEvents.sol";
import {PositionRisk} from "./PositionRisk.sol";
import {PositionSettlement} from "./PositionSettlement.sol";
import {Precision} from "./Precision.sol";
import {Price} from "./Price.sol";
import {RoleModule} from "./RoleModule.sol";
import {RoleStore} from "./RoleStore.sol";
import {SwapHandler, SwapParams} from "./SwapHandler.sol";

/// @title The open positions, and the two things that can happen to one.
/// A position changes together with the sums of its market, in one call, or not at all.
contract PositionBook is RoleModule {
    using MarketLedger for MarketLedger.Books;

    /// An order at the moment of its execution.
    struct Fill {
        bytes32 orderKey;
        Order.Props order;
        Market.Props market;
        Market.Prices prices;
    }

    DataStore public immutable dataStore;
    EventEmitter public immutable eventEmitter;
    SwapHandler public immutable swapHandler;
    mapping(bytes32 key => Position.Props) private positions;

    constructor(RoleStore _roleStore, DataStore _dataStore, EventEmitter _eventEmitter, SwapHandler _swapHandler)
        RoleModule(_roleStore)
    {
        dataStore = _dataStore;
        eventEmitter = _eventEmitter;
        swapHandler = _swapHandler;
    }

    /// All zero if there is none.
    function getPosition(bytes32 key) external view returns (Position.Props memory) {
        return positions[key];
    }

    /// Opens or grows a position. The collateral, which is what the order's swap path has made of the order's own, has been sent to the
    /// market token before.
    function increase(Fill memory fill, address collateralToken, uint256 collateralAmount) external onlyController {
        Order.Props memory order = fill.order;
        order.initialCollateralToken = collateralToken;
        order.initialCollateralDeltaAmount = collateralAmount;
        bytes32 key = PositionKey.ofOrder(order);
        Position.Props memory position = positions[key];
        position.account = order.account;
        position.market = order.market;
        position.collateralToken = order.initialCollateralToken;
        position.isLong = order.isLong;

        PositionEvents.Change memory c = _change(fill, order.isLong);
        c.sizeDeltaInTokens = order.isLong
            ? c.sizeDeltaUsd / c.executionPrice
            : Precision.roundUpDivision(c.sizeDeltaUsd, c.executionPrice);
        PositionEvents.Fees memory fees = _fees(fill, position, c, Precision.signed(c.sizeDeltaUsd));
        position.fundingFeeAmountPerSize = fees.latestFundingFeeAmountPerSize;
        c.collateralDeltaAmount =
            Precision.signed(order.initialCollateralDeltaAmount) - Precision.signed(fees.positionFeeAmount)
                - Precision.signed(fees.fundingFeeAmount);
        int256 nextCollateral = Precision.signed(position.collateralAmount) + c.collateralDeltaAmount;
        if (nextCollateral < 0) {
            revert Errors.InsufficientCollateralAmount(position.collateralAmount, c.collateralDeltaAmount);
        }
        position.collateralAmount = uint256(nextCollateral);
        position.sizeInUsd += c.sizeDeltaUsd;
        position.sizeInTokens += c.sizeDeltaInTokens;
        position.increasedAtTime = block.timestamp;
        positions[key] = position;

        MarketLedger.Books memory books = MarketLedger.Books(dataStore, eventEmitter);
        _applyToLine(books, position, c, true);
        books.applyToPool(order.market, order.initialCollateralToken, Precision.signed(fees.positionFeeAmount));
        MarketLedger.validateReserve(dataStore, fill.market, fill.prices, order.isLong);
        _validate(position, fill);
        PositionEvents.fees(eventEmitter, "PositionFeesCollected", position, c, fees, order.account);
        PositionEvents.increased(eventEmitter, position, c);
    }

    /// Shrinks or closes a position that exists, and pays the trader. A liquidation is refused while the position is
    /// healthy; it alone may leave costs unpaid. Returns whether the position is closed.
    function decrease(Fill memory fill) external onlyController returns (bool closed) {
        bytes32 key = PositionKey.ofOrder(fill.order);
        Position.Props memory position = positions[key];
        if (fill.order.orderType == Order.OrderType.Liquidation) _requireLiquidatable(position, fill);
        _fitToPosition(fill, position);

        PositionSettlement.Terms memory t;
        t.books = MarketLedger.Books(dataStore, eventEmitter);
        t.market = fill.market;
        t.prices = fill.prices;
        t.position = position;
        t.order = fill.order;
        t.swapHandler = swapHandler;
        t.change = _change(fill, !fill.order.isLong);
        closed = t.change.sizeDeltaUsd == position.sizeInUsd;
        t.insolventCloseAllowed = closed && fill.order.orderType == Order.OrderType.Liquidation;
        _priceChange(t, closed);
        t.fees = _fees(fill, position, t.change, -Precision.signed(t.change.sizeDeltaUsd));
        (PositionSettlement.Purse memory purse, bool solvent) = PositionSettlement.settle(t);

        uint256 withdrawn = closed ? purse.collateral : fill.order.initialCollateralDeltaAmount;
        if (withdrawn > purse.collateral) {
            revert Errors.InsufficientCollateralAmount(purse.collateral, -Precision.signed(withdrawn));
        }
        purse.collateral -= withdrawn;
        purse.output += withdrawn;
        t.change.collateralDeltaAmount = Precision.signed(position.collateralAmount - purse.collateral);
        _shrink(key, t, purse.collateral, closed);
        if (!closed) _validate(position, fill);
        _announceDecrease(t, solvent);
        _payOut(t, purse);
    }

    function _announceDecrease(PositionSettlement.Terms memory t, bool solvent) private {
        PositionEvents.Fees memory none;
        PositionEvents.fees(
            eventEmitter,
            "PositionFeesCollected",
            t.position,
            t.change,
            solvent ? t.fees : none,
            solvent ? t.position.account : address(0)
        );
        PositionEvents.decreased(eventEmitter, t.position, t.change);
    }

    /// Pays the trader in one token where that can be, after the swaps that the order asks for. A swap that fails leaves its tokens as they
    /// are.
    function _payOut(PositionSettlement.Terms memory t, PositionSettlement.Purse memory purse) private {
        Order.Props memory order = t.order;
        address token = t.position.collateralToken;
        if (order.decreasePositionSwapType == Order.DecreasePositionSwapType.SwapCollateralTokenToPnlToken) {
            (bool swapped, uint256 amount) = PositionSettlement.swapInside(t, token, purse.profitToken, purse.output);
            if (swapped) {
                token = purse.profitToken;
                purse.output = amount + purse.secondary;
                purse.secondary = 0;
            }
        }
        if (purse.secondary == 0 && order.swapPath.length > 0) {
            SwapParams memory p = PositionSettlement.swapOf(t, token, purse.output);
            (p.path, p.receiver) = (order.swapPath, order.receiver);
            try swapHandler.swap(p) returns (address tokenOut, uint256 amountOut) {
                _validateOutput(order, swapHandler.worth(tokenOut, amountOut));
                return;
            } catch {}
        }
        _validateOutput(
            order, swapHandler.worth(token, purse.output) + swapHandler.worth(purse.profitToken, purse.secondary)
        );
        MarketToken market = MarketToken(order.market);
        market.transferOut(token, order.receiver, purse.output);
        market.transferOut(purse.profitToken, order.receiver, purse.secondary);
    }

    function _validateOutput(Order.Props memory order, uint256 usd) private pure {
        if (usd < order.minOutputAmount) revert Errors.InsufficientOutputAmount(usd, order.minOutputAmount);
    }

    /// Writes the smaller position, or deletes the closed one, and takes the change out of the market's sums.
    function _shrink(bytes32 key, PositionSettlement.Terms memory t, uint256 nextCollateral, bool closed) private {
        Position.Props memory position = t.position;
        position.sizeInUsd -= t.change.sizeDeltaUsd;
        position.sizeInTokens -= t.change.sizeDeltaInTokens;
        position.collateralAmount = nextCollateral;
        position.decreasedAtTime = block.timestamp;
        position.fundingFeeAmountPerSize = t.fees.latestFundingFeeAmountPerSize;
        if (closed) delete positions[key];
        else positions[key] = position;
        _applyToLine(t.books, position, t.change, false);
    }

    function _applyToLine(
        MarketLedger.Books memory books,
        Position.Props memory position,
        PositionEvents.Change memory c,
        bool grows
    ) private {
        MarketLedger.Line memory line =
            MarketLedger.Line(position.market, position.collateralToken, position.isLong);
        int256 sign = grows ? int256(1) : int256(-1);
        books.applyToCollateralSum(line, sign * c.collateralDeltaAmount);
        books.applyToOpenInterest(line, sign * Precision.signed(c.sizeDeltaUsd));
        books.applyToOpenInterestInTokens(line, sign * Precision.signed(c.sizeDeltaInTokens));
    }

    /// Protective orders shrink to the position; other orders larger than it are refused. Nobody can ask for more
    /// collateral than there is.
    function _fitToPosition(Fill memory fill, Position.Props memory position) private {
        Order.Props memory order = fill.order;
        if (order.sizeDeltaUsd > position.sizeInUsd) {
            if (!Order.isProtective(order.orderType)) {
                revert Errors.InvalidDecreaseOrderSize(order.sizeDeltaUsd, position.sizeInUsd);
            }
            OrderEvents.sizeAutoUpdated(eventEmitter, fill.orderKey, order.sizeDeltaUsd, position.sizeInUsd);
            order.sizeDeltaUsd = position.sizeInUsd;
        }
        uint256 wanted = order.initialCollateralDeltaAmount;
        if (wanted > position.collateralAmount) {
            OrderEvents.collateralAutoUpdated(eventEmitter, fill.orderKey, wanted, position.collateralAmount);
            order.initialCollateralDeltaAmount = position.collateralAmount;
        }
    }

    /// What the order says about the change; checks the acceptable price.
    function _change(Fill memory fill, bool buys) private pure returns (PositionEvents.Change memory c) {
        c.orderKey = fill.orderKey;
        c.orderType = fill.order.orderType;
        c.indexPrice = fill.prices.indexTokenPrice;
        c.collateralPrice = Market.priceOf(fill.market, fill.prices, fill.order.initialCollateralToken);
        c.sizeDeltaUsd = fill.order.sizeDeltaUsd;
        c.executionPrice = Price.pick(c.indexPrice, buys);
        uint256 acceptable = fill.order.acceptablePrice;
        if (buys ? c.executionPrice > acceptable : c.executionPrice < acceptable) {
            revert Errors.OrderNotFulfillableAtAcceptablePrice(c.executionPrice, acceptable);
        }
    }

    /// Tokens and profit of a decrease, in proportion; rounded in the pool's favour.
    function _priceChange(PositionSettlement.Terms memory t, bool closed) private pure {
        Position.Props memory position = t.position;
        if (closed) {
            t.change.sizeDeltaInTokens = position.sizeInTokens;
        } else {
            uint256 product = position.sizeInTokens * t.change.sizeDeltaUsd;
            t.change.sizeDeltaInTokens = position.isLong
                ? Precision.roundUpDivision(product, position.sizeInUsd)
                : product / position.sizeInUsd;
        }
        t.change.basePnlUsd = PositionRisk.pnlUsd(position, t.change.indexPrice)
            * Precision.signed(t.change.sizeDeltaInTokens) / Precision.signed(position.sizeInTokens);
    }

    function _fees(
        Fill memory fill,
        Position.Props memory position,
        PositionEvents.Change memory c,
        int256 openInterestDelta
    ) private view returns (PositionEvents.Fees memory fees) {
        (fees.fundingFeeAmount, fees.latestFundingFeeAmountPerSize) = _funding(position);
        fees.positionFeeFactor = _positionFeeFactor(fill.market, fill.order.isLong, openInterestDelta);
        fees.positionFeeAmount =
            Precision.applyFactor(c.sizeDeltaUsd, fees.positionFeeFactor) / c.collateralPrice.min;
        if (c.orderType != Order.OrderType.Liquidation) return fees;
        uint256 factor = dataStore.getUint(Keys.ofAddress(Keys.LIQUIDATION_FEE_FACTOR, fill.market.marketToken));
        fees.liquidationFeeAmount = Precision.applyFactor(c.sizeDeltaUsd, factor) / c.collateralPrice.min;
    }

    /// What the position owes of funding, and its side's amount per size.
    function _funding(Position.Props memory p) private view returns (uint256 amount, uint256 latest) {
        latest = dataStore.getUint(Keys.fundingFeeAmountPerSizeKey(p.market, p.collateralToken, p.isLong));
        amount = Funding.owed(p.sizeInUsd, p.fundingFeeAmountPerSize, latest);
    }

    /// The lower factor is for changes that make the open interest of the two sides more equal.
    function _positionFeeFactor(Market.Props memory market, bool isLong, int256 delta) private view returns (uint256) {
        uint256 own = MarketLedger.openInterest(dataStore, market, isLong);
        uint256 other = MarketLedger.openInterest(dataStore, market, !isLong);
        uint256 next = uint256(Precision.signed(own) + delta);
        bool improved = Precision.diff(next, other) < Precision.diff(own, other);
        return dataStore.getUint(Keys.ofMarketFlag(Keys.POSITION_FEE_FACTOR, market.marketToken, improved));
    }

    /// Reverts unless the position may stay open as it is now.
    function _validate(Position.Props memory position, Fill memory fill) private view {
        if (position.sizeInUsd == 0 || position.sizeInTokens == 0) {
            revert Errors.InvalidPositionSizeValues(position.sizeInUsd, position.sizeInTokens);
        }
        uint256 minSize = dataStore.getUint(Keys.MIN_POSITION_SIZE_USD);
        if (position.sizeInUsd < minSize) revert Errors.MinPositionSize(position.sizeInUsd, minSize);
        PositionRisk.Verdict memory v = _judge(position, fill, Keys.MIN_COLLATERAL_FACTOR);
        if (v.liquidatable) {
            revert Errors.LiquidatablePosition(
                v.reason, v.remainingCollateralUsd, v.minCollateralUsd, v.minCollateralUsdForLeverage
            );
        }
    }

    function _requireLiquidatable(Position.Props memory position, Fill memory fill) private view {
        PositionRisk.Verdict memory v = _judge(position, fill, Keys.MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION);
        if (!v.liquidatable) {
            revert Errors.PositionShouldNotBeLiquidated(
                v.reason, v.remainingCollateralUsd, v.minCollateralUsd, v.minCollateralUsdForLeverage
            );
        }
    }

    function _judge(Position.Props memory position, Fill memory fill, bytes32 factorKey)
        private
        view
        returns (PositionRisk.Verdict memory)
    {
        PositionRisk.Terms memory terms;
        terms.minCollateralUsd = dataStore.getUint(Keys.MIN_COLLATERAL_USD);
        terms.minCollateralFactor = dataStore.getUint(Keys.ofAddress(factorKey, position.market));
        terms.positionFeeFactor =
            _positionFeeFactor(fill.market, position.isLong, -Precision.signed(position.sizeInUsd));
        (terms.fundingFeeAmount,) = _funding(position);
        terms.ratioFactor = dataStore.getUint(Keys.LIQUIDATION_RATIO_FACTOR);
        Price.Props memory collateral = Market.priceOf(fill.market, fill.prices, position.collateralToken);
        return PositionRisk.judge(position, fill.prices.indexTokenPrice, collateral, terms);
    }
}
