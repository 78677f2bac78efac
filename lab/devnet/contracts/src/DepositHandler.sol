// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {BaseHandler} from "./BaseHandler.sol";
import {DataStore} from "./DataStore.sol";
import {Deposit} from "./Deposit.sol";
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

/// @title Deposits into the pools.
contract DepositHandler is BaseHandler {
    using MarketLedger for MarketLedger.Books;

    RequestVault public immutable depositVault;
    SwapHandler public immutable swapHandler;

    constructor(
        RoleStore _roleStore,
        DataStore _dataStore,
        EventEmitter _eventEmitter,
        Oracle _oracle,
        RequestVault _depositVault,
        SwapHandler _swapHandler
    ) BaseHandler(_roleStore, _dataStore, _eventEmitter, _oracle) {
        swapHandler = _swapHandler;
        depositVault = _depositVault;
    }

    /// Reverts with EmptyDeposit if there is no such deposit (any more).
    function getDeposit(bytes32 key) public view returns (Deposit.Props memory) {
        bytes memory stored = Requests.load(dataStore, Requests.DEPOSIT, key);
        if (stored.length == 0) revert Errors.EmptyDeposit();
        return abi.decode(stored, (Deposit.Props));
    }

    function createDeposit(address account, Deposit.CreateParams calldata params)
        external
        onlyController
        returns (bytes32 key)
    {
        _validateRequest(account, params.addresses.receiver, params.callbackGasLimit, params.dataList.length);
        Market.Props memory market = Market.loadEnabled(dataStore, params.addresses.market);
        _requirePath(params.addresses.longTokenSwapPath, params.addresses.initialLongToken, market.longToken);
        _requirePath(params.addresses.shortTokenSwapPath, params.addresses.initialShortToken, market.shortToken);

        Deposit.Props memory deposit;
        deposit.account = account;
        deposit.receiver = params.addresses.receiver;
        deposit.callbackContract = params.addresses.callbackContract;
        deposit.uiFeeReceiver = params.addresses.uiFeeReceiver;
        deposit.callbackGasLimit = params.callbackGasLimit;
        deposit.market = market.marketToken;
        deposit.initialLongToken = params.addresses.initialLongToken;
        deposit.initialShortToken = params.addresses.initialShortToken;
        deposit.longTokenSwapPath = params.addresses.longTokenSwapPath;
        deposit.shortTokenSwapPath = params.addresses.shortTokenSwapPath;
        deposit.initialLongTokenAmount = depositVault.recordTransferIn(deposit.initialLongToken);
        deposit.initialShortTokenAmount = depositVault.recordTransferIn(deposit.initialShortToken);
        deposit.minMarketTokens = params.minMarketTokens;
        deposit.updatedAtTime = block.timestamp;
        deposit.executionFee = depositVault.recordNativeIn();
        if (deposit.initialLongTokenAmount == 0 && deposit.initialShortTokenAmount == 0) {
            revert Errors.EmptyDepositAmounts();
        }
        _validateFee(
            deposit.executionFee, params.executionFee, GasLimit.ofDeposit(dataStore, deposit), _swaps(deposit)
        );
        key = Nonce.nextKey(dataStore);
        Requests.store(dataStore, Requests.DEPOSIT, key, abi.encode(deposit));
        RequestEvents.depositCreated(eventEmitter, key, deposit, params.shouldUnwrapNativeToken, params.dataList);
    }

    function cancelDeposit(bytes32 key) external onlyCanceller {
        uint256 startingGas = gasleft();
        Deposit.Props memory deposit = getDeposit(key);
        _validateCancellable(deposit.updatedAtTime, "Deposit");
        _cancel(key, deposit, deposit.account, startingGas, "USER_INITIATED_CANCEL", "");
    }

    /// A failure that is about the deposit cancels it and the transaction succeeds; any other reverts.
    function executeDeposit(bytes32 key, SetPricesParams calldata oracleParams)
        external
        onlyOrderKeeper
        withOraclePrices(oracleParams)
    {
        Deposit.Props memory deposit = getDeposit(key);
        uint256 forwarded = ExecutionFee.gasToForward(dataStore, GasLimit.ofDeposit(dataStore, deposit));
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
        Requests.remove(dataStore, Requests.DEPOSIT, key);
        _validateRequestTimestamps(deposit.updatedAtTime);
        Market.Props memory market = Market.loadEnabled(dataStore, deposit.market);
        _updateFunding(market);
        uint256 longAmount = _swap(key, deposit, true);
        uint256 shortAmount = _swap(key, deposit, false);
        uint256 minted = _marketTokensFor(longAmount, shortAmount, market, oracle.getMarketPrices(market));
        if (minted < deposit.minMarketTokens) revert Errors.MinMarketTokens(minted, deposit.minMarketTokens);

        MarketLedger.Books memory books = MarketLedger.Books(dataStore, eventEmitter);
        _addToPool(books, market.marketToken, market.longToken, longAmount);
        _addToPool(books, market.marketToken, market.shortToken, shortAmount);
        MarketToken(market.marketToken).mint(deposit.receiver, minted);
        RequestEvents.depositExecuted(eventEmitter, key, deposit.account, longAmount, shortAmount, minted);
        RequestCallback.afterDepositExecution(key, deposit);
        _pay(key, deposit, startingGas, keeper, deposit.receiver);
    }

    /// The deposit's value at the lowest prices, in market tokens at the highest value of the pool; 1 USD each for the first
    /// deposit.
    function _marketTokensFor(
        uint256 longAmount,
        uint256 shortAmount,
        Market.Props memory market,
        Market.Prices memory prices
    ) private view returns (uint256) {
        if (longAmount == 0 && shortAmount == 0) revert Errors.EmptyDepositAmountsAfterSwap();
        uint256 usd = longAmount * prices.longTokenPrice.min + shortAmount * prices.shortTokenPrice.min;
        uint256 supply = MarketToken(market.marketToken).totalSupply();
        if (supply == 0) return usd * 1e18 / Precision.FLOAT_PRECISION;
        int256 value = MarketLedger.poolValue(dataStore, market, prices, true);
        if (value <= 0) revert Errors.InvalidPoolValueForDeposit(value);
        return Precision.mulDiv(supply, usd, uint256(value));
    }

    /// Moves one of the two tokens from the vault to the market, through its path if there is one, and returns what arrives.
    function _swap(bytes32 key, Deposit.Props memory deposit, bool long) private returns (uint256 amount) {
        (, amount) = swapHandler.swap(
            SwapParams(
                key,
                Keys.SWAP_FEE_FACTOR,
                address(depositVault),
                long ? deposit.initialLongToken : deposit.initialShortToken,
                long ? deposit.initialLongTokenAmount : deposit.initialShortTokenAmount,
                long ? deposit.longTokenSwapPath : deposit.shortTokenSwapPath,
                0,
                deposit.market,
                deposit.uiFeeReceiver
            )
        );
    }

    function _addToPool(MarketLedger.Books memory books, address market, address token, uint256 amount) private {
        if (amount == 0) return;
        books.applyToPool(market, token, Precision.signed(amount));
        MarketLedger.validatePool(dataStore, market, token);
    }

    function _cancel(
        bytes32 key,
        Deposit.Props memory deposit,
        address keeper,
        uint256 startingGas,
        string memory reason,
        bytes memory reasonBytes
    ) private {
        _validateGasForCancellation(false);
        Requests.remove(dataStore, Requests.DEPOSIT, key);
        depositVault.transferOut(deposit.initialLongToken, deposit.account, deposit.initialLongTokenAmount);
        depositVault.transferOut(deposit.initialShortToken, deposit.account, deposit.initialShortTokenAmount);
        RequestEvents.ended(eventEmitter, "DepositCancelled", key, deposit.account, reason, reasonBytes);
        RequestCallback.afterDepositCancellation(key, deposit);
        _pay(key, deposit, startingGas, keeper, deposit.account);
    }

    function _pay(bytes32 key, Deposit.Props memory deposit, uint256 startingGas, address keeper, address refundReceiver)
        private
    {
        ExecutionFee.pay(
            dataStore,
            eventEmitter,
            ExecutionFee.Payment(
                depositVault,
                deposit.executionFee,
                startingGas,
                keeper,
                refundReceiver,
                key,
                deposit.callbackContract,
                ExecutionFee.priceCount(_swaps(deposit))
            )
        );
    }

    function _swaps(Deposit.Props memory deposit) private pure returns (uint256) {
        return deposit.longTokenSwapPath.length + deposit.shortTokenSwapPath.length;
    }

    /// A path, which may be empty, has to end at the token that the market takes.
    function _requirePath(address[] memory path, address tokenIn, address expected) private view {
        address tokenOut = _validatePath(path, tokenIn);
        if (tokenOut != expected) revert Errors.InvalidSwapOutputToken(tokenOut, expected);
    }
}
