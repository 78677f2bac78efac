// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

/// What a keeper passes to every execution: for each token its provider and that provider's report.
struct SetPricesParams {
    address[] tokens;
    address[] providers;
    bytes[] data;
}

/// What a provider makes of a report. Prices are USD with 30 decimals per smallest unit, the timestamp is in seconds.
struct ValidatedPrice {
    address token;
    uint256 min;
    uint256 max;
    uint256 timestamp;
    address provider;
}

/// A source of prices: reverts unless the report is genuine and about that token.
interface IOracleProvider {
    function getOraclePrice(address token, bytes calldata data) external view returns (ValidatedPrice memory);
}
