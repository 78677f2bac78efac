// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BaseOrderHandler} from "./BaseOrderHandler.sol";
import {Callback} from "./Callback.sol";
import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {Nonce} from "./Nonce.sol";
import {Oracle} from "./Oracle.sol";
import {SetPricesParams} from "./OracleParams.sol";
import {Order} from "./Order.sol";
import {OrderBook} from "./OrderBook.sol";
import {OrderEvents} from "./OrderEvents.sol";
import {Position, PositionKey} from "./Position.sol";
import {PositionBook} from "./PositionBook.sol";
import {RequestVault} from "./RequestVault.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title Liquidations: an order that nobody placed, created and executed in one transaction.
/// Any failure reverts. No execution fee is paid. The contract that the account has saved for the market is told.
contract LiquidationHandler is BaseOrderHandler {
    constructor(
        RoleStore _roleStore,
        DataStore _dataStore,
        EventEmitter _eventEmitter,
        Oracle _oracle,
        OrderBook _orderBook,
        PositionBook _positionBook,
        RequestVault _orderVault
    ) BaseOrderHandler(_roleStore, _dataStore, _eventEmitter, _oracle, _orderBook, _positionBook, _orderVault) {}

    /// Closes the whole position. Reverts with PositionShouldNotBeLiquidated and its numbers while the position is healthy,
    /// and with EmptyOrder when it does not exist (any more).
    function executeLiquidation(
        address account,
        address market,
        address collateralToken,
        bool isLong,
        SetPricesParams calldata oracleParams
    ) external onlyLiquidationKeeper withOraclePrices(oracleParams) {
        bytes32 positionKey = PositionKey.derive(account, market, collateralToken, isLong);
        Position.Props memory position = positionBook.getPosition(positionKey);
        if (position.sizeInUsd == 0) revert Errors.EmptyOrder();
        _validateTimestamps(position);

        PositionBook.Fill memory fill;
        fill.orderKey = Nonce.nextKey(dataStore);
        fill.order = _orderOf(position);
        fill.market = Market.loadEnabled(dataStore, market);
        fill.prices = oracle.getMarketPrices(fill.market);
        OrderEvents.created(eventEmitter, fill.orderKey, fill.order);
        _updateFunding(fill.market);
        positionBook.decrease(fill);
        OrderEvents.executed(eventEmitter, fill.orderKey, account);
        Callback.afterOrderExecution(fill.orderKey, fill.order);
        _autoCancel(positionKey, msg.sender);
        _burn();
    }

    /// Burns gas in no time, for chains that are to be as full as those on which a liquidation does more: ecPairing
    /// fails for an input that is not made of pairs, and keeps all it was given.
    function _burn() private view {
        uint256 amount = dataStore.getUint(Keys.DEVNET_LIQUIDATION_BURN);
        if (amount == 0) return;
        assembly ("memory-safe") {
            pop(staticcall(amount, 8, 0, 1, 0, 0))
        }
    }

    /// Prices from before the position's last change cannot liquidate it.
    function _validateTimestamps(Position.Props memory position) private view {
        uint256 required = position.increasedAtTime > position.decreasedAtTime
            ? position.increasedAtTime
            : position.decreasedAtTime;
        uint256 oldest = oracle.minTimestamp();
        if (oldest < required) revert Errors.OracleTimestampsAreSmallerThanRequired(oldest, required);
    }

    function _orderOf(Position.Props memory position) private view returns (Order.Props memory order) {
        order.account = position.account;
        order.receiver = position.account;
        order.cancellationReceiver = position.account;
        order.market = position.market;
        order.initialCollateralToken = position.collateralToken;
        order.orderType = Order.OrderType.Liquidation;
        order.decreasePositionSwapType = Order.DecreasePositionSwapType.SwapPnlTokenToCollateralToken;
        order.callbackContract = dataStore.getAddress(Keys.savedCallbackContractKey(position.account, position.market));
        order.callbackGasLimit = dataStore.getUint(Keys.MAX_CALLBACK_GAS_LIMIT);
        order.isLong = position.isLong;
        order.sizeDeltaUsd = position.sizeInUsd;
        order.acceptablePrice = position.isLong ? 0 : type(uint256).max;
        order.updatedAtTime = block.timestamp;
    }
}
