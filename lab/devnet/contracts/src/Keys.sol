// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// @title The keys of the DataStore.
/// A base key is keccak256(abi.encode(name)); a full key is keccak256(abi.encode(baseKey, arguments...)). Names and arguments
/// are those of GMX, except LIQUIDATION_RATIO_FACTOR and those that begin with DEVNET, which are this exchange's own.
library Keys {
    // Accounting state. Written by the handlers alone; Config refuses these.
    bytes32 internal constant NONCE = keccak256(abi.encode("NONCE"));
    bytes32 internal constant POOL_AMOUNT = keccak256(abi.encode("POOL_AMOUNT"));
    bytes32 internal constant OPEN_INTEREST = keccak256(abi.encode("OPEN_INTEREST"));
    bytes32 internal constant OPEN_INTEREST_IN_TOKENS = keccak256(abi.encode("OPEN_INTEREST_IN_TOKENS"));
    bytes32 internal constant COLLATERAL_SUM = keccak256(abi.encode("COLLATERAL_SUM"));
    bytes32 internal constant SWAP_IMPACT_POOL_AMOUNT = keccak256(abi.encode("SWAP_IMPACT_POOL_AMOUNT"));
    bytes32 internal constant CLAIMABLE_FEE_AMOUNT = keccak256(abi.encode("CLAIMABLE_FEE_AMOUNT"));
    bytes32 internal constant CLAIMABLE_UI_FEE_AMOUNT = keccak256(abi.encode("CLAIMABLE_UI_FEE_AMOUNT"));

    // Risk.
    bytes32 internal constant MIN_COLLATERAL_USD = keccak256(abi.encode("MIN_COLLATERAL_USD"));
    bytes32 internal constant MIN_POSITION_SIZE_USD = keccak256(abi.encode("MIN_POSITION_SIZE_USD"));
    bytes32 internal constant MIN_COLLATERAL_FACTOR = keccak256(abi.encode("MIN_COLLATERAL_FACTOR"));
    bytes32 internal constant MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION =
        keccak256(abi.encode("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION"));
    bytes32 internal constant LIQUIDATION_RATIO_FACTOR = keccak256(abi.encode("LIQUIDATION_RATIO_FACTOR"));
    bytes32 internal constant MAX_POOL_AMOUNT = keccak256(abi.encode("MAX_POOL_AMOUNT"));
    bytes32 internal constant RESERVE_FACTOR = keccak256(abi.encode("RESERVE_FACTOR"));

    // Fees on size.
    bytes32 internal constant POSITION_FEE_FACTOR = keccak256(abi.encode("POSITION_FEE_FACTOR"));
    bytes32 internal constant LIQUIDATION_FEE_FACTOR = keccak256(abi.encode("LIQUIDATION_FEE_FACTOR"));

    // Funding. The first three are written by the handlers alone.
    bytes32 internal constant SAVED_FUNDING_FACTOR_PER_SECOND = keccak256(abi.encode("SAVED_FUNDING_FACTOR_PER_SECOND"));
    bytes32 internal constant FUNDING_UPDATED_AT = keccak256(abi.encode("FUNDING_UPDATED_AT"));
    bytes32 internal constant FUNDING_FEE_AMOUNT_PER_SIZE = keccak256(abi.encode("FUNDING_FEE_AMOUNT_PER_SIZE"));
    bytes32 internal constant FUNDING_FACTOR = keccak256(abi.encode("FUNDING_FACTOR"));
    bytes32 internal constant FUNDING_EXPONENT_FACTOR = keccak256(abi.encode("FUNDING_EXPONENT_FACTOR"));
    bytes32 internal constant FUNDING_INCREASE_FACTOR_PER_SECOND =
        keccak256(abi.encode("FUNDING_INCREASE_FACTOR_PER_SECOND"));
    bytes32 internal constant FUNDING_DECREASE_FACTOR_PER_SECOND =
        keccak256(abi.encode("FUNDING_DECREASE_FACTOR_PER_SECOND"));
    bytes32 internal constant THRESHOLD_FOR_STABLE_FUNDING = keccak256(abi.encode("THRESHOLD_FOR_STABLE_FUNDING"));
    bytes32 internal constant THRESHOLD_FOR_DECREASE_FUNDING = keccak256(abi.encode("THRESHOLD_FOR_DECREASE_FUNDING"));
    bytes32 internal constant MIN_FUNDING_FACTOR_PER_SECOND = keccak256(abi.encode("MIN_FUNDING_FACTOR_PER_SECOND"));
    bytes32 internal constant MAX_FUNDING_FACTOR_PER_SECOND = keccak256(abi.encode("MAX_FUNDING_FACTOR_PER_SECOND"));
    // In full: the compiler leaves the hash of a name to the run time, and readers of code tell by this word which version it is of.
    bytes32 internal constant MIN_FUNDING_INCREASE_RATE_PER_SECOND =
        0xbcb072e231c3059178d1770f034fd4817ad52d12e0a417cc066c1d7a60c0cbea;

    // Deleveraging. The first two are written by its handler alone.
    bytes32 internal constant IS_ADL_ENABLED = keccak256(abi.encode("IS_ADL_ENABLED"));
    bytes32 internal constant LATEST_ADL_AT = keccak256(abi.encode("LATEST_ADL_AT"));
    bytes32 internal constant MAX_PNL_FACTOR = keccak256(abi.encode("MAX_PNL_FACTOR"));
    bytes32 internal constant MAX_PNL_FACTOR_FOR_ADL = keccak256(abi.encode("MAX_PNL_FACTOR_FOR_ADL"));
    bytes32 internal constant MIN_PNL_FACTOR_AFTER_ADL = keccak256(abi.encode("MIN_PNL_FACTOR_AFTER_ADL"));

    // GLV shifts. The second is written by their handler alone.
    bytes32 internal constant GLV_SHIFT_MIN_INTERVAL = keccak256(abi.encode("GLV_SHIFT_MIN_INTERVAL"));
    bytes32 internal constant GLV_SHIFT_LAST_EXECUTED_AT = keccak256(abi.encode("GLV_SHIFT_LAST_EXECUTED_AT"));

    // Swaps. The virtual inventory may start at any value; the exchange itself moves it.
    bytes32 internal constant SWAP_IMPACT_FACTOR = keccak256(abi.encode("SWAP_IMPACT_FACTOR"));
    bytes32 internal constant SWAP_IMPACT_EXPONENT_FACTOR = keccak256(abi.encode("SWAP_IMPACT_EXPONENT_FACTOR"));
    bytes32 internal constant SWAP_FEE_FACTOR = keccak256(abi.encode("SWAP_FEE_FACTOR"));
    bytes32 internal constant WITHDRAWAL_FEE_FACTOR = keccak256(abi.encode("WITHDRAWAL_FEE_FACTOR"));
    bytes32 internal constant SWAP_FEE_RECEIVER_FACTOR = keccak256(abi.encode("SWAP_FEE_RECEIVER_FACTOR"));
    bytes32 internal constant UI_FEE_FACTOR = keccak256(abi.encode("UI_FEE_FACTOR"));
    bytes32 internal constant MAX_UI_FEE_FACTOR = keccak256(abi.encode("MAX_UI_FEE_FACTOR"));
    bytes32 internal constant MAX_PNL_FACTOR_FOR_DEPOSITS = keccak256(abi.encode("MAX_PNL_FACTOR_FOR_DEPOSITS"));
    bytes32 internal constant MAX_PNL_FACTOR_FOR_WITHDRAWALS = keccak256(abi.encode("MAX_PNL_FACTOR_FOR_WITHDRAWALS"));
    bytes32 internal constant VIRTUAL_MARKET_ID = keccak256(abi.encode("VIRTUAL_MARKET_ID"));
    bytes32 internal constant VIRTUAL_INVENTORY_FOR_SWAPS = keccak256(abi.encode("VIRTUAL_INVENTORY_FOR_SWAPS"));

    // Switches.
    bytes32 internal constant IS_MARKET_DISABLED = keccak256(abi.encode("IS_MARKET_DISABLED"));
    bytes32 internal constant CREATE_ORDER_FEATURE_DISABLED = keccak256(abi.encode("CREATE_ORDER_FEATURE_DISABLED"));
    bytes32 internal constant EXECUTE_ORDER_FEATURE_DISABLED = keccak256(abi.encode("EXECUTE_ORDER_FEATURE_DISABLED"));

    // Limits on requests.
    bytes32 internal constant REQUEST_EXPIRATION_TIME = keccak256(abi.encode("REQUEST_EXPIRATION_TIME"));
    bytes32 internal constant MAX_AUTO_CANCEL_ORDERS = keccak256(abi.encode("MAX_AUTO_CANCEL_ORDERS"));
    bytes32 internal constant MAX_DATA_LENGTH = keccak256(abi.encode("MAX_DATA_LENGTH"));
    bytes32 internal constant MAX_SWAP_PATH_LENGTH = keccak256(abi.encode("MAX_SWAP_PATH_LENGTH"));
    bytes32 internal constant MAX_CALLBACK_GAS_LIMIT = keccak256(abi.encode("MAX_CALLBACK_GAS_LIMIT"));
    bytes32 internal constant MAX_TOTAL_CALLBACK_GAS_LIMIT_FOR_AUTO_CANCEL_ORDERS =
        keccak256(abi.encode("MAX_TOTAL_CALLBACK_GAS_LIMIT_FOR_AUTO_CANCEL_ORDERS"));

    // What an account wants to be called after a liquidation in a market.
    bytes32 internal constant SAVED_CALLBACK_CONTRACT = keccak256(abi.encode("SAVED_CALLBACK_CONTRACT"));

    // Oracle.
    bytes32 internal constant MAX_ORACLE_PRICE_AGE = keccak256(abi.encode("MAX_ORACLE_PRICE_AGE"));
    bytes32 internal constant MAX_ORACLE_TIMESTAMP_RANGE = keccak256(abi.encode("MAX_ORACLE_TIMESTAMP_RANGE"));
    bytes32 internal constant IS_ORACLE_PROVIDER_ENABLED = keccak256(abi.encode("IS_ORACLE_PROVIDER_ENABLED"));
    bytes32 internal constant ORACLE_PROVIDER_FOR_TOKEN = keccak256(abi.encode("ORACLE_PROVIDER_FOR_TOKEN"));
    bytes32 internal constant STATIC_ORACLE_PRICE = keccak256(abi.encode("STATIC_ORACLE_PRICE"));
    bytes32 internal constant DEVNET_ORACLE_SIGNER = keccak256(abi.encode("DEVNET_ORACLE_SIGNER"));

    // What a liquidation burns beside its own work.
    bytes32 internal constant DEVNET_LIQUIDATION_BURN = keccak256(abi.encode("DEVNET_LIQUIDATION_BURN"));

    // Gas of an execution, and what the keeper is paid for it.
    bytes32 internal constant INCREASE_ORDER_GAS_LIMIT = keccak256(abi.encode("INCREASE_ORDER_GAS_LIMIT"));
    bytes32 internal constant DECREASE_ORDER_GAS_LIMIT = keccak256(abi.encode("DECREASE_ORDER_GAS_LIMIT"));
    bytes32 internal constant SWAP_ORDER_GAS_LIMIT = keccak256(abi.encode("SWAP_ORDER_GAS_LIMIT"));
    bytes32 internal constant SINGLE_SWAP_GAS_LIMIT = keccak256(abi.encode("SINGLE_SWAP_GAS_LIMIT"));
    bytes32 internal constant DEPOSIT_GAS_LIMIT = keccak256(abi.encode("DEPOSIT_GAS_LIMIT"));
    bytes32 internal constant WITHDRAWAL_GAS_LIMIT = keccak256(abi.encode("WITHDRAWAL_GAS_LIMIT"));
    bytes32 internal constant SHIFT_GAS_LIMIT = keccak256(abi.encode("SHIFT_GAS_LIMIT"));
    bytes32 internal constant GLV_DEPOSIT_GAS_LIMIT = keccak256(abi.encode("GLV_DEPOSIT_GAS_LIMIT"));
    bytes32 internal constant GLV_WITHDRAWAL_GAS_LIMIT = keccak256(abi.encode("GLV_WITHDRAWAL_GAS_LIMIT"));
    bytes32 internal constant GLV_SHIFT_GAS_LIMIT = keccak256(abi.encode("GLV_SHIFT_GAS_LIMIT"));
    bytes32 internal constant GLV_PER_MARKET_GAS_LIMIT = keccak256(abi.encode("GLV_PER_MARKET_GAS_LIMIT"));
    bytes32 internal constant MIN_ADDITIONAL_GAS_FOR_EXECUTION = keccak256(abi.encode("MIN_ADDITIONAL_GAS_FOR_EXECUTION"));
    bytes32 internal constant MIN_HANDLE_EXECUTION_ERROR_GAS_TO_FORWARD =
        keccak256(abi.encode("MIN_HANDLE_EXECUTION_ERROR_GAS_TO_FORWARD"));
    bytes32 internal constant MIN_HANDLE_EXECUTION_ERROR_GAS = keccak256(abi.encode("MIN_HANDLE_EXECUTION_ERROR_GAS"));
    bytes32 internal constant ESTIMATED_GAS_FEE_BASE_AMOUNT_V2_1 =
        keccak256(abi.encode("ESTIMATED_GAS_FEE_BASE_AMOUNT_V2_1"));
    bytes32 internal constant ESTIMATED_GAS_FEE_MULTIPLIER_FACTOR =
        keccak256(abi.encode("ESTIMATED_GAS_FEE_MULTIPLIER_FACTOR"));
    bytes32 internal constant EXECUTION_GAS_FEE_BASE_AMOUNT_V2_1 =
        keccak256(abi.encode("EXECUTION_GAS_FEE_BASE_AMOUNT_V2_1"));
    bytes32 internal constant EXECUTION_GAS_FEE_MULTIPLIER_FACTOR =
        keccak256(abi.encode("EXECUTION_GAS_FEE_MULTIPLIER_FACTOR"));
    bytes32 internal constant ESTIMATED_GAS_FEE_PER_ORACLE_PRICE =
        keccak256(abi.encode("ESTIMATED_GAS_FEE_PER_ORACLE_PRICE"));
    bytes32 internal constant EXECUTION_GAS_FEE_PER_ORACLE_PRICE =
        keccak256(abi.encode("EXECUTION_GAS_FEE_PER_ORACLE_PRICE"));
    bytes32 internal constant REFUND_EXECUTION_FEE_GAS_LIMIT = keccak256(abi.encode("REFUND_EXECUTION_FEE_GAS_LIMIT"));

    function poolAmountKey(address market, address token) internal pure returns (bytes32) {
        return keccak256(abi.encode(POOL_AMOUNT, market, token));
    }

    function swapImpactPoolAmountKey(address market, address token) internal pure returns (bytes32) {
        return keccak256(abi.encode(SWAP_IMPACT_POOL_AMOUNT, market, token));
    }

    function claimableFeeAmountKey(address market, address token) internal pure returns (bytes32) {
        return keccak256(abi.encode(CLAIMABLE_FEE_AMOUNT, market, token));
    }

    /// What one receiver may claim, and with the zero address all of them together.
    function claimableUiFeeAmountKey(address market, address token, address receiver) internal pure returns (bytes32) {
        if (receiver == address(0)) return keccak256(abi.encode(CLAIMABLE_UI_FEE_AMOUNT, market, token));
        return keccak256(abi.encode(CLAIMABLE_UI_FEE_AMOUNT, market, token, receiver));
    }

    function virtualInventoryForSwapsKey(bytes32 virtualMarketId, bool isLongToken) internal pure returns (bytes32) {
        return keccak256(abi.encode(VIRTUAL_INVENTORY_FOR_SWAPS, virtualMarketId, isLongToken));
    }

    function savedCallbackContractKey(address account, address market) internal pure returns (bytes32) {
        return keccak256(abi.encode(SAVED_CALLBACK_CONTRACT, account, market));
    }

    function openInterestKey(address market, address collateralToken, bool isLong) internal pure returns (bytes32) {
        return keccak256(abi.encode(OPEN_INTEREST, market, collateralToken, isLong));
    }

    function openInterestInTokensKey(address market, address collateralToken, bool isLong)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(OPEN_INTEREST_IN_TOKENS, market, collateralToken, isLong));
    }

    function fundingFeeAmountPerSizeKey(address market, address collateralToken, bool isLong)
        internal
        pure
        returns (bytes32)
    {
        return keccak256(abi.encode(FUNDING_FEE_AMOUNT_PER_SIZE, market, collateralToken, isLong));
    }

    function collateralSumKey(address market, address collateralToken, bool isLong) internal pure returns (bytes32) {
        return keccak256(abi.encode(COLLATERAL_SUM, market, collateralToken, isLong));
    }

    function maxPoolAmountKey(address market, address token) internal pure returns (bytes32) {
        return keccak256(abi.encode(MAX_POOL_AMOUNT, market, token));
    }

    /// A key whose only argument is an address: a market, a provider.
    function ofAddress(bytes32 baseKey, address argument) internal pure returns (bytes32) {
        return keccak256(abi.encode(baseKey, argument));
    }

    /// A key whose arguments are a market and a flag: RESERVE_FACTOR(market, isLong), POSITION_FEE_FACTOR(market, improved).
    function ofMarketFlag(bytes32 baseKey, address market, bool flag) internal pure returns (bytes32) {
        return keccak256(abi.encode(baseKey, market, flag));
    }

    /// A switch of one order type of one handler.
    function ofFeature(bytes32 baseKey, address handler, uint256 orderType) internal pure returns (bytes32) {
        return keccak256(abi.encode(baseKey, handler, orderType));
    }

    function staticOraclePriceKey(address token, bool isMax) internal pure returns (bytes32) {
        return keccak256(abi.encode(STATIC_ORACLE_PRICE, token, isMax));
    }

    function oracleProviderForTokenKey(address oracle, address token) internal pure returns (bytes32) {
        return keccak256(abi.encode(ORACLE_PROVIDER_FOR_TOKEN, oracle, token));
    }
}
