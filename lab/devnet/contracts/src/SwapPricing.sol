// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {Power} from "./Power.sol";
import {Precision} from "./Precision.sol";

/// @title What a swap costs beside the price: its impact on the balance of a pool, and the fees.
library SwapPricing {
    /// The two tokens of a pool by what they are worth at middle prices, before and after a swap's value has moved.
    struct Balance {
        uint256 inUsd;
        uint256 outUsd;
        uint256 nextInUsd;
        uint256 nextOutUsd;
    }

    /// What is swapped, at middle prices.
    struct Swapped {
        Market.Props market;
        address tokenIn;
        uint256 inPrice;
        uint256 outPrice;
        uint256 amountIn;
    }

    struct Fees {
        uint256 receiverAmount;
        uint256 poolAmount;
        uint256 uiFactor;
        uint256 uiAmount;
        uint256 amountAfterFees;
    }

    /// The value of a swap's impact: positive where the pool becomes more even. An impact against the trader is the worse of
    /// those on the pool and on the virtual inventory that several markets may share.
    function impact(DataStore dataStore, Swapped memory s) internal view returns (int256 usd, bool improved) {
        address market = s.market.marketToken;
        (usd, improved) = _impact(
            dataStore,
            market,
            _balance(
                s,
                dataStore.getUint(Keys.poolAmountKey(market, s.tokenIn)),
                dataStore.getUint(Keys.poolAmountKey(market, Market.opposite(s.market, s.tokenIn)))
            )
        );
        bytes32 id = dataStore.getBytes32(Keys.ofAddress(Keys.VIRTUAL_MARKET_ID, market));
        if (usd >= 0 || id == bytes32(0)) return (usd, improved);

        bool isLong = s.tokenIn == s.market.longToken;
        (int256 virtualUsd, bool virtualImproved) = _impact(
            dataStore,
            market,
            _balance(
                s,
                dataStore.getUint(Keys.virtualInventoryForSwapsKey(id, isLong)),
                dataStore.getUint(Keys.virtualInventoryForSwapsKey(id, !isLong))
            )
        );
        if (virtualUsd < usd) return (virtualUsd, virtualImproved);
    }

    /// The fees of a swap of an amount: the venue's, of which a part stays in the pool, and that of the interface.
    function fees(DataStore dataStore, bytes32 feeKey, address market, uint256 amount, bool improved, address uiFeeReceiver)
        internal
        view
        returns (Fees memory f)
    {
        uint256 total =
            Precision.applyFactor(amount, dataStore.getUint(Keys.ofMarketFlag(feeKey, market, improved)));
        f.receiverAmount = Precision.applyFactor(total, dataStore.getUint(Keys.SWAP_FEE_RECEIVER_FACTOR));
        f.poolAmount = total - f.receiverAmount;
        if (uiFeeReceiver != address(0)) {
            f.uiFactor = dataStore.getUint(Keys.ofAddress(Keys.UI_FEE_FACTOR, uiFeeReceiver));
            uint256 most = dataStore.getUint(Keys.MAX_UI_FEE_FACTOR);
            if (f.uiFactor > most) f.uiFactor = most;
        }
        f.uiAmount = Precision.applyFactor(amount, f.uiFactor);
        f.amountAfterFees = amount - total - f.uiAmount;
    }

    function _balance(Swapped memory s, uint256 inAmount, uint256 outAmount) private pure returns (Balance memory) {
        uint256 inUsd = inAmount * s.inPrice;
        uint256 outUsd = outAmount * s.outPrice;
        uint256 moved = s.amountIn * s.inPrice;
        if (moved > outUsd) revert Errors.UsdDeltaExceedsPoolValue(-Precision.signed(moved), outUsd);
        return Balance(inUsd, outUsd, inUsd + moved, outUsd - moved);
    }

    /// The difference of the two tokens, raised to a power and weighed, before less after. Where the swap makes the other token the
    /// scarce one, what it improves is weighed as an improvement and what it worsens as a worsening.
    function _impact(DataStore dataStore, address market, Balance memory b)
        private
        view
        returns (int256 usd, bool improved)
    {
        uint256 before = Precision.diff(b.inUsd, b.outUsd);
        uint256 next = Precision.diff(b.nextInUsd, b.nextOutUsd);
        improved = next < before;
        uint256 negative = dataStore.getUint(Keys.ofMarketFlag(Keys.SWAP_IMPACT_FACTOR, market, false));
        uint256 positive = dataStore.getUint(Keys.ofMarketFlag(Keys.SWAP_IMPACT_FACTOR, market, true));
        if (positive > negative) positive = negative;

        bool sameSide = (b.inUsd <= b.outUsd) == (b.nextInUsd <= b.nextOutUsd);
        uint256 exponent = dataStore.getUint(Keys.ofAddress(Keys.SWAP_IMPACT_EXPONENT_FACTOR, market));
        uint256 gain = _weigh(before, !sameSide || improved ? positive : negative, exponent);
        uint256 loss = _weigh(next, sameSide && improved ? positive : negative, exponent);
        if (sameSide) {
            usd = Precision.signed(Precision.diff(gain, loss));
            return (improved ? usd : -usd, improved);
        }
        usd = Precision.signed(gain) - Precision.signed(loss);
    }

    function _weigh(uint256 usd, uint256 factor, uint256 exponent) private pure returns (uint256) {
        return Precision.applyFactor(Power.float(usd, exponent), factor);
    }
}
