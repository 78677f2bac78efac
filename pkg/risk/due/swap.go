package due

import (
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// swapMargin is how much more than its minimum a limit swap has to give before it is due, as a 30-decimal factor: 0.001
// %. Sent too early, the venue freezes it and keeps its execution fee, and between the decision and the block the pools
// may move by a trade, and prices by a tick. It is more than two ticks of prices with six significant digits, one for
// each token. See [withMargin] for what is added at least.
var swapMargin = chain.Pow10(25)

// withMargin is what a swap has to give for an order with this minimum: more by the margin, and by one unit at least.
func withMargin(minimum chain.Uint) chain.Uint {
	return minimum.Add(minimum.MulDivUp(swapMargin, perp.One).Max(chain.U64(1)))
}

// limitSwap is due while the venue's whole swap rule gives what it asks for, with the margin.
func (m *Moment) limitSwap(o perp.Order, d Decision) Decision {
	if err := m.reported(d.Job.Tokens); err != nil {
		return d.not("%v", err)
	}
	if window, oldest := perp.OrderWindow(o, perp.Position{}, m.expiration()),
		m.oldest(d.Job.Tokens); !window.Holds(oldest) {
		return d.not("it takes reports from second %d on, and the oldest of its tokens' newest is of second %d",
			window.From, oldest)
	}
	out, err := m.swapped(o)
	if err != nil {
		return d.not("%v", err)
	}
	return d.yes(m, "limit swap: its output is %s of %s asked for", m.amount(out.AmountOut, out.TokenOut),
		o.MinOutputAmount)
}

// collateral is what a waiting increase order brings to its position: the venue swaps what was paid in along the
// order's path, and freezes the order where that fails or gives less than the order asks for
// (IncreaseOrderUtils.processOrder).
func (m *Moment) collateral(o perp.Order, market perp.Market, tokens []chain.Address) error {
	if err := m.reported(tokens); err != nil {
		return err
	}
	out, err := m.swapped(o)
	if err == nil && out.TokenOut != market.LongToken && out.TokenOut != market.ShortToken {
		err = fmt.Errorf("its path ends in %s, which is no collateral of its market: the venue would cancel it",
			out.TokenOut)
	}
	return err
}

// reported fails where a token has no report that may be judged with.
func (m *Moment) reported(tokens []chain.Address) error {
	for _, token := range tokens {
		if _, known := m.Quotes[token]; !known {
			return fmt.Errorf("there is no fresh price report of %s", token)
		}
	}
	return nil
}

// swapped works out the swap of an order. The error says why the order must not be sent: the venue would refuse the
// swap, or too little comes out.
func (m *Moment) swapped(o perp.Order) (out perp.Swapped, err error) {
	if out, err = swapOf(o).Execute(m.Rows, m.prices()); err != nil {
		return out, fmt.Errorf("the venue would freeze it: its swap ends in %w", err)
	}
	needed := o.MinOutputAmount
	if len(o.SwapPath) > 0 && !needed.IsZero() {
		if overflow := chain.Checked(func() { needed = withMargin(needed) }); overflow != nil {
			return out, fmt.Errorf("it asks for %s units, more than there can be", o.MinOutputAmount)
		}
	}
	if o.InitialCollateralDeltaAmount.IsZero() && o.OrderType.IsIncrease() || !out.AmountOut.Less(needed) {
		return out, nil
	}
	return out, fmt.Errorf("its output is %s of %s needed (%s and a margin): %s; sent now, the venue would freeze it",
		m.amount(out.AmountOut, out.TokenOut), m.amount(needed, out.TokenOut), o.MinOutputAmount, m.way(o, out, needed))
}

func swapOf(o perp.Order) perp.Swap {
	return perp.Swap{Path: o.SwapPath, TokenIn: o.InitialCollateralToken, AmountIn: o.InitialCollateralDeltaAmount,
		UIFeeReceiver: o.UIFeeReceiver}
}

// amount names an amount of a token, with what it is worth.
func (m *Moment) amount(units chain.Uint, token chain.Address) string {
	worth := "?"
	if err := chain.Checked(func() { worth = dollars(units.Mul(m.Quotes[token].Min)) }); err != nil {
		worth = "beyond all"
	}
	return fmt.Sprintf("%s (%s USD)", units, worth)
}

// way is how far the price of the token that is paid in has to rise. Fees go with it, impact does so nearly.
func (m *Moment) way(o perp.Order, out perp.Swapped, needed chain.Uint) string {
	if out.AmountOut.IsZero() || out.TokenOut == o.InitialCollateralToken {
		return "prices cannot mend that"
	}
	rise := chain.Uint{}
	if err := chain.Checked(func() { rise = needed.Sub(out.AmountOut).MulDivUp(perp.One, out.AmountOut) }); err != nil {
		return "it is far out of reach"
	}
	return fmt.Sprintf("the price of %s in %s has to rise by about %s", o.InitialCollateralToken, out.TokenOut,
		percent(rise))
}

// oldest is the second of the oldest of these tokens' newest reports: the venue takes none of them from before an
// order's window.
func (m *Moment) oldest(tokens []chain.Address) (second uint64) {
	for n, token := range tokens {
		if s := m.Quotes[token].Second(); n == 0 || s < second {
			second = s
		}
	}
	return second
}
