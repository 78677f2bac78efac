// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {CancelRole} from "./CancelRole.sol";
import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {ExecutionFee} from "./ExecutionFee.sol";
import {Funding} from "./Funding.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {Oracle} from "./Oracle.sol";
import {SetPricesParams} from "./OracleParams.sol";
import {RoleStore} from "./RoleStore.sol";

/// @title What the handlers of all requests share.
abstract contract BaseHandler is CancelRole {
    DataStore public immutable dataStore;
    EventEmitter public immutable eventEmitter;
    Oracle public immutable oracle;

    constructor(RoleStore _roleStore, DataStore _dataStore, EventEmitter _eventEmitter, Oracle _oracle)
        CancelRole(_roleStore)
    {
        dataStore = _dataStore;
        eventEmitter = _eventEmitter;
        oracle = _oracle;
    }

    /// Prices exist only within. Bad prices revert before anything else is looked at.
    modifier withOraclePrices(SetPricesParams calldata params) {
        oracle.setPrices(params);
        _;
        oracle.clearAllPrices();
    }

    function _updateFunding(Market.Props memory market) internal {
        Funding.update(dataStore, eventEmitter, market, oracle.getMarketPrices(market));
    }

    /// The shape of a request that this exchange refuses at creation, whatever its kind: callbacks and data lists that are too large
    /// would be paid for by the keeper.
    function _validateRequest(
        address account,
        address receiver,
        uint256 callbackGasLimit,
        uint256 dataLength
    ) internal view {
        if (account == address(0)) revert Errors.EmptyAccount();
        if (receiver == address(0)) revert Errors.EmptyReceiver();
        uint256 maxCallbackGasLimit = dataStore.getUint(Keys.MAX_CALLBACK_GAS_LIMIT);
        if (callbackGasLimit > maxCallbackGasLimit) {
            revert Errors.MaxCallbackGasLimitExceeded(callbackGasLimit, maxCallbackGasLimit);
        }
        uint256 maxDataLength = dataStore.getUint(Keys.MAX_DATA_LENGTH);
        if (dataLength > maxDataLength) revert Errors.MaxDataListLengthExceeded(dataLength, maxDataLength);
    }

    /// The same for requests that have neither callbacks nor swaps.
    function _validatePlainRequest(
        address account,
        address receiver,
        uint256 swapPathLength,
        uint256 callbackGasLimit,
        uint256 dataLength
    ) internal view {
        if (swapPathLength != 0) revert Errors.MaxSwapPathLengthExceeded(swapPathLength, 0);
        if (callbackGasLimit != 0) revert Errors.MaxCallbackGasLimitExceeded(callbackGasLimit, 0);
        _validateRequest(account, receiver, callbackGasLimit, dataLength);
    }

    /// Reverts for a path that is too long or leads through markets that do not exist or are switched off. Returns the token at its end.
    function _validatePath(address[] memory path, address token) internal view returns (address) {
        uint256 maxLength = dataStore.getUint(Keys.MAX_SWAP_PATH_LENGTH);
        if (path.length > maxLength) revert Errors.MaxSwapPathLengthExceeded(path.length, maxLength);
        for (uint256 i; i < path.length; i++) {
            token = Market.opposite(Market.loadEnabled(dataStore, path[i]), token);
        }
        return token;
    }

    /// The execution fee that came with the request; at least what the user said and what the execution will cost.
    function _validateFee(uint256 received, uint256 stated, uint256 estimatedGasLimit, uint256 swaps) internal view {
        if (received < stated) revert Errors.InsufficientWntAmountForExecutionFee(received, stated);
        ExecutionFee.validateFee(dataStore, estimatedGasLimit, ExecutionFee.priceCount(swaps), received);
    }

    /// Cancelling costs gas of its own, which a keeper has to bring.
    function _validateGasForCancellation(bool automatic) internal view {
        uint256 minimum = dataStore.getUint(Keys.MIN_HANDLE_EXECUTION_ERROR_GAS);
        uint256 left = gasleft();
        if (left >= minimum) return;
        if (automatic) revert Errors.InsufficientGasForAutoCancellation(left, minimum);
        revert Errors.InsufficientGasForCancellation(left, minimum);
    }

    /// Requests that need one price, that of now, take prices from their update up to the expiration time later.
    function _validateRequestTimestamps(uint256 updatedAtTime) internal view {
        uint256 expiration = dataStore.getUint(Keys.REQUEST_EXPIRATION_TIME);
        uint256 youngest = oracle.maxTimestamp();
        if (youngest > updatedAtTime + expiration) {
            revert Errors.OracleTimestampsAreLargerThanRequestExpirationTime(youngest, updatedAtTime, expiration);
        }
        uint256 oldest = oracle.minTimestamp();
        if (oldest < updatedAtTime) revert Errors.OracleTimestampsAreSmallerThanRequired(oldest, updatedAtTime);
    }

    /// A user may take such a request back only when keepers can no longer execute it.
    function _validateCancellable(uint256 updatedAtTime, string memory requestType) internal view {
        uint256 expiration = dataStore.getUint(Keys.REQUEST_EXPIRATION_TIME);
        uint256 age = block.timestamp - updatedAtTime;
        if (age < expiration) revert Errors.RequestNotYetCancellable(age, expiration, requestType);
    }

    /// Whether an error says something about the keeper or the venue, not about the request: then the request stays.
    function _isKeeperError(bytes4 selector) internal pure returns (bool) {
        return selector == Errors.OracleTimestampsAreSmallerThanRequired.selector
            || selector == Errors.OracleTimestampsAreLargerThanRequestExpirationTime.selector
            || selector == Errors.EmptyPrimaryPrice.selector || selector == Errors.DisabledFeature.selector
            || selector == Errors.InsufficientGasLeftForCallback.selector
            || selector == Errors.InsufficientGasForCancellation.selector
            || selector == Errors.InsufficientGasForAutoCancellation.selector;
    }
}
