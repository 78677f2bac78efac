// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BaseGlvHandler} from "./BaseGlvHandler.sol";
import {DataStore} from "./DataStore.sol";
import {ERC20} from "./ERC20.sol";
import {ErrorReason} from "./ErrorReason.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {ExecutionFee} from "./ExecutionFee.sol";
import {GlvFactory} from "./GlvFactory.sol";
import {GlvShift} from "./GlvShift.sol";
import {GlvToken} from "./GlvToken.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {Nonce} from "./Nonce.sol";
import {Oracle} from "./Oracle.sol";
import {SetPricesParams} from "./OracleParams.sol";
import {PoolBook} from "./PoolBook.sol";
import {Requests} from "./Requests.sol";
import {RoleStore} from "./RoleStore.sol";
import {Shift} from "./Shift.sol";

/// @title Shifts of a GLV's liquidity between its markets. Keepers ask for them and execute them; no fee is paid.
contract GlvShiftHandler is BaseGlvHandler {
    using EventUtils for EventUtils.EventLogData;

    constructor(
        RoleStore _roleStore,
        DataStore _dataStore,
        EventEmitter _eventEmitter,
        Oracle _oracle,
        GlvFactory _glvFactory,
        PoolBook _poolBook
    ) BaseGlvHandler(_roleStore, _dataStore, _eventEmitter, _oracle, _glvFactory, _poolBook) {}

    /// Reverts with GlvShiftNotFound if there is no such shift (any more).
    function getGlvShift(bytes32 key) public view returns (GlvShift.Props memory) {
        bytes memory stored = Requests.load(dataStore, Requests.GLV_SHIFT, key);
        if (stored.length == 0) revert Errors.GlvShiftNotFound(key);
        return abi.decode(stored, (GlvShift.Props));
    }

    function createGlvShift(GlvShift.CreateParams calldata params) external onlyOrderKeeper returns (bytes32 key) {
        GlvShift.Props memory shift = GlvShift.Props(
            params.glv,
            params.fromMarket,
            params.toMarket,
            params.marketTokenAmount,
            params.minMarketTokens,
            block.timestamp
        );
        glvFactory.requireMarket(shift.glv, shift.fromMarket);
        glvFactory.requireMarket(shift.glv, shift.toMarket);
        if (shift.fromMarket == shift.toMarket) revert Errors.ShiftFromAndToMarketAreEqual(shift.fromMarket);
        _validateInterval(shift.glv);
        _validateBalance(shift);
        key = Nonce.nextKey(dataStore);
        Requests.store(dataStore, Requests.GLV_SHIFT, key, abi.encode(shift));
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("fromMarket", shift.fromMarket);
        e.put("toMarket", shift.toMarket);
        e.put("glv", shift.glv);
        e.putUint("marketTokenAmount", shift.marketTokenAmount);
        e.putUint("minMarketTokens", shift.minMarketTokens);
        e.putUint("updatedAtTime", shift.updatedAtTime);
        e.putBytes32("key", key);
        eventEmitter.emitEventLog1("GlvShiftCreated", key, e);
    }

    /// A failure that is about the shift cancels it and the transaction succeeds; any other reverts.
    function executeGlvShift(bytes32 key, SetPricesParams calldata oracleParams)
        external
        onlyOrderKeeper
        withOraclePrices(oracleParams)
    {
        GlvShift.Props memory shift = getGlvShift(key);
        uint256 forwarded = ExecutionFee.gasToForward(dataStore, dataStore.getUint(Keys.GLV_SHIFT_GAS_LIMIT));
        try this.doExecuteGlvShift{gas: forwarded}(key, shift) {}
        catch (bytes memory reasonBytes) {
            ExecutionFee.validateErrorGas(dataStore, reasonBytes);
            if (_isKeeperError(ErrorReason.selectorOf(reasonBytes))) ErrorReason.rethrow(reasonBytes);
            Requests.remove(dataStore, Requests.GLV_SHIFT, key);
            EventUtils.EventLogData memory e = EventUtils.create();
            e.putBytes32("key", key);
            e.setString("reason", ErrorReason.textOf(reasonBytes));
            e.setBytes("reasonBytes", reasonBytes);
            eventEmitter.emitEventLog1("GlvShiftCancelled", key, e);
        }
    }

    /// The shift is announced under a key of its own, as its withdrawal and its deposit are.
    function doExecuteGlvShift(bytes32 key, GlvShift.Props memory shift) external onlySelf {
        Requests.remove(dataStore, Requests.GLV_SHIFT, key);
        _validateRequestTimestamps(shift.updatedAtTime);
        _validateInterval(shift.glv);
        _validateBalance(shift);
        dataStore.setUint(Keys.ofAddress(Keys.GLV_SHIFT_LAST_EXECUTED_AT, shift.glv), block.timestamp);

        bytes32 innerKey = Nonce.nextKey(dataStore);
        Shift.Props memory inner;
        inner.account = shift.glv;
        inner.receiver = shift.glv;
        inner.fromMarket = shift.fromMarket;
        inner.toMarket = shift.toMarket;
        inner.marketTokenAmount = shift.marketTokenAmount;
        inner.minMarketTokens = shift.minMarketTokens;
        inner.updatedAtTime = shift.updatedAtTime;
        _emitInnerCreated(innerKey, inner);
        GlvToken(shift.glv).transferOut(shift.fromMarket, shift.fromMarket, shift.marketTokenAmount);
        _updateFunding(Market.loadEnabled(dataStore, inner.fromMarket));
        _updateFunding(Market.loadEnabled(dataStore, inner.toMarket));
        uint256 received = poolBook.shift(inner);

        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("key", innerKey);
        e.put("account", shift.glv);
        e.putUint("receivedMarketTokens", received);
        eventEmitter.emitEventLog2("ShiftExecuted", innerKey, EventUtils.topic(shift.glv), e);
        e = EventUtils.create();
        e.putBytes32("key", key);
        e.putUint("receivedMarketTokens", received);
        eventEmitter.emitEventLog1("GlvShiftExecuted", key, e);
    }

    function _validateInterval(address glv) private view {
        uint256 interval = dataStore.getUint(Keys.ofAddress(Keys.GLV_SHIFT_MIN_INTERVAL, glv));
        uint256 last = dataStore.getUint(Keys.ofAddress(Keys.GLV_SHIFT_LAST_EXECUTED_AT, glv));
        if (block.timestamp < last + interval) {
            revert Errors.GlvShiftIntervalNotYetPassed(block.timestamp, last, interval);
        }
    }

    function _validateBalance(GlvShift.Props memory shift) private view {
        uint256 held = ERC20(shift.fromMarket).balanceOf(shift.glv);
        if (shift.marketTokenAmount == 0) revert Errors.EmptyShiftAmount();
        if (held < shift.marketTokenAmount) {
            revert Errors.GlvInsufficientMarketTokenBalance(
                shift.glv, shift.fromMarket, held, shift.marketTokenAmount
            );
        }
    }

    function _emitInnerCreated(bytes32 key, Shift.Props memory shift) private {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("account", shift.account);
        e.put("receiver", shift.receiver);
        e.put("callbackContract", address(0));
        e.put("fromMarket", shift.fromMarket);
        e.put("toMarket", shift.toMarket);
        e.put("uiFeeReceiver", address(0));
        e.putUint("marketTokenAmount", shift.marketTokenAmount);
        e.putUint("minMarketTokens", shift.minMarketTokens);
        e.putUint("updatedAtTime", shift.updatedAtTime);
        e.putUint("executionFee", 0);
        e.putUint("callbackGasLimit", 0);
        e.putUint("srcChainId", 0);
        e.putBytes32("key", key);
        e.setBytes32Array("dataList", new bytes32[](0));
        eventEmitter.emitEventLog2("ShiftCreated", key, EventUtils.topic(shift.account), e);
    }
}
