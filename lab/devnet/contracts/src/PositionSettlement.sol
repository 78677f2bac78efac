// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Errors} from "./Errors.sol";
import {EventEmitter} from "./EventEmitter.sol";
import {Keys} from "./Keys.sol";
import {Market} from "./Market.sol";
import {MarketLedger} from "./MarketLedger.sol";
import {Order} from "./Order.sol";
import {Position} from "./Position.sol";
import {PositionEvents} from "./PositionEvents.sol";
import {Precision} from "./Precision.sol";
import {Price} from "./Price.sol";
import {SwapHandler, SwapParams} from "./SwapHandler.sol";

/// @title Profit, loss and fees of a decrease, and who pays them.
/// A profit comes out of the pool in the long token (for longs) or the short token (for shorts). A loss and the fees go to
/// the pool, out of what the trader would receive, then the collateral, then a profit in the other token.
library PositionSettlement {
    using MarketLedger for MarketLedger.Books;

    struct Terms {
        MarketLedger.Books books;
        Market.Props market;
        Market.Prices prices;
        Position.Props position;
        PositionEvents.Change change;
        PositionEvents.Fees fees;
        Order.Props order;
        SwapHandler swapHandler;
        bool insolventCloseAllowed;
    }

    /// What the trader has: collateral that stays in the position, output in the collateral token, and secondary output
    /// in the profit token if that is another one.
    struct Purse {
        address profitToken;
        uint256 collateral;
        uint256 output;
        uint256 secondary;
    }

    /// Settles a decrease. `solvent` is false if everything went to the pool and did not suffice; then nothing of the fees
    /// counts as collected. Reverts with InsufficientFundsToPayForCosts where an insolvent close is not allowed.
    function settle(Terms memory t) internal returns (Purse memory purse, bool solvent) {
        purse.profitToken = t.position.isLong ? t.market.longToken : t.market.shortToken;
        purse.collateral = t.position.collateralAmount;
        if (t.change.basePnlUsd > 0) _takeProfit(t, purse, uint256(t.change.basePnlUsd));
        uint256 price = t.change.collateralPrice.min;
        uint256 unpaidFunding = _pay(t, purse, t.fees.fundingFeeAmount * price, false);
        if (unpaidFunding > 0) return _insolvent(t, purse, unpaidFunding, "funding");
        if (t.change.basePnlUsd < 0) {
            uint256 unpaid = _pay(t, purse, uint256(-t.change.basePnlUsd), true);
            if (unpaid > 0) return _insolvent(t, purse, unpaid, "pnl");
        }
        uint256 feeAmount = t.fees.positionFeeAmount + t.fees.liquidationFeeAmount;
        uint256 unpaidFees = _pay(t, purse, feeAmount * price, true);
        if (unpaidFees > 0) return _insolvent(t, purse, unpaidFees, "fees");
        return (purse, true);
    }

    /// Swaps an amount that stays in the position's own market, and reports whether it could.
    function swapInside(Terms memory t, address tokenIn, address tokenOut, uint256 amount)
        internal
        returns (bool, uint256)
    {
        if (amount == 0 || tokenIn == tokenOut) return (false, 0);
        try t.swapHandler.swap(swapOf(t, tokenIn, amount)) returns (address, uint256 amountOut) {
            return (true, amountOut);
        } catch {
            return (false, 0);
        }
    }

    /// A swap in the position's own market, out of what the market token holds.
    function swapOf(Terms memory t, address tokenIn, uint256 amount) internal pure returns (SwapParams memory p) {
        p.key = t.change.orderKey;
        p.feeKey = Keys.SWAP_FEE_FACTOR;
        p.bank = t.position.market;
        p.tokenIn = tokenIn;
        p.amountIn = amount;
        p.path = new address[](1);
        p.path[0] = t.position.market;
        p.receiver = t.position.market;
        p.uiFeeReceiver = t.order.uiFeeReceiver;
    }

    function _takeProfit(Terms memory t, Purse memory purse, uint256 usd) private {
        uint256 amount = usd / _profitPrice(t, purse).max;
        if (amount == 0) return;
        t.books.applyToPool(t.position.market, purse.profitToken, -Precision.signed(amount));
        if (purse.profitToken == t.position.collateralToken) {
            purse.output += amount;
            return;
        }
        if (t.order.decreasePositionSwapType == Order.DecreasePositionSwapType.SwapPnlTokenToCollateralToken) {
            (bool swapped, uint256 amountOut) = swapInside(t, purse.profitToken, t.position.collateralToken, amount);
            if (swapped) {
                purse.output += amountOut;
                return;
            }
        }
        purse.secondary += amount;
    }

    /// Takes up to `usd` from the purse, for the pool or for funding, and returns what could not be paid. Amounts are rounded up.
    function _pay(Terms memory t, Purse memory purse, uint256 usd, bool toPool) private returns (uint256 unpaidUsd) {
        uint256 price = t.change.collateralPrice.min;
        uint256 due = Precision.roundUpDivision(usd, price);
        uint256 fromOutput = _min(due, purse.output);
        uint256 fromCollateral = _min(due - fromOutput, purse.collateral);
        purse.output -= fromOutput;
        purse.collateral -= fromCollateral;
        if (toPool) _credit(t, t.position.collateralToken, fromOutput + fromCollateral);
        due -= fromOutput + fromCollateral;
        if (due == 0 || purse.secondary == 0) return due * price;

        uint256 secondaryPrice = _profitPrice(t, purse).min;
        uint256 dueSecondary = Precision.roundUpDivision(due * price, secondaryPrice);
        uint256 fromSecondary = _min(dueSecondary, purse.secondary);
        purse.secondary -= fromSecondary;
        if (toPool) _credit(t, purse.profitToken, fromSecondary);
        return (dueSecondary - fromSecondary) * secondaryPrice;
    }

    function _credit(Terms memory t, address token, uint256 amount) private {
        if (amount != 0) t.books.applyToPool(t.position.market, token, Precision.signed(amount));
    }

    function _insolvent(Terms memory t, Purse memory purse, uint256 remainingCostUsd, string memory step)
        private
        returns (Purse memory, bool)
    {
        if (!t.insolventCloseAllowed) revert Errors.InsufficientFundsToPayForCosts(remainingCostUsd, step);
        EventEmitter emitter = t.books.eventEmitter;
        PositionEvents.fees(emitter, "PositionFeesInfo", t.position, t.change, t.fees, t.position.account);
        PositionEvents.insolvent(
            emitter, t.change.orderKey, t.position.collateralAmount, t.change.basePnlUsd, remainingCostUsd, step
        );
        return (purse, false);
    }

    function _profitPrice(Terms memory t, Purse memory purse) private pure returns (Price.Props memory) {
        return Market.priceOf(t.market, t.prices, purse.profitToken);
    }

    function _min(uint256 a, uint256 b) private pure returns (uint256) {
        return a < b ? a : b;
    }
}
