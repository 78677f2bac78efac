// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BaseHandler} from "./BaseHandler.sol";
import {DataStore} from "./DataStore.sol";
import {ErrorReason} from "./ErrorReason.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {ExecutionFee} from "./ExecutionFee.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {Nonce} from "./Nonce.sol";
import {Oracle} from "./Oracle.sol";
import {SetPricesParams} from "./OracleParams.sol";
import {PoolBook} from "./PoolBook.sol";
import {RequestEvents} from "./RequestEvents.sol";
import {Requests} from "./Requests.sol";
import {RequestVault} from "./RequestVault.sol";
import {RoleStore} from "./RoleStore.sol";
import {Shift} from "./Shift.sol";

/// @title Shifts of liquidity between two markets.
contract ShiftHandler is BaseHandler {
    using EventUtils for EventUtils.EventLogData;

    RequestVault public immutable shiftVault;
    PoolBook public immutable poolBook;

    constructor(
        RoleStore _roleStore,
        DataStore _dataStore,
        EventEmitter _eventEmitter,
        Oracle _oracle,
        PoolBook _poolBook,
        RequestVault _shiftVault
    ) BaseHandler(_roleStore, _dataStore, _eventEmitter, _oracle) {
        poolBook = _poolBook;
        shiftVault = _shiftVault;
    }

    /// Reverts with EmptyShift if there is no such shift (any more).
    function getShift(bytes32 key) public view returns (Shift.Props memory) {
        bytes memory stored = Requests.load(dataStore, Requests.SHIFT, key);
        if (stored.length == 0) revert Errors.EmptyShift();
        return abi.decode(stored, (Shift.Props));
    }

    function createShift(address account, Shift.CreateParams calldata params)
        external
        onlyController
        returns (bytes32 key)
    {
        _validatePlainRequest(account, params.addresses.receiver, 0, params.callbackGasLimit, params.dataList.length);
        _validateMarkets(params.addresses.fromMarket, params.addresses.toMarket);
        Shift.Props memory shift;
        shift.account = account;
        shift.receiver = params.addresses.receiver;
        shift.fromMarket = params.addresses.fromMarket;
        shift.toMarket = params.addresses.toMarket;
        shift.marketTokenAmount = shiftVault.recordTransferIn(shift.fromMarket);
        shift.minMarketTokens = params.minMarketTokens;
        shift.updatedAtTime = block.timestamp;
        shift.executionFee = shiftVault.recordNativeIn();
        if (shift.marketTokenAmount == 0) revert Errors.EmptyShiftAmount();
        _validateFee(shift.executionFee, params.executionFee, dataStore.getUint(Keys.SHIFT_GAS_LIMIT), 1);
        key = Nonce.nextKey(dataStore);
        Requests.store(dataStore, Requests.SHIFT, key, abi.encode(shift));
        _emitCreated(key, shift, params);
    }

    function cancelShift(bytes32 key) external onlyCanceller {
        uint256 startingGas = gasleft();
        Shift.Props memory shift = getShift(key);
        _validateCancellable(shift.updatedAtTime, "Shift");
        _cancel(key, shift, shift.account, startingGas, "USER_INITIATED_CANCEL", "");
    }

    /// A failure that is about the shift cancels it and the transaction succeeds; any other reverts. Its two halves need
    /// more gas than the check at the start asks for: what runs out within them may cancel the shift.
    function executeShift(bytes32 key, SetPricesParams calldata oracleParams)
        external
        onlyOrderKeeper
        withOraclePrices(oracleParams)
    {
        Shift.Props memory shift = getShift(key);
        uint256 forwarded = ExecutionFee.gasToForward(dataStore, dataStore.getUint(Keys.SHIFT_GAS_LIMIT));
        uint256 startingGas = gasleft();
        try this.doExecuteShift{gas: forwarded}(key, shift, msg.sender) {}
        catch (bytes memory reasonBytes) {
            ExecutionFee.validateErrorGas(dataStore, reasonBytes);
            if (_isKeeperError(ErrorReason.selectorOf(reasonBytes))) ErrorReason.rethrow(reasonBytes);
            _cancel(key, shift, msg.sender, startingGas, ErrorReason.textOf(reasonBytes), reasonBytes);
        }
    }

    function doExecuteShift(bytes32 key, Shift.Props memory shift, address keeper) external onlySelf {
        uint256 startingGas = gasleft();
        Requests.remove(dataStore, Requests.SHIFT, key);
        _validateRequestTimestamps(shift.updatedAtTime);
        shiftVault.transferOut(shift.fromMarket, shift.fromMarket, shift.marketTokenAmount);
        _updateFunding(Market.loadEnabled(dataStore, shift.fromMarket));
        _updateFunding(Market.loadEnabled(dataStore, shift.toMarket));
        uint256 received = poolBook.shift(shift);

        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("key", key);
        e.put("account", shift.account);
        e.putUint("receivedMarketTokens", received);
        eventEmitter.emitEventLog2("ShiftExecuted", key, EventUtils.topic(shift.account), e);
        _pay(shift, startingGas, keeper, shift.receiver);
    }

    function _validateMarkets(address fromMarket, address toMarket) private view {
        if (fromMarket == toMarket) revert Errors.ShiftFromAndToMarketAreEqual(fromMarket);
        Market.Props memory from = Market.loadEnabled(dataStore, fromMarket);
        Market.Props memory to = Market.loadEnabled(dataStore, toMarket);
        if (from.longToken != to.longToken) revert Errors.LongTokensAreNotEqual(from.longToken, to.longToken);
        if (from.shortToken != to.shortToken) revert Errors.ShortTokensAreNotEqual(from.shortToken, to.shortToken);
    }

    function _cancel(
        bytes32 key,
        Shift.Props memory shift,
        address keeper,
        uint256 startingGas,
        string memory reason,
        bytes memory reasonBytes
    ) private {
        Requests.remove(dataStore, Requests.SHIFT, key);
        shiftVault.transferOut(shift.fromMarket, shift.account, shift.marketTokenAmount);
        RequestEvents.ended(eventEmitter, "ShiftCancelled", key, shift.account, reason, reasonBytes);
        _pay(shift, startingGas, keeper, shift.account);
    }

    function _pay(Shift.Props memory shift, uint256 startingGas, address keeper, address refundReceiver) private {
        ExecutionFee.pay(
            dataStore,
            eventEmitter,
            ExecutionFee.Payment(shiftVault, shift.executionFee, startingGas, keeper, refundReceiver, bytes32(0), address(0), 4)
        );
    }

    function _emitCreated(bytes32 key, Shift.Props memory shift, Shift.CreateParams calldata params) private {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("account", shift.account);
        e.put("receiver", shift.receiver);
        e.put("callbackContract", params.addresses.callbackContract);
        e.put("fromMarket", shift.fromMarket);
        e.put("toMarket", shift.toMarket);
        e.put("uiFeeReceiver", params.addresses.uiFeeReceiver);
        e.putUint("marketTokenAmount", shift.marketTokenAmount);
        e.putUint("minMarketTokens", shift.minMarketTokens);
        e.putUint("updatedAtTime", shift.updatedAtTime);
        e.putUint("executionFee", shift.executionFee);
        e.putUint("callbackGasLimit", 0);
        e.putUint("srcChainId", 0);
        e.putBytes32("key", key);
        e.setBytes32Array("dataList", params.dataList);
        eventEmitter.emitEventLog2("ShiftCreated", key, EventUtils.topic(shift.account), e);
    }
}
