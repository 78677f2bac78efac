// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BaseGlvHandler} from "./BaseGlvHandler.sol";
import {DataStore} from "./DataStore.sol";
import {Deposit} from "./Deposit.sol";
import {ErrorReason} from "./ErrorReason.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {ExecutionFee} from "./ExecutionFee.sol";
import {GlvDeposit} from "./GlvDeposit.sol";
import {GlvFactory} from "./GlvFactory.sol";
import {GlvToken} from "./GlvToken.sol";
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

/// @title Deposits into GLVs: of pool tokens, which become market tokens first, or of market tokens.
contract GlvDepositHandler is BaseGlvHandler {
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

    /// Reverts with GlvDepositNotFound if there is no such deposit (any more).
    function getGlvDeposit(bytes32 key) public view returns (GlvDeposit.Props memory) {
        bytes memory stored = Requests.load(dataStore, Requests.GLV_DEPOSIT, key);
        if (stored.length == 0) revert Errors.GlvDepositNotFound(key);
        return abi.decode(stored, (GlvDeposit.Props));
    }

    function createGlvDeposit(address account, GlvDeposit.CreateParams calldata params)
        external
        onlyController
        returns (bytes32 key)
    {
        uint256 pathLength = params.addresses.longTokenSwapPath.length + params.addresses.shortTokenSwapPath.length;
        _validatePlainRequest(
            account, params.addresses.receiver, pathLength, params.callbackGasLimit, params.dataList.length
        );
        glvFactory.requireMarket(params.addresses.glv, params.addresses.market);
        Market.Props memory market = Market.loadEnabled(dataStore, params.addresses.market);

        GlvDeposit.Props memory deposit;
        deposit.account = account;
        deposit.receiver = params.addresses.receiver;
        deposit.glv = params.addresses.glv;
        deposit.market = market.marketToken;
        deposit.isMarketTokenDeposit = params.isMarketTokenDeposit;
        _takeIn(deposit, market, params.addresses);
        deposit.minGlvTokens = params.minGlvTokens;
        deposit.updatedAtTime = block.timestamp;
        deposit.executionFee = glvVault.recordNativeIn();
        _validateFee(deposit.executionFee, params.executionFee, _gasLimit(deposit), 1);
        key = Nonce.nextKey(dataStore);
        Requests.store(dataStore, Requests.GLV_DEPOSIT, key, abi.encode(deposit));
        _emitCreated(key, deposit, params);
    }

    function cancelGlvDeposit(bytes32 key) external onlyCanceller {
        uint256 startingGas = gasleft();
        GlvDeposit.Props memory deposit = getGlvDeposit(key);
        _validateCancellable(deposit.updatedAtTime, "GlvDeposit");
        _cancel(key, deposit, deposit.account, startingGas, "USER_INITIATED_CANCEL", "");
    }

    /// A failure that is about the deposit cancels it and the transaction succeeds; any other reverts.
    function executeGlvDeposit(bytes32 key, SetPricesParams calldata oracleParams)
        external
        onlyOrderKeeper
        withOraclePrices(oracleParams)
    {
        GlvDeposit.Props memory deposit = getGlvDeposit(key);
        uint256 forwarded = ExecutionFee.gasToForward(dataStore, _gasLimit(deposit));
        uint256 startingGas = gasleft();
        try this.doExecuteGlvDeposit{gas: forwarded}(key, deposit, msg.sender) {}
        catch (bytes memory reasonBytes) {
            ExecutionFee.validateErrorGas(dataStore, reasonBytes);
            if (_isKeeperError(ErrorReason.selectorOf(reasonBytes))) ErrorReason.rethrow(reasonBytes);
            _cancel(key, deposit, msg.sender, startingGas, ErrorReason.textOf(reasonBytes), reasonBytes);
        }
    }

    function doExecuteGlvDeposit(bytes32 key, GlvDeposit.Props memory deposit, address keeper) external onlySelf {
        uint256 startingGas = gasleft();
        Requests.remove(dataStore, Requests.GLV_DEPOSIT, key);
        _validateRequestTimestamps(deposit.updatedAtTime);
        uint256 value = _glvValue(deposit.glv, true);
        uint256 received = _marketTokens(deposit);
        uint256 usd = poolBook.usdOf(deposit.glv, deposit.market, received, false);
        GlvToken glv = GlvToken(deposit.glv);
        uint256 supply = glv.totalSupply();
        // 1 USD each for the first deposit.
        uint256 minted = supply == 0 ? usd * 1e18 / Precision.FLOAT_PRECISION : Precision.mulDiv(supply, usd, value);
        if (minted < deposit.minGlvTokens) revert Errors.MinGlvTokens(minted, deposit.minGlvTokens);
        glv.mint(deposit.receiver, minted);
        _emitValue(deposit.glv);

        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("key", key);
        e.put("account", deposit.account);
        e.putUint("receivedGlvTokens", minted);
        eventEmitter.emitEventLog2("GlvDepositExecuted", key, EventUtils.topic(deposit.account), e);
        _pay(deposit, startingGas, keeper, deposit.receiver);
    }

    /// Puts what was deposited into the GLV and returns how many market tokens that is.
    function _marketTokens(GlvDeposit.Props memory deposit) private returns (uint256) {
        if (deposit.isMarketTokenDeposit) {
            glvVault.transferOut(deposit.market, deposit.glv, deposit.marketTokenAmount);
            return deposit.marketTokenAmount;
        }
        Market.Props memory market = Market.loadEnabled(dataStore, deposit.market);
        _updateFunding(market);
        glvVault.transferOut(market.longToken, market.marketToken, deposit.initialLongTokenAmount);
        glvVault.transferOut(market.shortToken, market.marketToken, deposit.initialShortTokenAmount);
        Deposit.Props memory d;
        d.account = deposit.glv;
        d.receiver = deposit.glv;
        d.market = deposit.market;
        d.initialLongTokenAmount = deposit.initialLongTokenAmount;
        d.initialShortTokenAmount = deposit.initialShortTokenAmount;
        d.updatedAtTime = deposit.updatedAtTime;
        return poolBook.deposit(d, PoolEvents.Cause.Glv);
    }

    function _takeIn(
        GlvDeposit.Props memory deposit,
        Market.Props memory market,
        GlvDeposit.CreateAddresses calldata addresses
    ) private {
        if (deposit.isMarketTokenDeposit) {
            deposit.marketTokenAmount = glvVault.recordTransferIn(market.marketToken);
            if (deposit.marketTokenAmount == 0) revert Errors.EmptyGlvMarketAmount();
            return;
        }
        if (addresses.initialLongToken != market.longToken) {
            revert Errors.InvalidGlvDepositInitialLongToken(addresses.initialLongToken);
        }
        if (addresses.initialShortToken != market.shortToken) {
            revert Errors.InvalidGlvDepositInitialShortToken(addresses.initialShortToken);
        }
        deposit.initialLongTokenAmount = glvVault.recordTransferIn(market.longToken);
        deposit.initialShortTokenAmount = glvVault.recordTransferIn(market.shortToken);
        if (deposit.initialLongTokenAmount == 0 && deposit.initialShortTokenAmount == 0) {
            revert Errors.EmptyGlvDepositAmounts();
        }
    }

    function _gasLimit(GlvDeposit.Props memory deposit) private view returns (uint256 limit) {
        limit = dataStore.getUint(Keys.GLV_DEPOSIT_GAS_LIMIT) + _gasLimitOfMarkets(deposit.glv);
        if (!deposit.isMarketTokenDeposit) limit += dataStore.getUint(Keys.DEPOSIT_GAS_LIMIT);
    }

    function _cancel(
        bytes32 key,
        GlvDeposit.Props memory deposit,
        address keeper,
        uint256 startingGas,
        string memory reason,
        bytes memory reasonBytes
    ) private {
        Requests.remove(dataStore, Requests.GLV_DEPOSIT, key);
        Market.Props memory market = Market.load(dataStore, deposit.market);
        glvVault.transferOut(market.marketToken, deposit.account, deposit.marketTokenAmount);
        glvVault.transferOut(market.longToken, deposit.account, deposit.initialLongTokenAmount);
        glvVault.transferOut(market.shortToken, deposit.account, deposit.initialShortTokenAmount);
        RequestEvents.ended(eventEmitter, "GlvDepositCancelled", key, deposit.account, reason, reasonBytes);
        _pay(deposit, startingGas, keeper, deposit.account);
    }

    function _pay(GlvDeposit.Props memory deposit, uint256 startingGas, address keeper, address refundReceiver)
        private
    {
        ExecutionFee.pay(
            dataStore,
            eventEmitter,
            ExecutionFee.Payment(glvVault, deposit.executionFee, startingGas, keeper, refundReceiver, bytes32(0), address(0), 4)
        );
    }

    function _emitCreated(bytes32 key, GlvDeposit.Props memory deposit, GlvDeposit.CreateParams calldata params)
        private
    {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("account", deposit.account);
        e.put("receiver", deposit.receiver);
        e.put("callbackContract", params.addresses.callbackContract);
        e.put("market", deposit.market);
        e.put("glv", deposit.glv);
        e.put("initialLongToken", params.addresses.initialLongToken);
        e.put("initialShortToken", params.addresses.initialShortToken);
        e.put("uiFeeReceiver", params.addresses.uiFeeReceiver);
        e.setPaths(new address[](0), new address[](0));
        e.putUint("initialLongTokenAmount", deposit.initialLongTokenAmount);
        e.putUint("initialShortTokenAmount", deposit.initialShortTokenAmount);
        e.putUint("minGlvTokens", deposit.minGlvTokens);
        e.putUint("updatedAtTime", deposit.updatedAtTime);
        e.putUint("executionFee", deposit.executionFee);
        e.putUint("callbackGasLimit", 0);
        e.putUint("marketTokenAmount", deposit.marketTokenAmount);
        e.putUint("srcChainId", 0);
        e.putBool("shouldUnwrapNativeToken", params.shouldUnwrapNativeToken);
        e.putBool("isMarketTokenDeposit", deposit.isMarketTokenDeposit);
        e.putBytes32("key", key);
        e.setBytes32Array("dataList", params.dataList);
        eventEmitter.emitEventLog2("GlvDepositCreated", key, EventUtils.topic(deposit.account), e);
    }
}
