// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BaseOrderHandler} from "./BaseOrderHandler.sol";
import {Callback} from "./Callback.sol";
import {DataStore} from "./DataStore.sol";
import {ErrorReason} from "./ErrorReason.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {ExecutionFee} from "./ExecutionFee.sol";
import {GasLimit} from "./GasLimit.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {Oracle} from "./Oracle.sol";
import {SetPricesParams} from "./OracleParams.sol";
import {Order} from "./Order.sol";
import {OrderBook} from "./OrderBook.sol";
import {OrderEvents} from "./OrderEvents.sol";
import {OrderTiming} from "./OrderTiming.sol";
import {Position, PositionKey} from "./Position.sol";
import {PositionBook} from "./PositionBook.sol";
import {RequestVault} from "./RequestVault.sol";
import {Role} from "./Role.sol";
import {RoleStore} from "./RoleStore.sol";
import {SwapHandler, SwapParams} from "./SwapHandler.sol";
import {TwapOrders} from "./TwapOrders.sol";

/// @title The orders of users, and their execution by keepers.
contract OrderHandler is BaseOrderHandler, TwapOrders {
    SwapHandler public immutable swapHandler;

    constructor(
        RoleStore _roleStore,
        DataStore _dataStore,
        EventEmitter _eventEmitter,
        Oracle _oracle,
        OrderBook _orderBook,
        PositionBook _positionBook,
        RequestVault _orderVault,
        SwapHandler _swapHandler
    ) BaseOrderHandler(_roleStore, _dataStore, _eventEmitter, _oracle, _orderBook, _positionBook, _orderVault) {
        swapHandler = _swapHandler;
    }

    function createOrder(address account, Order.CreateParams calldata params)
        external
        onlyController
        returns (bytes32)
    {
        return _createOrders(account, params, 1, 0)[0];
    }

    /// Orders of the same terms, each valid so many seconds after the one before. They share out equally what was paid in.
    function _createOrders(address account, Order.CreateParams calldata params, uint256 count, uint256 interval)
        internal
        override
        returns (bytes32[] memory keys)
    {
        _validateFeature(Keys.CREATE_ORDER_FEATURE_DISABLED, params.orderType);
        _validateParams(account, params);
        Order.Props memory order = _orderOf(account, params);
        order.executionFee = orderVault.recordNativeIn() / count;
        _validateOrderFee(order, params.numbers.executionFee);
        if (Order.paysIn(order.orderType)) {
            order.initialCollateralDeltaAmount = orderVault.recordTransferIn(order.initialCollateralToken) / count;
        }
        if (order.sizeDeltaUsd == 0 && order.initialCollateralDeltaAmount == 0) revert Errors.EmptyOrder();
        keys = new bytes32[](count);
        for (uint256 i; i < count; i++) {
            order.validFromTime = params.numbers.validFromTime + i * interval;
            if (order.validFromTime != 0 && Order.isMarketOrder(order.orderType)) {
                revert Errors.UnexpectedValidFromTime(uint256(order.orderType));
            }
            keys[i] = orderBook.create(order);
        }
    }

    /// Changes a waiting order. It counts as new from now on, and a frozen order thaws. Native coin sent along is added to
    /// its execution fee.
    function updateOrder(bytes32 key, address account, Order.UpdateParams calldata params) external onlyController {
        Order.Props memory order = orderBook.getOrder(key);
        if (order.account != account) revert Errors.Unauthorized(account, "account for updateOrder");
        if (Order.isMarketOrder(order.orderType)) revert Errors.OrderNotUpdatable(uint256(order.orderType));
        order.sizeDeltaUsd = params.sizeDeltaUsd;
        order.acceptablePrice = params.acceptablePrice;
        order.triggerPrice = params.triggerPrice;
        order.minOutputAmount = params.minOutputAmount;
        order.validFromTime = params.validFromTime;
        order.autoCancel = params.autoCancel;
        order.isFrozen = false;
        order.executionFee += orderVault.recordNativeIn();
        order.updatedAtTime = block.timestamp;
        _validateOrderFee(order, 0);
        if (order.sizeDeltaUsd == 0 && order.initialCollateralDeltaAmount == 0) revert Errors.EmptyOrder();
        orderBook.update(key, order);
    }

    /// Waiting orders may be cancelled at any time, market orders when they have expired. Whoever cancels for another pays the gas:
    /// the fee's part for it goes to the order's account.
    function cancelOrder(bytes32 key) external onlyCanceller {
        uint256 startingGas = gasleft();
        Order.Props memory order = orderBook.getOrder(key);
        if (Order.isMarketOrder(order.orderType)) _validateCancellable(order.updatedAtTime, "Order");
        _validateGasForCancellation(false);
        _cancel(key, order, order.account, startingGas, "USER_INITIATED_CANCEL", "");
    }

    /// The contract that is called after every liquidation of the account in the market; zero for none.
    function setSavedCallbackContract(address account, address market, address callbackContract) external onlyController {
        dataStore.setAddress(Keys.savedCallbackContractKey(account, market), callbackContract);
    }

    /// A failure that is about the order cancels a market order and freezes a waiting one; the transaction succeeds. A
    /// failure that is about the keeper, the prices or the moment reverts, and the order stays as it was.
    function executeOrder(bytes32 key, SetPricesParams calldata oracleParams)
        external
        onlyOrderKeeper
        withOraclePrices(oracleParams)
    {
        Order.Props memory order = orderBook.getOrder(key);
        bool guarded = order.isFrozen || order.orderType == Order.OrderType.LimitSwap;
        if (guarded && !roleStore.hasRole(msg.sender, Role.FROZEN_ORDER_KEEPER)) {
            revert Errors.InvalidKeeperForFrozenOrder(msg.sender);
        }
        uint256 forwarded = ExecutionFee.gasToForward(dataStore, GasLimit.ofOrder(dataStore, order));
        uint256 startingGas = gasleft();
        try this.doExecuteOrder{gas: forwarded}(key, order, msg.sender) {}
        catch (bytes memory reasonBytes) {
            _handleError(key, order, startingGas, reasonBytes);
        }
    }

    /// The execution itself, as a call of its own so that a failure undoes it.
    function doExecuteOrder(bytes32 key, Order.Props memory order, address keeper) external onlySelf {
        uint256 startingGas = gasleft();
        _validateFeature(Keys.EXECUTE_ORDER_FEATURE_DISABLED, order.orderType);
        orderBook.take(key);
        bytes32 closedPosition;
        if (Order.isSwapOrder(order.orderType)) _executeSwap(key, order);
        else closedPosition = _executePositionOrder(key, order);
        OrderEvents.executed(eventEmitter, key, order.account);
        Callback.afterOrderExecution(key, order);
        _pay(key, order, startingGas, keeper, order.receiver);
        if (closedPosition != bytes32(0)) _autoCancel(closedPosition, keeper);
    }

    function _executeSwap(bytes32 key, Order.Props memory order) private {
        Position.Props memory none;
        _validateTimestamps(order, none);
        _swap(key, order, order.receiver);
    }

    /// Returns the key of the position if it is closed now.
    function _executePositionOrder(bytes32 key, Order.Props memory order) private returns (bytes32 closed) {
        PositionBook.Fill memory fill;
        fill.orderKey = key;
        fill.order = order;
        fill.market = Market.loadForPositions(dataStore, order.market);
        fill.prices = oracle.getMarketPrices(fill.market);
        OrderTiming.validateTrigger(order, fill.prices.indexTokenPrice);

        bytes32 positionKey = PositionKey.ofOrder(order);
        Position.Props memory position = positionBook.getPosition(positionKey);
        bool increases = Order.isIncreaseOrder(order.orderType);
        if (!increases && position.sizeInUsd == 0) revert Errors.EmptyPosition();
        _validateTimestamps(order, position);
        _updateFunding(fill.market);
        if (increases) {
            (address token, uint256 amount) = _swap(key, order, order.market);
            Market.requireCollateral(fill.market, token);
            positionBook.increase(fill, token, amount);
        } else if (positionBook.decrease(fill)) {
            closed = positionKey;
        }
    }

    /// Swaps what came with the order along its path; without one the tokens only move.
    function _swap(bytes32 key, Order.Props memory order, address receiver) private returns (address, uint256) {
        return swapHandler.swap(
            SwapParams(
                key,
                Keys.SWAP_FEE_FACTOR,
                address(orderVault),
                order.initialCollateralToken,
                order.initialCollateralDeltaAmount,
                order.swapPath,
                order.minOutputAmount,
                receiver,
                order.uiFeeReceiver
            )
        );
    }

    function _validateTimestamps(Order.Props memory order, Position.Props memory position) private view {
        OrderTiming.validateTimestamps(
            order,
            oracle.minTimestamp(),
            oracle.maxTimestamp(),
            position.increasedAtTime,
            dataStore.getUint(Keys.REQUEST_EXPIRATION_TIME)
        );
    }

    function _handleError(bytes32 key, Order.Props memory order, uint256 startingGas, bytes memory reasonBytes)
        private
    {
        ExecutionFee.validateErrorGas(dataStore, reasonBytes);
        bytes4 selector = ErrorReason.selectorOf(reasonBytes);
        bool isMarketOrder = Order.isMarketOrder(order.orderType);
        if (order.isFrozen || _keepsOrder(selector, isMarketOrder)) ErrorReason.rethrow(reasonBytes);

        string memory reason = ErrorReason.textOf(reasonBytes);
        if (isMarketOrder || _neverExecutable(selector)) {
            _validateGasForCancellation(false);
            _cancel(key, order, msg.sender, startingGas, reason, reasonBytes);
        } else {
            orderBook.freeze(key, reason, reasonBytes);
            Callback.afterOrderFrozen(key, order);
            _pay(key, order, startingGas, msg.sender, order.receiver);
        }
    }

    function _keepsOrder(bytes4 selector, bool isMarketOrder) private pure returns (bool) {
        return _isKeeperError(selector) || selector == Errors.EmptyOrder.selector
            || selector == Errors.InvalidOrderPrices.selector || selector == Errors.OrderValidFromTimeNotReached.selector
            || (!isMarketOrder && selector == Errors.EmptyPosition.selector);
    }

    function _neverExecutable(bytes4 selector) private pure returns (bool) {
        return selector == Errors.InvalidPositionMarket.selector
            || selector == Errors.InvalidCollateralTokenForMarket.selector
            || selector == Errors.InvalidPositionSizeValues.selector;
    }

    function _validateFeature(bytes32 baseKey, Order.OrderType orderType) private view {
        bytes32 key = Keys.ofFeature(baseKey, address(this), uint256(orderType));
        if (dataStore.getBool(key)) revert Errors.DisabledFeature(key);
    }

    function _validateParams(address account, Order.CreateParams calldata params) private view {
        Order.OrderType t = params.orderType;
        if (t == Order.OrderType.Liquidation) revert Errors.OrderTypeCannotBeCreated(uint256(t));
        _validateRequest(account, params.addresses.receiver, params.numbers.callbackGasLimit, params.dataList.length);
        address token = _validatePath(params.addresses.swapPath, params.addresses.initialCollateralToken);
        if (Order.isSwapOrder(t)) {
            if (params.addresses.market != address(0)) revert Errors.UnexpectedMarket();
            return;
        }
        Market.Props memory market = Market.loadForPositions(dataStore, params.addresses.market);
        Market.requireCollateral(market, Order.isIncreaseOrder(t) ? token : params.addresses.initialCollateralToken);
    }

    function _orderOf(address account, Order.CreateParams calldata params)
        private
        view
        returns (Order.Props memory order)
    {
        order.account = account;
        order.receiver = params.addresses.receiver;
        order.cancellationReceiver = params.addresses.cancellationReceiver;
        order.callbackContract = params.addresses.callbackContract;
        order.uiFeeReceiver = params.addresses.uiFeeReceiver;
        order.market = params.addresses.market;
        order.initialCollateralToken = params.addresses.initialCollateralToken;
        order.swapPath = params.addresses.swapPath;
        order.orderType = params.orderType;
        order.decreasePositionSwapType = params.decreasePositionSwapType;
        order.callbackGasLimit = params.numbers.callbackGasLimit;
        order.isLong = params.isLong;
        order.shouldUnwrapNativeToken = params.shouldUnwrapNativeToken;
        order.autoCancel = params.autoCancel;
        order.sizeDeltaUsd = params.numbers.sizeDeltaUsd;
        order.initialCollateralDeltaAmount = params.numbers.initialCollateralDeltaAmount;
        order.triggerPrice = params.numbers.triggerPrice;
        order.acceptablePrice = params.numbers.acceptablePrice;
        order.minOutputAmount = params.numbers.minOutputAmount;
        order.updatedAtTime = block.timestamp;
        order.dataList = params.dataList;
    }

    function _validateOrderFee(Order.Props memory order, uint256 stated) private view {
        _validateFee(order.executionFee, stated, GasLimit.ofOrder(dataStore, order), order.swapPath.length);
    }
}
