// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {ClaimableFees} from "./ClaimableFees.sol";
import {DataStore} from "./DataStore.sol";
import {Errors} from "./Errors.sol";
import {EventUtils} from "./EventUtils.sol";
import {Market} from "./Market.sol";
import {MarketLedger} from "./MarketLedger.sol";
import {Precision} from "./Precision.sol";
import {Price} from "./Price.sol";
import {SwapPricing} from "./SwapPricing.sol";

/// @title One market of a swap: what goes into its pool, what comes out, and what its impact pool pays or keeps.
library SwapHop {
    using EventUtils for EventUtils.EventLogData;
    using MarketLedger for MarketLedger.Books;
    using Price for Price.Props;

    /// The first part is asked, the second is the outcome.
    struct Props {
        bytes32 key;
        bytes32 feeKey;
        Market.Props market;
        address tokenIn;
        uint256 amountIn;
        address receiver;
        address uiFeeReceiver;
        Price.Props inPrice;
        Price.Props outPrice;
        address tokenOut;
        uint256 amountOut;
        SwapPricing.Fees fees;
        int256 impactUsd;
        int256 impactAmount;
        int256 tokenInImpactAmount;
    }

    /// Fills in the outcome and writes it into the books; the tokens themselves are the caller's to move.
    function settle(MarketLedger.Books memory books, Props memory h) internal {
        DataStore dataStore = books.dataStore;
        address market = h.market.marketToken;
        bool improved;
        (h.impactUsd, improved) = SwapPricing.impact(
            dataStore, SwapPricing.Swapped(h.market, h.tokenIn, h.inPrice.mid(), h.outPrice.mid(), h.amountIn)
        );
        h.fees = SwapPricing.fees(dataStore, h.feeKey, market, h.amountIn, improved, h.uiFeeReceiver);
        ClaimableFees.addSwapFee(books, market, h.tokenIn, h.fees.receiverAmount);
        ClaimableFees.addUiFee(books, h.uiFeeReceiver, market, h.tokenIn, h.fees.uiAmount);

        uint256 poolIn = h.impactUsd > 0 ? _withBonus(books, h) : _withMalus(books, h);
        uint256 poolOut = poolIn * h.inPrice.min / h.outPrice.max;
        h.amountOut = poolOut;
        if (h.impactAmount > 0) h.amountOut += uint256(h.impactAmount);
        books.applyToPool(market, h.tokenIn, Precision.signed(poolIn + h.fees.poolAmount));
        books.applyToPool(market, h.tokenOut, -Precision.signed(poolOut));
    }

    /// Emits SwapInfo and SwapFeesCollected.
    function announce(MarketLedger.Books memory books, Props memory h) internal {
        EventUtils.EventLogData memory e = EventUtils.create();
        e.putBytes32("orderKey", h.key);
        e.put("market", h.market.marketToken);
        e.put("receiver", h.receiver);
        e.put("tokenIn", h.tokenIn);
        e.put("tokenOut", h.tokenOut);
        e.putUint("tokenInPrice", h.inPrice.min);
        e.putUint("tokenOutPrice", h.outPrice.max);
        e.putUint("amountIn", h.amountIn);
        e.putUint("amountInAfterFees", h.fees.amountAfterFees);
        e.putUint("amountOut", h.amountOut);
        e.putInt("priceImpactUsd", h.impactUsd);
        e.putInt("priceImpactAmount", h.impactAmount);
        e.putInt("tokenInPriceImpactAmount", h.tokenInImpactAmount);
        books.eventEmitter.emitEventLog1("SwapInfo", EventUtils.topic(h.market.marketToken), e);

        e = EventUtils.create();
        e.putBytes32("tradeKey", h.key);
        e.putBytes32("swapFeeType", ClaimableFees.SWAP_FEE_TYPE);
        e.put("uiFeeReceiver", h.uiFeeReceiver);
        e.put("market", h.market.marketToken);
        e.put("token", h.tokenIn);
        e.putUint("tokenPrice", h.inPrice.min);
        e.putUint("feeReceiverAmount", h.fees.receiverAmount);
        e.putUint("feeAmountForPool", h.fees.poolAmount);
        e.putUint("amountAfterFees", h.fees.amountAfterFees);
        e.putUint("uiFeeReceiverFactor", h.fees.uiFactor);
        e.putUint("uiFeeAmount", h.fees.uiAmount);
        books.eventEmitter.emitEventLog1("SwapFeesCollected", EventUtils.topic(h.market.marketToken), e);
    }

    /// A positive impact is paid in the token that leaves, up to what the impact pool has of it, and beyond in the token that comes.
    /// Returns what is exchanged at the price.
    function _withBonus(MarketLedger.Books memory books, Props memory h) private returns (uint256) {
        address market = h.market.marketToken;
        uint256 cappedUsd;
        (h.impactAmount, cappedUsd) = _takeImpact(books, market, h.tokenOut, h.outPrice, uint256(h.impactUsd));
        if (cappedUsd == 0) return h.fees.amountAfterFees;
        (h.tokenInImpactAmount,) = _takeImpact(books, market, h.tokenIn, h.inPrice, cappedUsd);
        return h.fees.amountAfterFees + uint256(h.tokenInImpactAmount);
    }

    /// A negative impact goes into the impact pool out of what came in.
    function _withMalus(MarketLedger.Books memory books, Props memory h) private returns (uint256) {
        uint256 amount = Precision.roundUpDivision(uint256(-h.impactUsd), h.inPrice.min);
        h.impactAmount = -Precision.signed(amount);
        books.applyToSwapImpactPool(h.market.marketToken, h.tokenIn, Precision.signed(amount));
        if (h.fees.amountAfterFees <= amount) {
            revert Errors.SwapPriceImpactExceedsAmountIn(h.fees.amountAfterFees, h.impactAmount);
        }
        return h.fees.amountAfterFees - amount;
    }

    function _takeImpact(
        MarketLedger.Books memory books,
        address market,
        address token,
        Price.Props memory price,
        uint256 usd
    ) private returns (int256 amount, uint256 cappedUsd) {
        amount = Precision.signed(usd / price.max);
        int256 available = Precision.signed(MarketLedger.swapImpactPool(books.dataStore, market, token));
        if (amount > available) {
            cappedUsd = uint256(amount - available) * price.max;
            amount = available;
        }
        books.applyToSwapImpactPool(market, token, -amount);
    }
}
