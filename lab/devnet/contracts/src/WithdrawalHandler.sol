// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BaseHandler} from "./BaseHandler.sol";
import {DataStore} from "./DataStore.sol";
import {ErrorReason} from "./ErrorReason.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {ExecutionFee} from "./ExecutionFee.sol";
import {GasLimit} from "./GasLimit.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {MarketLedger} from "./MarketLedger.sol";
import {MarketToken} from "./MarketToken.sol";
import {Nonce} from "./Nonce.sol";
import {Oracle} from "./Oracle.sol";
import {SetPricesParams} from "./OracleParams.sol";
import {Precision} from "./Precision.sol";
import {RequestCallback} from "./RequestCallback.sol";
import {RequestEvents} from "./RequestEvents.sol";
import {Requests} from "./Requests.sol";
import {RequestVault} from "./RequestVault.sol";
import {RoleStore} from "./RoleStore.sol";
import {SwapHandler, SwapParams} from "./SwapHandler.sol";
import {Withdrawal} from "./Withdrawal.sol";

/// @title Withdrawals from the pools.
contract WithdrawalHandler is BaseHandler {
    using MarketLedger for MarketLedger.Books;

    RequestVault public immutable withdrawalVault;
    SwapHandler public immutable swapHandler;

    constructor(
        RoleStore _roleStore,
        DataStore _dataStore,
        EventEmitter _eventEmitter,
        Oracle _oracle,
        RequestVault _withdrawalVault,
        SwapHandler _swapHandler
    ) BaseHandler(_roleStore, _dataStore, _eventEmitter, _oracle) {
        swapHandler = _swapHandler;
        withdrawalVault = _withdrawalVault;
    }

    /// Reverts with EmptyWithdrawal if there is no such withdrawal (any more).
    function getWithdrawal(bytes32 key) public view returns (Withdrawal.Props memory) {
        bytes memory stored = Requests.load(dataStore, Requests.WITHDRAWAL, key);
        if (stored.length == 0) revert Errors.EmptyWithdrawal();
        return abi.decode(stored, (Withdrawal.Props));
    }

    function createWithdrawal(address account, Withdrawal.CreateParams calldata params)
        external
        onlyController
        returns (bytes32 key)
    {
        _validateRequest(account, params.addresses.receiver, params.callbackGasLimit, params.dataList.length);
        Market.Props memory market = Market.loadEnabled(dataStore, params.addresses.market);
        _validatePath(params.addresses.longTokenSwapPath, market.longToken);
        _validatePath(params.addresses.shortTokenSwapPath, market.shortToken);

        Withdrawal.Props memory withdrawal;
        withdrawal.account = account;
        withdrawal.receiver = params.addresses.receiver;
        withdrawal.callbackContract = params.addresses.callbackContract;
        withdrawal.uiFeeReceiver = params.addresses.uiFeeReceiver;
        withdrawal.callbackGasLimit = params.callbackGasLimit;
        withdrawal.longTokenSwapPath = params.addresses.longTokenSwapPath;
        withdrawal.shortTokenSwapPath = params.addresses.shortTokenSwapPath;
        withdrawal.market = market.marketToken;
        withdrawal.marketTokenAmount = withdrawalVault.recordTransferIn(market.marketToken);
        withdrawal.minLongTokenAmount = params.minLongTokenAmount;
        withdrawal.minShortTokenAmount = params.minShortTokenAmount;
        withdrawal.updatedAtTime = block.timestamp;
        withdrawal.executionFee = withdrawalVault.recordNativeIn();
        if (withdrawal.marketTokenAmount == 0) revert Errors.EmptyWithdrawalAmount();
        _validateFee(
            withdrawal.executionFee, params.executionFee, GasLimit.ofWithdrawal(dataStore, withdrawal), _swaps(withdrawal)
        );
        key = Nonce.nextKey(dataStore);
        Requests.store(dataStore, Requests.WITHDRAWAL, key, abi.encode(withdrawal));
        RequestEvents.withdrawalCreated(eventEmitter, key, withdrawal, params.shouldUnwrapNativeToken, params.dataList);
    }

    function cancelWithdrawal(bytes32 key) external onlyCanceller {
        uint256 startingGas = gasleft();
        Withdrawal.Props memory withdrawal = getWithdrawal(key);
        _validateCancellable(withdrawal.updatedAtTime, "Withdrawal");
        _cancel(key, withdrawal, withdrawal.account, startingGas, "USER_INITIATED_CANCEL", "");
    }

    /// A failure that is about the withdrawal cancels it and the transaction succeeds; any other reverts.
    function executeWithdrawal(bytes32 key, SetPricesParams calldata oracleParams)
        external
        onlyOrderKeeper
        withOraclePrices(oracleParams)
    {
        Withdrawal.Props memory withdrawal = getWithdrawal(key);
        uint256 forwarded = ExecutionFee.gasToForward(dataStore, GasLimit.ofWithdrawal(dataStore, withdrawal));
        uint256 startingGas = gasleft();
        try this.doExecuteWithdrawal{gas: forwarded}(key, withdrawal, msg.sender) {}
        catch (bytes memory reasonBytes) {
            ExecutionFee.validateErrorGas(dataStore, reasonBytes);
            if (_isKeeperError(ErrorReason.selectorOf(reasonBytes))) ErrorReason.rethrow(reasonBytes);
            _cancel(key, withdrawal, msg.sender, startingGas, ErrorReason.textOf(reasonBytes), reasonBytes);
        }
    }

    function doExecuteWithdrawal(bytes32 key, Withdrawal.Props memory withdrawal, address keeper) external onlySelf {
        uint256 startingGas = gasleft();
        Requests.remove(dataStore, Requests.WITHDRAWAL, key);
        _validateRequestTimestamps(withdrawal.updatedAtTime);
        Market.Props memory market = Market.loadEnabled(dataStore, withdrawal.market);
        _updateFunding(market);
        Market.Prices memory prices = oracle.getMarketPrices(market);
        (uint256 longAmount, uint256 shortAmount) = _amountsFor(withdrawal, market, prices);
        MarketToken token = MarketToken(market.marketToken);
        withdrawalVault.transferOut(market.marketToken, market.marketToken, withdrawal.marketTokenAmount);
        token.burn(market.marketToken, withdrawal.marketTokenAmount);
        MarketLedger.Books memory books = MarketLedger.Books(dataStore, eventEmitter);
        books.applyToPool(market.marketToken, market.longToken, -Precision.signed(longAmount));
        books.applyToPool(market.marketToken, market.shortToken, -Precision.signed(shortAmount));
        MarketLedger.validateReserve(dataStore, market, prices, true);
        MarketLedger.validateReserve(dataStore, market, prices, false);
        _swap(key, withdrawal, market.longToken, longAmount, withdrawal.longTokenSwapPath, withdrawal.minLongTokenAmount);
        _swap(
            key, withdrawal, market.shortToken, shortAmount, withdrawal.shortTokenSwapPath, withdrawal.minShortTokenAmount
        );
        RequestEvents.withdrawalExecuted(eventEmitter, key, withdrawal.account);
        RequestCallback.afterWithdrawalExecution(key, withdrawal);
        _pay(key, withdrawal, startingGas, keeper, withdrawal.receiver);
    }

    /// Pays one of the two tokens out of the market, through its path if there is one.
    function _swap(
        bytes32 key,
        Withdrawal.Props memory withdrawal,
        address token,
        uint256 amount,
        address[] memory path,
        uint256 minimum
    ) private {
        swapHandler.swap(
            SwapParams(
                key,
                Keys.WITHDRAWAL_FEE_FACTOR,
                withdrawal.market,
                token,
                amount,
                path,
                minimum,
                withdrawal.receiver,
                withdrawal.uiFeeReceiver
            )
        );
    }

    /// The share of the pool at its lowest value, in both tokens in the proportion in which the pool holds them.
    function _amountsFor(Withdrawal.Props memory withdrawal, Market.Props memory market, Market.Prices memory prices)
        private
        view
        returns (uint256 longAmount, uint256 shortAmount)
    {
        int256 value = MarketLedger.poolValue(dataStore, market, prices, false);
        if (value <= 0) revert Errors.InvalidPoolValueForWithdrawal(value);
        uint256 supply = MarketToken(market.marketToken).totalSupply();
        uint256 usd = Precision.mulDiv(uint256(value), withdrawal.marketTokenAmount, supply);
        uint256 longPool = dataStore.getUint(Keys.poolAmountKey(market.marketToken, market.longToken));
        uint256 shortPool = dataStore.getUint(Keys.poolAmountKey(market.marketToken, market.shortToken));
        uint256 poolUsd = longPool * prices.longTokenPrice.max + shortPool * prices.shortTokenPrice.max;
        longAmount = Precision.mulDiv(longPool, usd, poolUsd);
        shortAmount = Precision.mulDiv(shortPool, usd, poolUsd);
    }

    function _cancel(
        bytes32 key,
        Withdrawal.Props memory withdrawal,
        address keeper,
        uint256 startingGas,
        string memory reason,
        bytes memory reasonBytes
    ) private {
        _validateGasForCancellation(false);
        Requests.remove(dataStore, Requests.WITHDRAWAL, key);
        withdrawalVault.transferOut(withdrawal.market, withdrawal.account, withdrawal.marketTokenAmount);
        RequestEvents.ended(eventEmitter, "WithdrawalCancelled", key, withdrawal.account, reason, reasonBytes);
        RequestCallback.afterWithdrawalCancellation(key, withdrawal);
        _pay(key, withdrawal, startingGas, keeper, withdrawal.account);
    }

    function _pay(
        bytes32 key,
        Withdrawal.Props memory withdrawal,
        uint256 startingGas,
        address keeper,
        address refundReceiver
    ) private {
        ExecutionFee.pay(
            dataStore,
            eventEmitter,
            ExecutionFee.Payment(
                withdrawalVault,
                withdrawal.executionFee,
                startingGas,
                keeper,
                refundReceiver,
                key,
                withdrawal.callbackContract,
                ExecutionFee.priceCount(_swaps(withdrawal))
            )
        );
    }

    function _swaps(Withdrawal.Props memory withdrawal) private pure returns (uint256) {
        return withdrawal.longTokenSwapPath.length + withdrawal.shortTokenSwapPath.length;
    }
}
