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
import {GlvToken} from "./GlvToken.sol";
import {GlvWithdrawal} from "./GlvWithdrawal.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {Nonce} from "./Nonce.sol";
import {Oracle} from "./Oracle.sol";
import {SetPricesParams} from "./OracleParams.sol";
import {PoolBook} from "./PoolBook.sol";
import {PoolEvents} from "./PoolEvents.sol";
import {Precision} from "./Precision.sol";
import {RequestEvents} from "./RequestEvents.sol";
import {Requests} from "./Requests.sol";
import {RequestVault} from "./RequestVault.sol";
import {RoleStore} from "./RoleStore.sol";
import {Withdrawal} from "./Withdrawal.sol";

/// @title Withdrawals from GLVs, out of the pool of one market.
contract GlvWithdrawalHandler is BaseGlvHandler {
    using EventUtils for EventUtils.EventLogData;

    RequestVault public immutable glvVault;

    constructor(
        RoleStore _roleStore,
        DataStore _dataStore,
        EventEmitter _eventEmitter,
        Oracle _oracle,
        GlvFactory _glvFactory,
        PoolBook _poolBook,
        RequestVault _glvVault
    ) BaseGlvHandler(_roleStore, _dataStore, _eventEmitter, _oracle, _glvFactory, _poolBook) {
        glvVault = _glvVault;
    }

    /// Reverts with GlvWithdrawalNotFound if there is no such withdrawal (any more).
    function getGlvWithdrawal(bytes32 key) public view returns (GlvWithdrawal.Props memory) {
        bytes memory stored = Requests.load(dataStore, Requests.GLV_WITHDRAWAL, key);
        if (stored.length == 0) revert Errors.GlvWithdrawalNotFound(key);
        return abi.decode(stored, (GlvWithdrawal.Props));
    }

    function createGlvWithdrawal(address account, GlvWithdrawal.CreateParams calldata params)
        external
        onlyController
        returns (bytes32 key)
    {
        uint256 pathLength = params.addresses.longTokenSwapPath.length + params.addresses.shortTokenSwapPath.length;
        _validatePlainRequest(
            account, params.addresses.receiver, pathLength, params.callbackGasLimit, params.dataList.length
        );
        glvFactory.requireMarket(params.addresses.glv, params.addresses.market);

        GlvWithdrawal.Props memory withdrawal;
        withdrawal.account = account;
        withdrawal.receiver = params.addresses.receiver;
        withdrawal.glv = params.addresses.glv;
        withdrawal.market = params.addresses.market;
        withdrawal.glvTokenAmount = glvVault.recordTransferIn(withdrawal.glv);
        withdrawal.minLongTokenAmount = params.minLongTokenAmount;
        withdrawal.minShortTokenAmount = params.minShortTokenAmount;
        withdrawal.updatedAtTime = block.timestamp;
        withdrawal.executionFee = glvVault.recordNativeIn();
        if (withdrawal.glvTokenAmount == 0) revert Errors.EmptyGlvWithdrawalAmount();
        _validateFee(withdrawal.executionFee, params.executionFee, _gasLimit(withdrawal.glv), 1);
        key = Nonce.nextKey(dataStore);
        Requests.store(dataStore, Requests.GLV_WITHDRAWAL, key, abi.encode(withdrawal));
        _emitCreated(key, withdrawal, params);
    }

    function cancelGlvWithdrawal(bytes32 key) external onlyCanceller {
        uint256 startingGas = gasleft();
        GlvWithdrawal.Props memory withdrawal = getGlvWithdrawal(key);
        _validateCancellable(withdrawal.updatedAtTime, "GlvWithdrawal");
        _cancel(key, withdrawal, withdrawal.account, startingGas, "USER_INITIATED_CANCEL", "");
    }

    /// A failure that is about the withdrawal cancels it and the transaction succeeds; any other reverts.
    function executeGlvWithdrawal(bytes32 key, SetPricesParams calldata oracleParams)
        external
        onlyOrderKeeper
        withOraclePrices(oracleParams)
    {
        GlvWithdrawal.Props memory withdrawal = getGlvWithdrawal(key);
        uint256 forwarded = ExecutionFee.gasToForward(dataStore, _gasLimit(withdrawal.glv));
        uint256 startingGas = gasleft();
        try this.doExecuteGlvWithdrawal{gas: forwarded}(key, withdrawal, msg.sender) {}
        catch (bytes memory reasonBytes) {
            ExecutionFee.validateErrorGas(dataStore, reasonBytes);
            if (_isKeeperError(ErrorReason.selectorOf(reasonBytes))) ErrorReason.rethrow(reasonBytes);
            _cancel(key, withdrawal, msg.sender, startingGas, ErrorReason.textOf(reasonBytes), reasonBytes);
        }
    }

    function doExecuteGlvWithdrawal(bytes32 key, GlvWithdrawal.Props memory withdrawal, address keeper)
        external
        onlySelf
    {
        uint256 startingGas = gasleft();
        Requests.remove(dataStore, Requests.GLV_WITHDRAWAL, key);
        _validateRequestTimestamps(withdrawal.updatedAtTime);
        uint256 marketTokens = _marketTokensFor(withdrawal);
        GlvToken glv = GlvToken(withdrawal.glv);
        glvVault.transferOut(withdrawal.glv, withdrawal.glv, withdrawal.glvTokenAmount);
        glv.burn(withdrawal.glv, withdrawal.glvTokenAmount);
        glv.transferOut(withdrawal.market, withdrawal.market, marketTokens);

        Withdrawal.Props memory w;
        w.account = withdrawal.glv;
        w.receiver = withdrawal.receiver;
        w.market = withdrawal.market;
        w.marketTokenAmount = marketTokens;
        w.minLongTokenAmount = withdrawal.minLongTokenAmount;
        w.minShortTokenAmount = withdrawal.minShortTokenAmount;
        w.updatedAtTime = withdrawal.updatedAtTime;
        _updateFunding(Market.loadEnabled(dataStore, w.market));
        poolBook.withdraw(w, PoolEvents.Cause.Glv);
        _emitValue(withdrawal.glv);

        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("key", key);
        e.put("account", withdrawal.account);
        eventEmitter.emitEventLog2("GlvWithdrawalExecuted", key, EventUtils.topic(withdrawal.account), e);
        _pay(withdrawal, startingGas, keeper, withdrawal.receiver);
    }

    /// The share of the GLV at its lowest value, in tokens of the market at their highest.
    function _marketTokensFor(GlvWithdrawal.Props memory withdrawal) private view returns (uint256 amount) {
        uint256 supply = GlvToken(withdrawal.glv).totalSupply();
        uint256 usd = Precision.mulDiv(_glvValue(withdrawal.glv, false), withdrawal.glvTokenAmount, supply);
        uint256 held = ERC20(withdrawal.market).balanceOf(withdrawal.glv);
        uint256 whole = poolBook.usdOf(withdrawal.glv, withdrawal.market, 1e18, true);
        amount = whole == 0 ? 0 : Precision.mulDiv(usd, 1e18, whole);
        if (amount > held) {
            revert Errors.GlvInsufficientMarketTokenBalance(withdrawal.glv, withdrawal.market, held, amount);
        }
    }

    function _gasLimit(address glv) private view returns (uint256) {
        return dataStore.getUint(Keys.GLV_WITHDRAWAL_GAS_LIMIT) + _gasLimitOfMarkets(glv)
            + dataStore.getUint(Keys.WITHDRAWAL_GAS_LIMIT);
    }

    function _cancel(
        bytes32 key,
        GlvWithdrawal.Props memory withdrawal,
        address keeper,
        uint256 startingGas,
        string memory reason,
        bytes memory reasonBytes
    ) private {
        Requests.remove(dataStore, Requests.GLV_WITHDRAWAL, key);
        glvVault.transferOut(withdrawal.glv, withdrawal.account, withdrawal.glvTokenAmount);
        RequestEvents.ended(eventEmitter, "GlvWithdrawalCancelled", key, withdrawal.account, reason, reasonBytes);
        _pay(withdrawal, startingGas, keeper, withdrawal.account);
    }

    function _pay(GlvWithdrawal.Props memory withdrawal, uint256 startingGas, address keeper, address refundReceiver)
        private
    {
        ExecutionFee.pay(
            dataStore,
            eventEmitter,
            ExecutionFee.Payment(glvVault, withdrawal.executionFee, startingGas, keeper, refundReceiver, bytes32(0), address(0), 4)
        );
    }

    function _emitCreated(
        bytes32 key,
        GlvWithdrawal.Props memory withdrawal,
        GlvWithdrawal.CreateParams calldata params
    ) private {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("account", withdrawal.account);
        e.put("receiver", withdrawal.receiver);
        e.put("callbackContract", params.addresses.callbackContract);
        e.put("market", withdrawal.market);
        e.put("glv", withdrawal.glv);
        e.put("uiFeeReceiver", params.addresses.uiFeeReceiver);
        e.setPaths(new address[](0), new address[](0));
        e.putUint("glvTokenAmount", withdrawal.glvTokenAmount);
        e.putUint("minLongTokenAmount", withdrawal.minLongTokenAmount);
        e.putUint("minShortTokenAmount", withdrawal.minShortTokenAmount);
        e.putUint("updatedAtTime", withdrawal.updatedAtTime);
        e.putUint("executionFee", withdrawal.executionFee);
        e.putUint("callbackGasLimit", 0);
        e.putUint("srcChainId", 0);
        e.putBool("shouldUnwrapNativeToken", params.shouldUnwrapNativeToken);
        e.putBytes32("key", key);
        e.setBytes32Array("dataList", params.dataList);
        eventEmitter.emitEventLog2("GlvWithdrawalCreated", key, EventUtils.topic(withdrawal.account), e);
    }
}
