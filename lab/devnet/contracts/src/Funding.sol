// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {EventUtils} from "./EventUtils.sol";
import {FundingVersion} from "./FundingVersion.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {MarketLedger} from "./MarketLedger.sol";
import {Power} from "./Power.sol";
import {Precision} from "./Precision.sol";

/// @title The funding factor of a market: what the side that pays owes per second, for each USD of its open interest.
/// Every execution brings it up to date before it changes anything. What positions pay stays with the market token: nobody
/// claims it.
library Funding {
    using EventUtils for EventUtils.EventLogData;

    /// A market at an update. `saved` is the factor as the last one left it, positive while longs pay.
    struct Terms {
        DataStore dataStore;
        address market;
        uint256 long;
        uint256 short;
        int256 saved;
        uint256 elapsed;
    }

    /// Amounts per size are tokens per USD with so many decimals.
    uint256 internal constant PER_SIZE = 1e45;

    function update(
        DataStore dataStore,
        EventEmitter eventEmitter,
        Market.Props memory market,
        Market.Prices memory prices
    ) public {
        Terms memory t;
        t.dataStore = dataStore;
        t.market = market.marketToken;
        t.long = MarketLedger.openInterest(dataStore, market, true);
        t.short = MarketLedger.openInterest(dataStore, market, false);
        bytes32 savedKey = Keys.ofAddress(Keys.SAVED_FUNDING_FACTOR_PER_SECOND, t.market);
        t.saved = dataStore.getInt(savedKey);
        bytes32 updatedKey = Keys.ofAddress(Keys.FUNDING_UPDATED_AT, t.market);
        uint256 updated = dataStore.getUint(updatedKey);
        if (updated != 0) t.elapsed = block.timestamp - updated;
        (uint256 factor, bool longsPay, int256 saved) = next(t);
        uint256 usd = Precision.applyFactor(longsPay ? t.long : t.short, factor * t.elapsed);
        if (usd > 0 && t.long > 0 && t.short > 0) {
            _grow(dataStore, eventEmitter, t, longsPay, usd, market.longToken, prices.longTokenPrice.max);
            _grow(dataStore, eventEmitter, t, longsPay, usd, market.shortToken, prices.shortTokenPrice.max);
        }
        if (saved != t.saved) dataStore.setInt(savedKey, saved);
        dataStore.setUint(updatedKey, block.timestamp);
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("market", t.market);
        e.putUint("fundingFactorPerSecond", factor);
        eventEmitter.emitEventLog1("Funding", EventUtils.topic(t.market), e);
    }

    /// The factor for the seconds since the last update, and the one to save.
    function next(Terms memory t) internal view returns (uint256 factor, bool longsPay, int256 saved) {
        if (t.long == 0 || t.short == 0) {
            saved = FundingVersion.keptWhileEmpty(t.saved);
            return (_abs(saved), saved > 0, saved);
        }
        uint256 increase = _term(t, Keys.FUNDING_INCREASE_FACTOR_PER_SECOND);
        uint256 gap = Precision.diff(t.long, t.short);
        if (gap == 0 && increase == 0) return (0, true, 0);
        uint256 skew = Power.float(gap, _term(t, Keys.FUNDING_EXPONENT_FACTOR)) * Precision.FLOAT_PRECISION
            / (t.long + t.short);
        if (increase == 0) {
            factor = Precision.applyFactor(skew, _term(t, Keys.FUNDING_FACTOR));
            longsPay = t.long > t.short;
            return (_min(factor, _bound(t, Keys.MAX_FUNDING_FACTOR_PER_SECOND, longsPay)), longsPay, 0);
        }
        saved = _adapted(t, skew, increase);
        longsPay = saved >= 0;
        uint256 most = _bound(t, Keys.MAX_FUNDING_FACTOR_PER_SECOND, longsPay);
        uint256 least = _bound(t, Keys.MIN_FUNDING_FACTOR_PER_SECOND, longsPay);
        uint256 size = _min(_abs(saved), most);
        saved = longsPay ? Precision.signed(size) : -Precision.signed(size);
        return (_min(size < least ? least : size, most), longsPay, saved);
    }

    /// Adds to what the payers with one collateral owe for each USD of size: their share, in tokens, rounded up.
    function _grow(
        DataStore dataStore,
        EventEmitter eventEmitter,
        Terms memory t,
        bool isLong,
        uint256 usd,
        address token,
        uint256 price
    ) private {
        uint256 own = dataStore.getUint(Keys.openInterestKey(t.market, token, isLong));
        uint256 delta = _perSize(usd * own / (isLong ? t.long : t.short), own, price);
        if (delta == 0) return;
        bytes32 key = Keys.fundingFeeAmountPerSizeKey(t.market, token, isLong);
        EventUtils.EventLogData memory e = EventUtils.create();
        e.put("market", t.market);
        e.put("collateralToken", token);
        e.putBool("isLong", isLong);
        e.putUint("delta", delta);
        e.putUint("value", dataStore.incrementUint(key, delta));
        eventEmitter.emitEventLog1("FundingFeeAmountPerSizeUpdated", EventUtils.topic(t.market), e);
    }

    /// usd * PER_SIZE / own / price, both rounded up; in two steps, since the product is too large for a word.
    function _perSize(uint256 usd, uint256 own, uint256 price) private pure returns (uint256) {
        if (usd == 0 || own == 0) return 0;
        uint256 first = usd * Precision.FLOAT_PRECISION;
        uint256 rest = PER_SIZE / Precision.FLOAT_PRECISION;
        uint256 amount = first / own * rest + Precision.roundUpDivision(first % own * rest, own);
        return Precision.roundUpDivision(amount, price);
    }

    /// What a position owes since it last paid, in collateral tokens, rounded up.
    function owed(uint256 sizeInUsd, uint256 since, uint256 latest) internal pure returns (uint256) {
        return Precision.roundUpDivision(sizeInUsd * (latest - since), PER_SIZE);
    }

    /// Where the saved factor moves: on toward the larger side, or back toward zero, or nowhere.
    function _adapted(Terms memory t, uint256 skew, uint256 increase) private view returns (int256) {
        if ((t.saved > 0 && t.long > t.short) || (t.saved < 0 && t.short > t.long)) {
            if (skew <= _term(t, Keys.THRESHOLD_FOR_STABLE_FUNDING)) {
                return skew < _term(t, Keys.THRESHOLD_FOR_DECREASE_FUNDING) ? _faded(t) : t.saved;
            }
        }
        uint256 rate = Precision.applyFactor(skew, increase);
        uint256 floor = FundingVersion.minIncreaseRate(t.dataStore, t.market);
        if (skew > 0 && rate < floor) rate = floor;
        int256 step = Precision.signed(rate * t.elapsed);
        return t.long < t.short ? t.saved - step : t.saved + step;
    }

    /// One less keeps the sign.
    function _faded(Terms memory t) private view returns (int256) {
        uint256 less = _term(t, Keys.FUNDING_DECREASE_FACTOR_PER_SECOND) * t.elapsed;
        uint256 size = _abs(t.saved);
        int256 left = size > less ? Precision.signed(size - less) : int256(1);
        return t.saved > 0 ? left : -left;
    }

    function _term(Terms memory t, bytes32 baseKey) private view returns (uint256) {
        return t.dataStore.getUint(Keys.ofAddress(baseKey, t.market));
    }

    function _bound(Terms memory t, bytes32 baseKey, bool isLong) private view returns (uint256) {
        return FundingVersion.bound(t.dataStore, baseKey, t.market, isLong);
    }

    function _abs(int256 v) private pure returns (uint256) {
        return v < 0 ? uint256(-v) : uint256(v);
    }

    function _min(uint256 a, uint256 b) private pure returns (uint256) {
        return a < b ? a : b;
    }
}
