package perp

import "perpkeeper/pkg/chain"

// The words a swap depends on, beside those of [ledger]'s other rules.
var (
	marketDisabledKey       = BaseKey("IS_MARKET_DISABLED")
	swapFeeFactorKey        = BaseKey("SWAP_FEE_FACTOR")
	atomicSwapFeeFactorKey  = BaseKey("ATOMIC_SWAP_FEE_FACTOR")
	swapFeeReceiverKey      = BaseKey("SWAP_FEE_RECEIVER_FACTOR")
	uiFeeFactorKey          = BaseKey("UI_FEE_FACTOR")
	maxUIFeeFactorKey       = BaseKey("MAX_UI_FEE_FACTOR")
	swapImpactFactorKey     = BaseKey("SWAP_IMPACT_FACTOR")
	swapImpactExponentKey   = BaseKey("SWAP_IMPACT_EXPONENT_FACTOR")
	virtualMarketIDKey      = BaseKey("VIRTUAL_MARKET_ID")
	maxPoolAmountKey        = BaseKey("MAX_POOL_AMOUNT")
	reserveFactorKey        = BaseKey("RESERVE_FACTOR")
	maxPnlFactorDeposits    = BaseKey("MAX_PNL_FACTOR_FOR_DEPOSITS")
	maxPnlFactorWithdrawals = BaseKey("MAX_PNL_FACTOR_FOR_WITHDRAWALS")
)

// noID is that of a market without a virtual inventory.
var noID chain.Hash

// swapping is the swap in one market while it is worked out.
type swapping struct {
	ledger
	state     *scratch
	prices    prices
	in, out   pooled
	fees      swapFees
	hop       SwapHop
	amountIn  chain.Uint // what is swapped after fees and impact
	poolOut   chain.Uint // what leaves the pool; a reward is paid by the impact pool
	virtualID chain.Hash
}

// pooled is one of the two tokens of a pool.
type pooled struct {
	token  chain.Address
	price  Price
	isLong bool
}

func (p pooled) middle() chain.Uint { return p.price.Min.Add(p.price.Max).Div(chain.U64(2)) }

// hop is SwapUtils._swap.
func (s Swap) hop(state *scratch, m Market, given map[chain.Address]Price, tokenIn chain.Address,
	amountIn chain.Uint) (SwapHop, error) {
	w := &swapping{ledger: ledger{rows: state, market: m}, state: state}
	if err := w.begin(given, tokenIn, amountIn); err != nil {
		return SwapHop{}, err
	}
	impact, improves, err := w.impact(amountIn)
	if err != nil {
		return SwapHop{}, err
	}
	w.hop.PriceImpactUsd, w.fees = impact, s.fees(w.ledger, amountIn, improves)
	if err := w.exchange(); err != nil {
		return SwapHop{}, err
	}
	if w.prices.index, err = priceOf(given, m.IndexToken); err != nil {
		return SwapHop{}, err
	}
	w.hop.AmountInAfterFees, w.hop.UIFeeAmount = w.fees.rest, w.fees.ui
	w.hop.FeeReceiverAmount, w.hop.FeeAmountForPool = w.fees.receiver, w.fees.pool
	return w.hop, w.validate()
}

// begin finds the two tokens and their prices.
func (w *swapping) begin(given map[chain.Address]Price, tokenIn chain.Address, amountIn chain.Uint) (err error) {
	m := w.market
	w.in = pooled{token: m.LongToken, isLong: true}
	w.out = pooled{token: m.ShortToken}
	switch tokenIn {
	case m.LongToken:
	case m.ShortToken:
		w.in, w.out = w.out, w.in
	default:
		return refuse("InvalidTokenIn", tokenIn, m.MarketToken)
	}
	w.hop = SwapHop{Market: m.MarketToken, TokenIn: w.in.token, TokenOut: w.out.token, AmountIn: amountIn}
	if w.in.price, err = priceOf(given, w.in.token); err != nil {
		return err
	}
	if w.out.price, err = priceOf(given, w.out.token); err != nil {
		return err
	}
	w.prices.long, w.prices.short = w.in.price, w.out.price
	if !w.in.isLong {
		w.prices.long, w.prices.short = w.out.price, w.in.price
	}
	w.virtualID = w.term(virtualMarketIDKey).Bytes32()
	return nil
}

// priceOf is Oracle.getPrimaryPrice. The zero token is the index of markets that only swap, and has the price zero.
func priceOf(given map[chain.Address]Price, token chain.Address) (Price, error) {
	p := given[token]
	if !token.IsZero() && (p.Min.IsZero() || p.Max.IsZero()) {
		return p, refuse("EmptyPrimaryPrice", token)
	}
	return p, nil
}

// swapFees is what one hop pays, in units of the token in (SwapPricingUtils.SwapFees), and what is left after them.
type swapFees struct{ receiver, pool, ui, rest chain.Uint }

// fees is SwapPricingUtils.getSwapFees.
func (s Swap) fees(l ledger, amount chain.Uint, improves bool) (f swapFees) {
	factor := l.sided(swapFeeFactorKey, improves)
	if s.Atomic {
		factor = l.term(atomicSwapFeeFactorKey)
	}
	fee := ApplyFactor(amount, factor)
	f.receiver = ApplyFactor(fee, l.word(swapFeeReceiverKey))
	f.pool = fee.Sub(f.receiver)
	f.ui = ApplyFactor(amount, l.word(uiFeeFactorKey, s.UIFeeReceiver.Hash()).Min(l.word(maxUIFeeFactorKey)))
	f.rest = amount.Sub(fee).Sub(f.ui)
	return f
}

// exchange gives the token out for what is left of the token in, settles the impact with the impact pools, and moves
// the pools.
func (w *swapping) exchange() error {
	w.amountIn = w.fees.rest
	reward := chain.Uint{}
	if w.hop.PriceImpactUsd.Sign() > 0 {
		reward = w.reward()
	} else if err := w.charge(); err != nil {
		return err
	}
	w.poolOut = w.amountIn.Mul(w.in.price.Min).Div(w.out.price.Max)
	w.hop.AmountOut = w.poolOut.Add(reward)
	if err := w.movePool(w.in, w.amountIn.Add(w.fees.pool).Int()); err != nil {
		return err
	}
	return w.movePool(w.out, w.poolOut.Int().Neg())
}

// reward pays a positive impact out of the impact pool of the token out, and what that cannot pay out of that of the
// token in, which is then swapped as well (MarketUtils.applySwapImpactWithCap).
func (w *swapping) reward() chain.Uint {
	paid, unpaidUsd := w.payImpact(w.out, w.hop.PriceImpactUsd.Uint())
	w.hop.PriceImpactAmount = paid.Int()
	if !unpaidUsd.IsZero() {
		more, _ := w.payImpact(w.in, unpaidUsd)
		w.hop.TokenInPriceImpactAmount = more
		w.amountIn = w.amountIn.Add(more)
	}
	return paid
}

// payImpact takes a reward out of the impact pool of a token, as far as it goes, and returns what is left of it in USD.
func (w *swapping) payImpact(p pooled, usd chain.Uint) (amount, unpaidUsd chain.Uint) {
	amount = usd.Int().Uint().Div(p.price.Max)
	pool := w.measure(SwapImpactPoolAmount, p.token, false).Value.Uint()
	if pool.Less(amount) {
		amount, unpaidUsd = pool, amount.Sub(pool).Mul(p.price.Max)
	}
	w.set(SwapImpactPoolAmount, w.market.MarketToken.Hash(), p.token, false, pool.Sub(amount))
	return amount, unpaidUsd
}

// charge takes a negative impact from the token in, rounded up, and puts it into its impact pool.
func (w *swapping) charge() error {
	amount := w.hop.PriceImpactUsd.Abs().DivUp(w.in.price.Min)
	w.hop.PriceImpactAmount = amount.Int().Neg()
	pool := w.measure(SwapImpactPoolAmount, w.in.token, false).Value.Uint()
	w.set(SwapImpactPoolAmount, w.market.MarketToken.Hash(), w.in.token, false, pool.Add(amount))
	if !amount.Less(w.amountIn) {
		return refuse("SwapPriceImpactExceedsAmountIn", w.amountIn, w.hop.PriceImpactAmount)
	}
	w.amountIn = w.amountIn.Sub(amount)
	return nil
}

// movePool is MarketUtils.applyDeltaToPoolAmount: a pool cannot go below zero; a virtual inventory stops there.
func (w *swapping) movePool(p pooled, delta chain.Int) error {
	market := w.market.MarketToken.Hash()
	next := w.measure(PoolAmount, p.token, false).Value.Add(delta)
	if next.Sign() < 0 {
		return refuse("Invalid state, negative poolAmount")
	}
	w.set(PoolAmount, market, p.token, false, next.Uint())
	if w.virtualID == noID {
		return nil
	}
	if next = w.virtual(p.isLong).Int().Add(delta); next.Sign() < 0 {
		next = chain.Int{}
	}
	w.set(VirtualInventoryForSwaps, w.virtualID, noToken, p.isLong, next.Uint())
	return nil
}

// virtual is one side of the virtual inventory that the market shares with others.
func (w *swapping) virtual(isLong bool) chain.Uint {
	v, _ := w.rows.Get(MarketValueKey(VirtualInventoryForSwaps, w.virtualID, noToken, isLong)).(MarketValue)
	return v.Value.Uint()
}

func (w *swapping) set(m Measure, scope chain.Hash, token chain.Address, isLong bool, value chain.Uint) {
	v := MarketValue{Measure: m, Scope: scope, Token: token, IsLong: isLong, Value: value.Int()}
	w.state.changed[v.RowKey()] = v
	w.hop.After = append(w.hop.After, v)
}

// validate is what the venue demands of the market after the swap (MarketUtils.validatePoolAmount, validateReserve,
// validateMaxPnl).
func (w *swapping) validate() error {
	pool, most := w.measure(PoolAmount, w.in.token, false).Value.Uint(),
		w.word(maxPoolAmountKey, w.market.MarketToken.Hash(), w.in.token.Hash())
	if most.Less(pool) {
		return refuse("MaxPoolAmountExceeded", pool, most)
	}
	i := w.interest()
	reserved, most := i.usdOf(false),
		ApplyFactor(w.poolUsd(w.out.isLong, w.prices), w.sided(reserveFactorKey, w.out.isLong))
	if w.out.isLong {
		reserved = i.tokensOf(true).Mul(w.prices.index.Max)
	}
	if most.Less(reserved) {
		return refuse("InsufficientReserve", reserved, most)
	}
	kind := maxPnlFactorWithdrawals
	if w.in.isLong {
		kind = maxPnlFactorDeposits
	}
	if err := w.validatePnl(i, true, kind, "PnlFactorExceededForLongs"); err != nil {
		return err
	}
	kind = maxPnlFactorDeposits
	if !w.out.isLong {
		kind = maxPnlFactorWithdrawals
	}
	return w.validatePnl(i, false, kind, "PnlFactorExceededForShorts")
}

// validatePnl is MarketUtils.isPnlFactorExceeded.
func (w *swapping) validatePnl(i interest, isLong bool, kind chain.Hash, refusal string) error {
	pool := w.poolUsd(isLong, w.prices)
	if pool.IsZero() {
		return nil
	}
	pnl := sidePnl(i, isLong, w.prices.index)
	most := w.word(maxPnlFactorKey, kind, w.market.MarketToken.Hash(), BoolWord(isLong))
	if pnl.Sign() <= 0 {
		return nil
	}
	if factor := toFactor(pnl.Uint(), pool); most.Less(factor) {
		return refuse(refusal, factor, most)
	}
	return nil
}

// UIFeeKey is the key of the parameter by which an account sets its fee on swaps that name it.
func UIFeeKey(account chain.Address) chain.Hash { return argued(uiFeeFactorKey, account.Hash()) }
