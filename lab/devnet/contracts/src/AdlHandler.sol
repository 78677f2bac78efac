// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AdlState} from "./AdlState.sol";
import {BaseOrderHandler} from "./BaseOrderHandler.sol";
import {Callback} from "./Callback.sol";
import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {Nonce} from "./Nonce.sol";
import {Oracle} from "./Oracle.sol";
import {SetPricesParams} from "./OracleParams.sol";
import {Order} from "./Order.sol";
import {OrderBook} from "./OrderBook.sol";
import {OrderEvents} from "./OrderEvents.sol";
import {PositionKey} from "./Position.sol";
import {PositionBook} from "./PositionBook.sol";
import {RequestVault} from "./RequestVault.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title Auto-deleveraging: profitable positions are closed while their side has gained more than the pool should pay.
/// Any failure reverts. No execution fee is paid.
contract AdlHandler is BaseOrderHandler {
    using EventUtils for EventUtils.EventLogData;

    constructor(
        RoleStore _roleStore,
        DataStore _dataStore,
        EventEmitter _eventEmitter,
        Oracle _oracle,
        OrderBook _orderBook,
        PositionBook _positionBook,
        RequestVault _orderVault
    ) BaseOrderHandler(_roleStore, _dataStore, _eventEmitter, _oracle, _orderBook, _positionBook, _orderVault) {}

    /// Compares profits and pool again and says whether the side is to be deleveraged from now on.
    function updateAdlState(address market, bool isLong, SetPricesParams calldata oracleParams)
        external
        onlyAdlKeeper
        withOraclePrices(oracleParams)
    {
        AdlState.validateTimestamp(dataStore, market, isLong, oracle.maxTimestamp());
        Market.Props memory m = Market.loadEnabled(dataStore, market);
        int256 factor = AdlState.pnlToPoolFactor(dataStore, m, oracle.getMarketPrices(m), isLong);
        uint256 limit = AdlState.limit(dataStore, market, isLong);
        bool enabled = AdlState.exceeds(factor, limit);
        AdlState.set(dataStore, market, isLong, enabled);

        EventUtils.EventLogData memory e = EventUtils.create();
        e.putInt("pnlToPoolFactor", factor);
        e.putUint("maxPnlFactor", limit);
        e.putBool("isLong", isLong);
        e.putBool("shouldEnableAdl", enabled);
        eventEmitter.emitEventLog1("AdlStateUpdated", EventUtils.topic(market), e);
    }

    /// Closes so much of a position, at the market's price. Reverts unless that is allowed now, brings the side's profits
    /// down, and does not bring them below the floor.
    function executeAdl(
        address account,
        address market,
        address collateralToken,
        bool isLong,
        uint256 sizeDeltaUsd,
        SetPricesParams calldata oracleParams
    ) external onlyAdlKeeper withOraclePrices(oracleParams) {
        if (!AdlState.isEnabled(dataStore, market, isLong)) revert Errors.AdlNotEnabled();
        AdlState.validateTimestamp(dataStore, market, isLong, oracle.maxTimestamp());
        PositionBook.Fill memory fill;
        fill.market = Market.loadEnabled(dataStore, market);
        fill.prices = oracle.getMarketPrices(fill.market);
        int256 factor = AdlState.pnlToPoolFactor(dataStore, fill.market, fill.prices, isLong);
        uint256 limit = AdlState.limit(dataStore, market, isLong);
        if (!AdlState.exceeds(factor, limit)) revert Errors.AdlNotRequired(factor, limit);

        fill.order = _orderOf(account, market, collateralToken, isLong, sizeDeltaUsd);
        _decrease(fill);
        _validateNext(fill, isLong, factor);
    }

    function _decrease(PositionBook.Fill memory fill) private {
        bytes32 positionKey = PositionKey.ofOrder(fill.order);
        uint256 size = positionBook.getPosition(positionKey).sizeInUsd;
        if (fill.order.sizeDeltaUsd > size) revert Errors.InvalidSizeDeltaForAdl(fill.order.sizeDeltaUsd, size);
        fill.orderKey = Nonce.nextKey(dataStore);
        OrderEvents.created(eventEmitter, fill.orderKey, fill.order);
        _updateFunding(fill.market);
        bool closed = positionBook.decrease(fill);
        OrderEvents.deleveraged(eventEmitter, fill.orderKey, fill.order.account);
        Callback.afterOrderExecution(fill.orderKey, fill.order);
        if (closed) _autoCancel(positionKey, msg.sender);
    }

    function _validateNext(PositionBook.Fill memory fill, bool isLong, int256 factor) private view {
        int256 next = AdlState.pnlToPoolFactor(dataStore, fill.market, fill.prices, isLong);
        if (next >= factor) revert Errors.InvalidAdl(next, factor);
        uint256 floor =
            dataStore.getUint(Keys.ofMarketFlag(Keys.MIN_PNL_FACTOR_AFTER_ADL, fill.market.marketToken, isLong));
        if (next < int256(floor)) revert Errors.PnlOvercorrected(next, floor);
    }

    function _orderOf(address account, address market, address collateralToken, bool isLong, uint256 sizeDeltaUsd)
        private
        view
        returns (Order.Props memory order)
    {
        order.account = account;
        order.receiver = account;
        order.cancellationReceiver = account;
        order.market = market;
        order.initialCollateralToken = collateralToken;
        order.orderType = Order.OrderType.MarketDecrease;
        order.decreasePositionSwapType = Order.DecreasePositionSwapType.SwapPnlTokenToCollateralToken;
        order.callbackContract = dataStore.getAddress(Keys.savedCallbackContractKey(account, market));
        order.callbackGasLimit = dataStore.getUint(Keys.MAX_CALLBACK_GAS_LIMIT);
        order.isLong = isLong;
        order.sizeDeltaUsd = sizeDeltaUsd;
        order.acceptablePrice = isLong ? 0 : type(uint256).max;
        order.updatedAtTime = block.timestamp;
    }
}
