// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BaseHandler} from "./BaseHandler.sol";
import {DataStore} from "./DataStore.sol";
import {Deposit} from "./Deposit.sol";
import {ErrorReason} from "./ErrorReason.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {ExecutionFee} from "./ExecutionFee.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {MarketLedger} from "./MarketLedger.sol";
import {MarketToken} from "./MarketToken.sol";
import {Nonce} from "./Nonce.sol";
import {Oracle} from "./Oracle.sol";
import {SetPricesParams} from "./OracleParams.sol";
import {Precision} from "./Precision.sol";
import {RequestEvents} from "./RequestEvents.sol";
import {RequestVault} from "./RequestVault.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title Deposits into the pools.
contract DepositHandler is BaseHandler {
    using EventUtils for EventUtils.EventLogData;
    using MarketLedger for MarketLedger.Books;

    RequestVault public immutable depositVault;
    mapping(bytes32 key => Deposit.Props) private deposits;

    constructor(
        RoleStore _roleStore,
        DataStore _dataStore,
        EventEmitter _eventEmitter,
        Oracle _oracle,
        RequestVault _depositVault
    ) BaseHandler(_roleStore, _dataStore, _eventEmitter, _oracle) {
        depositVault = _depositVault;
    }

    /// Reverts with EmptyDeposit if there is no such deposit (any more).
    function getDeposit(bytes32 key) public view returns (Deposit.Props memory deposit) {
        deposit = deposits[key];
        if (deposit.account == address(0)) revert Errors.EmptyDeposit();
    }

    function createDeposit(address account, Deposit.CreateParams calldata params)
        external
        onlyController
        returns (bytes32 key)
    {
        uint256 pathLength = params.addresses.longTokenSwapPath.length + params.addresses.shortTokenSwapPath.length;
        _validateRequest(
            account, params.addresses.receiver, pathLength, params.callbackGasLimit, params.dataList.length
        );
        Market.Props memory market = Market.loadEnabled(dataStore, params.addresses.market);
        _requireToken(market, params.addresses.initialLongToken, market.longToken);
        _requireToken(market, params.addresses.initialShortToken, market.shortToken);

        Deposit.Props memory deposit;
        deposit.account = account;
        deposit.receiver = params.addresses.receiver;
        deposit.market = market.marketToken;
        deposit.initialLongToken = market.longToken;
        deposit.initialShortToken = market.shortToken;
        deposit.initialLongTokenAmount = depositVault.recordTransferIn(market.longToken);
        deposit.initialShortTokenAmount = depositVault.recordTransferIn(market.shortToken);
        deposit.minMarketTokens = params.minMarketTokens;
        deposit.updatedAtTime = block.timestamp;
        deposit.executionFee = depositVault.recordNativeIn();
        if (deposit.initialLongTokenAmount == 0 && deposit.initialShortTokenAmount == 0) {
            revert Errors.EmptyDepositAmounts();
        }
        _validateFee(deposit.executionFee, params.executionFee, dataStore.getUint(Keys.DEPOSIT_GAS_LIMIT));
        key = Nonce.nextKey(dataStore);
        deposits[key] = deposit;
        _emitCreated(key, deposit, params);
    }

    function cancelDeposit(bytes32 key, address account) external onlyController {
        uint256 startingGas = gasleft();
        Deposit.Props memory deposit = getDeposit(key);
        if (deposit.account != account) revert Errors.Unauthorized(account, "account for cancelDeposit");
        _validateCancellable(deposit.updatedAtTime, "Deposit");
        _cancel(key, deposit, account, startingGas, "USER_INITIATED_CANCEL", "");
    }

    /// A failure that is about the deposit cancels it and the transaction succeeds; any other reverts.
    function executeDeposit(bytes32 key, SetPricesParams calldata oracleParams)
        external
        onlyOrderKeeper
        withOraclePrices(oracleParams)
    {
        Deposit.Props memory deposit = getDeposit(key);
        uint256 forwarded = ExecutionFee.gasToForward(dataStore, dataStore.getUint(Keys.DEPOSIT_GAS_LIMIT));
        uint256 startingGas = gasleft();
        try this.doExecuteDeposit{gas: forwarded}(key, deposit, msg.sender) {}
        catch (bytes memory reasonBytes) {
            ExecutionFee.validateErrorGas(dataStore, reasonBytes);
            if (_isKeeperError(ErrorReason.selectorOf(reasonBytes))) ErrorReason.rethrow(reasonBytes);
            _cancel(key, deposit, msg.sender, startingGas, ErrorReason.textOf(reasonBytes), reasonBytes);
        }
    }

    function doExecuteDeposit(bytes32 key, Deposit.Props memory deposit, address keeper) external onlySelf {
        uint256 startingGas = gasleft();
        delete deposits[key];
        _validateRequestTimestamps(deposit.updatedAtTime);
        Market.Props memory market = Market.loadEnabled(dataStore, deposit.market);
        uint256 minted = _marketTokensFor(deposit, market, oracle.getMarketPrices(market));
        if (minted < deposit.minMarketTokens) revert Errors.MinMarketTokens(minted, deposit.minMarketTokens);

        MarketLedger.Books memory books = MarketLedger.Books(dataStore, eventEmitter);
        _moveIn(books, market.marketToken, market.longToken, deposit.initialLongTokenAmount);
        _moveIn(books, market.marketToken, market.shortToken, deposit.initialShortTokenAmount);
        MarketToken(market.marketToken).mint(deposit.receiver, minted);
        _emitExecuted(key, deposit, minted);
        _pay(deposit, startingGas, keeper, deposit.receiver);
    }

    /// The deposit's value at the lowest prices, in market tokens at the highest value of the pool; 1 USD each for the first
    /// deposit.
    function _marketTokensFor(Deposit.Props memory deposit, Market.Props memory market, Market.Prices memory prices)
        private
        view
        returns (uint256)
    {
        uint256 usd = deposit.initialLongTokenAmount * prices.longTokenPrice.min
            + deposit.initialShortTokenAmount * prices.shortTokenPrice.min;
        uint256 supply = MarketToken(market.marketToken).totalSupply();
        if (supply == 0) return usd * 1e18 / Precision.FLOAT_PRECISION;
        int256 value = MarketLedger.poolValue(dataStore, market, prices, true);
        if (value <= 0) revert Errors.InvalidPoolValueForDeposit(value);
        return Precision.mulDiv(supply, usd, uint256(value));
    }

    /// The limit keeps the sums of a market, whose tokens anyone may mint, far from overflow.
    function _moveIn(MarketLedger.Books memory books, address market, address token, uint256 amount) private {
        if (amount == 0) return;
        depositVault.transferOut(token, market, amount);
        books.applyToPool(market, token, Precision.signed(amount));
        uint256 pool = dataStore.getUint(Keys.poolAmountKey(market, token));
        uint256 limit = dataStore.getUint(Keys.maxPoolAmountKey(market, token));
        if (pool > limit) revert Errors.MaxPoolAmountExceeded(pool, limit);
    }

    function _cancel(
        bytes32 key,
        Deposit.Props memory deposit,
        address keeper,
        uint256 startingGas,
        string memory reason,
        bytes memory reasonBytes
    ) private {
        delete deposits[key];
        depositVault.transferOut(deposit.initialLongToken, deposit.account, deposit.initialLongTokenAmount);
        depositVault.transferOut(deposit.initialShortToken, deposit.account, deposit.initialShortTokenAmount);
        RequestEvents.ended(eventEmitter, "DepositCancelled", key, deposit.account, reason, reasonBytes);
        _pay(deposit, startingGas, keeper, deposit.account);
    }

    function _pay(Deposit.Props memory deposit, uint256 startingGas, address keeper, address refundReceiver) private {
        ExecutionFee.pay(
            dataStore,
            eventEmitter,
            ExecutionFee.Payment(depositVault, deposit.executionFee, startingGas, keeper, refundReceiver)
        );
    }

    function _requireToken(Market.Props memory market, address given, address expected) private pure {
        if (given != expected) revert Errors.InvalidCollateralTokenForMarket(market.marketToken, given);
    }

    function _emitCreated(bytes32 key, Deposit.Props memory deposit, Deposit.CreateParams calldata params) private {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("account", deposit.account);
        e.put("receiver", deposit.receiver);
        e.put("callbackContract", params.addresses.callbackContract);
        e.put("market", deposit.market);
        e.put("initialLongToken", deposit.initialLongToken);
        e.put("initialShortToken", deposit.initialShortToken);
        e.put("uiFeeReceiver", params.addresses.uiFeeReceiver);
        string[] memory paths = new string[](2);
        paths[0] = "longTokenSwapPath";
        paths[1] = "shortTokenSwapPath";
        e.setEmptyPaths(paths);
        e.putUint("initialLongTokenAmount", deposit.initialLongTokenAmount);
        e.putUint("initialShortTokenAmount", deposit.initialShortTokenAmount);
        e.putUint("minMarketTokens", deposit.minMarketTokens);
        e.putUint("updatedAtTime", deposit.updatedAtTime);
        e.putUint("executionFee", deposit.executionFee);
        e.putUint("callbackGasLimit", 0);
        e.putUint("depositType", 0);
        e.putUint("srcChainId", 0);
        e.putBool("shouldUnwrapNativeToken", params.shouldUnwrapNativeToken);
        e.putBytes32("key", key);
        e.setBytes32Array("dataList", params.dataList);
        eventEmitter.emitEventLog2("DepositCreated", key, EventUtils.topic(deposit.account), e);
    }

    function _emitExecuted(bytes32 key, Deposit.Props memory deposit, uint256 minted) private {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("key", key);
        e.put("account", deposit.account);
        e.putUint("longTokenAmount", deposit.initialLongTokenAmount);
        e.putUint("shortTokenAmount", deposit.initialShortTokenAmount);
        e.putUint("receivedMarketTokens", minted);
        e.putUint("swapPricingType", 0);
        eventEmitter.emitEventLog2("DepositExecuted", key, EventUtils.topic(deposit.account), e);
    }
}
