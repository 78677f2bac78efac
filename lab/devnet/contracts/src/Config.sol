// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {Keys} from "./Keys.sol";
import {Oracle} from "./Oracle.sol";
import {SetPricesParams} from "./OracleParams.sol";
import {Price} from "./Price.sol";
import {RoleModule} from "./RoleModule.sol";
import {RoleStore} from "./RoleStore.sol";
import {StaticOracleProvider} from "./StaticOracleProvider.sol";

/// @title The audible way to change a parameter: it writes the DataStore and emits the change.
/// Only parameters can be set; the exchange's own sums cannot.
contract Config is RoleModule {
    using EventUtils for EventUtils.EventLogData;

    DataStore public immutable dataStore;
    EventEmitter public immutable eventEmitter;
    Oracle private immutable priceOracle;
    StaticOracleProvider private immutable staticProvider;
    mapping(bytes32 baseKey => bool) public allowedBaseKeys;

    constructor(
        RoleStore _roleStore,
        DataStore _dataStore,
        EventEmitter _eventEmitter,
        Oracle _oracle,
        StaticOracleProvider _staticProvider
    ) RoleModule(_roleStore) {
        dataStore = _dataStore;
        eventEmitter = _eventEmitter;
        priceOracle = _oracle;
        staticProvider = _staticProvider;
        bytes32[44] memory keys = [
            Keys.MIN_COLLATERAL_USD,
            Keys.MIN_POSITION_SIZE_USD,
            Keys.MIN_COLLATERAL_FACTOR,
            Keys.MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION,
            Keys.LIQUIDATION_RATIO_FACTOR,
            Keys.MAX_POOL_AMOUNT,
            Keys.RESERVE_FACTOR,
            Keys.POSITION_FEE_FACTOR,
            Keys.LIQUIDATION_FEE_FACTOR,
            Keys.IS_MARKET_DISABLED,
            Keys.CREATE_ORDER_FEATURE_DISABLED,
            Keys.EXECUTE_ORDER_FEATURE_DISABLED,
            Keys.REQUEST_EXPIRATION_TIME,
            Keys.MAX_AUTO_CANCEL_ORDERS,
            Keys.MAX_DATA_LENGTH,
            Keys.MAX_ORACLE_PRICE_AGE,
            Keys.MAX_ORACLE_TIMESTAMP_RANGE,
            Keys.INCREASE_ORDER_GAS_LIMIT,
            Keys.DECREASE_ORDER_GAS_LIMIT,
            Keys.DEPOSIT_GAS_LIMIT,
            Keys.WITHDRAWAL_GAS_LIMIT,
            Keys.MIN_ADDITIONAL_GAS_FOR_EXECUTION,
            Keys.MIN_HANDLE_EXECUTION_ERROR_GAS_TO_FORWARD,
            Keys.MIN_HANDLE_EXECUTION_ERROR_GAS,
            Keys.ESTIMATED_GAS_FEE_BASE_AMOUNT_V2_1,
            Keys.ESTIMATED_GAS_FEE_MULTIPLIER_FACTOR,
            Keys.EXECUTION_GAS_FEE_BASE_AMOUNT_V2_1,
            Keys.EXECUTION_GAS_FEE_MULTIPLIER_FACTOR,
            Keys.ESTIMATED_GAS_FEE_PER_ORACLE_PRICE,
            Keys.EXECUTION_GAS_FEE_PER_ORACLE_PRICE,
            Keys.REFUND_EXECUTION_FEE_GAS_LIMIT,
            Keys.SWAP_ORDER_GAS_LIMIT,
            Keys.SINGLE_SWAP_GAS_LIMIT,
            Keys.MAX_SWAP_PATH_LENGTH,
            Keys.MAX_CALLBACK_GAS_LIMIT,
            Keys.MAX_TOTAL_CALLBACK_GAS_LIMIT_FOR_AUTO_CANCEL_ORDERS,
            Keys.SWAP_IMPACT_FACTOR,
            Keys.SWAP_IMPACT_EXPONENT_FACTOR,
            Keys.SWAP_FEE_FACTOR,
            Keys.WITHDRAWAL_FEE_FACTOR,
            Keys.SWAP_FEE_RECEIVER_FACTOR,
            Keys.UI_FEE_FACTOR,
            Keys.VIRTUAL_MARKET_ID,
            Keys.VIRTUAL_INVENTORY_FOR_SWAPS
        ];
        for (uint256 i; i < keys.length; i++) {
            allowedBaseKeys[keys[i]] = true;
        }
        allowedBaseKeys[Keys.IS_ORACLE_PROVIDER_ENABLED] = true;
        allowedBaseKeys[Keys.DEVNET_ORACLE_SIGNER] = true;
        allowedBaseKeys[Keys.DEVNET_LIQUIDATION_BURN] = true;
        allowedBaseKeys[Keys.FUNDING_FACTOR] = true;
        allowedBaseKeys[Keys.FUNDING_EXPONENT_FACTOR] = true;
        allowedBaseKeys[Keys.FUNDING_INCREASE_FACTOR_PER_SECOND] = true;
        allowedBaseKeys[Keys.FUNDING_DECREASE_FACTOR_PER_SECOND] = true;
        allowedBaseKeys[Keys.THRESHOLD_FOR_STABLE_FUNDING] = true;
        allowedBaseKeys[Keys.THRESHOLD_FOR_DECREASE_FUNDING] = true;
        allowedBaseKeys[Keys.MIN_FUNDING_FACTOR_PER_SECOND] = true;
        allowedBaseKeys[Keys.MAX_FUNDING_FACTOR_PER_SECOND] = true;
        allowedBaseKeys[Keys.MIN_FUNDING_INCREASE_RATE_PER_SECOND] = true;
        allowedBaseKeys[Keys.MAX_PNL_FACTOR] = true;
        allowedBaseKeys[Keys.MAX_UI_FEE_FACTOR] = true;
        allowedBaseKeys[Keys.MIN_PNL_FACTOR_AFTER_ADL] = true;
        allowedBaseKeys[Keys.SHIFT_GAS_LIMIT] = true;
        allowedBaseKeys[Keys.GLV_DEPOSIT_GAS_LIMIT] = true;
        allowedBaseKeys[Keys.GLV_WITHDRAWAL_GAS_LIMIT] = true;
        allowedBaseKeys[Keys.GLV_SHIFT_GAS_LIMIT] = true;
        allowedBaseKeys[Keys.GLV_PER_MARKET_GAS_LIMIT] = true;
        allowedBaseKeys[Keys.GLV_SHIFT_MIN_INTERVAL] = true;
    }

    /// `data` holds the ABI-encoded arguments of the key; empty for a key without any.
    function setUint(bytes32 baseKey, bytes calldata data, uint256 value) external onlyConfigKeeper {
        dataStore.setUint(_fullKey(baseKey, data), value);
        EventUtils.EventLogData memory e = _change(baseKey, data);
        e.putUint("value", value);
        eventEmitter.emitEventLog1("SetUint", baseKey, e);
    }

    function setInt(bytes32 baseKey, bytes calldata data, int256 value) external onlyConfigKeeper {
        dataStore.setInt(_fullKey(baseKey, data), value);
        EventUtils.EventLogData memory e = _change(baseKey, data);
        e.putInt("value", value);
        eventEmitter.emitEventLog1("SetInt", baseKey, e);
    }

    function setBool(bytes32 baseKey, bytes calldata data, bool value) external onlyConfigKeeper {
        dataStore.setBool(_fullKey(baseKey, data), value);
        EventUtils.EventLogData memory e = _change(baseKey, data);
        e.putBool("value", value);
        eventEmitter.emitEventLog1("SetBool", baseKey, e);
    }

    function setAddress(bytes32 baseKey, bytes calldata data, address value) external onlyConfigKeeper {
        dataStore.setAddress(_fullKey(baseKey, data), value);
        EventUtils.EventLogData memory e = _change(baseKey, data);
        e.put("value", value);
        eventEmitter.emitEventLog1("SetAddress", baseKey, e);
    }

    function setBytes32(bytes32 baseKey, bytes calldata data, bytes32 value) external onlyConfigKeeper {
        dataStore.setBytes32(_fullKey(baseKey, data), value);
        EventUtils.EventLogData memory e = _change(baseKey, data);
        e.putBytes32("value", value);
        eventEmitter.emitEventLog1("SetBytes32", baseKey, e);
    }

    /// The first provider of a token.
    function initOracleProviderForToken(address oracle, address token, address provider) external onlyConfigKeeper {
        bytes32 key = Keys.oracleProviderForTokenKey(oracle, token);
        if (dataStore.getAddress(key) != address(0)) revert Errors.OracleProviderAlreadyExistsForToken(oracle, token);
        _setOracleProvider("InitOracleProviderForToken", oracle, token, provider);
    }

    /// Another provider for a token that has one.
    function setOracleProviderForToken(address oracle, address token, address provider) external onlyConfigKeeper {
        _setOracleProvider("SetOracleProviderForToken", oracle, token, provider);
    }

    /// Freezes a token's price as these reports say it, until it has another provider.
    function setStaticPriceForToken(address token, SetPricesParams calldata oracleParams) external onlyConfigKeeper {
        priceOracle.setPrices(oracleParams);
        Price.Props memory price = priceOracle.getPrimaryPrice(token);
        priceOracle.clearAllPrices();
        dataStore.setUint(Keys.staticOraclePriceKey(token, false), price.min);
        dataStore.setUint(Keys.staticOraclePriceKey(token, true), price.max);
        _setOracleProvider("SetOracleProviderForToken", address(priceOracle), token, address(staticProvider));
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("token", token);
        e.put("provider", address(staticProvider));
        e.putUint("priceMin", price.min);
        e.putUint("priceMax", price.max);
        eventEmitter.emitEventLog("SetStaticPriceForToken", e);
    }

    function _setOracleProvider(string memory eventName, address oracle, address token, address provider) private {
        dataStore.setAddress(Keys.oracleProviderForTokenKey(oracle, token), provider);
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("oracle", oracle);
        e.put("token", token);
        e.put("provider", provider);
        eventEmitter.emitEventLog(eventName, e);
    }

    function _fullKey(bytes32 baseKey, bytes calldata data) private view returns (bytes32) {
        if (!allowedBaseKeys[baseKey]) revert Errors.InvalidBaseKey(baseKey);
        return data.length == 0 ? baseKey : keccak256(bytes.concat(baseKey, data));
    }

    function _change(bytes32 baseKey, bytes calldata data) private pure returns (EventUtils.EventLogData memory e) {
        e = EventUtils.create();
        e.putBytes32("baseKey", baseKey);
        e.setBytes("data", data);
    }
}
