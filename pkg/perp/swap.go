package perp

import (
	"strings"

	"perpkeeper/pkg/chain"
)

// Swap is what a request or an order has swapped: an amount of one token along a path of markets, each of which gives
// its other token for it.
type Swap struct {
	Path     []chain.Address // market tokens
	TokenIn  chain.Address
	AmountIn chain.Uint
	// MinOutput is the least that may come out, in units of the last token.
	MinOutput     chain.Uint
	UIFeeReceiver chain.Address
	// Atomic is the swap of an atomic withdrawal, which has a fee of its own.
	Atomic bool
}

// Swapped is a swap as the venue would execute it.
type Swapped struct {
	TokenOut  chain.Address
	AmountOut chain.Uint
	Hops      []SwapHop
}

// SwapHop is what the swap in one market does: the items of SwapInfo and SwapFeesCollected, and what it leaves behind.
type SwapHop struct {
	Market, TokenIn, TokenOut chain.Address
	AmountIn                  chain.Uint
	AmountInAfterFees         chain.Uint // before what a charge for the impact takes from it
	AmountOut                 chain.Uint
	PriceImpactUsd            chain.Int // before the impact pools cut it
	PriceImpactAmount         chain.Int // of the token out where it is a reward, of the token in where it is a charge
	TokenInPriceImpactAmount  chain.Uint
	FeeReceiverAmount         chain.Uint
	FeeAmountForPool          chain.Uint
	UIFeeAmount               chain.Uint
	// After lists the measures the hop changes, as it leaves them: the market's pools and impact pools, and its virtual
	// inventory.
	After []MarketValue
}

// Refusal is why the venue would not execute something, by the name of the contracts' own error.
type Refusal struct { //nolint:errname // the field's word; it is read as a value more than it is returned
	Name string
	Args []string // numbers and addresses, as the error carries them
}

// Error implements error.
func (r Refusal) Error() string { return r.Name + "(" + strings.Join(r.Args, ", ") + ")" }

// Panic is the name of a refusal by the contracts' arithmetic: it overflows, divides by zero, or goes below zero.
const Panic = "Panic"

type text interface{ String() string }

func refuse(name string, args ...text) error {
	r := Refusal{Name: name}
	for _, a := range args {
		r.Args = append(r.Args, a.String())
	}
	return r
}

// Execute applies the venue's whole swap rule in its own integers (SwapUtils.swap, after
// MarketUtils.getSwapPathMarkets). It changes no row: each hop sees what those before it have left, as markets on one
// path may share a virtual inventory. The error is a [Refusal].
//
// It does not know what is outside the rows: whether the feature is switched on at the handler, and whether tokens can
// be transferred.
func (s Swap) Execute(rows Rows, prices map[chain.Address]Price) (done Swapped, err error) {
	if overflow := chain.Checked(func() { done, err = s.execute(rows, prices) }); overflow != nil {
		err = refuse(Panic)
	}
	if err != nil {
		return Swapped{}, err
	}
	return done, nil
}

func (s Swap) execute(rows Rows, prices map[chain.Address]Price) (Swapped, error) {
	markets, err := swapMarkets(rows, s.Path)
	if err != nil {
		return Swapped{}, err
	}
	done := Swapped{TokenOut: s.TokenIn, AmountOut: s.AmountIn}
	if s.AmountIn.IsZero() {
		return done, nil
	}
	if len(markets) == 0 && s.AmountIn.Less(s.MinOutput) {
		return Swapped{}, refuse("InsufficientOutputAmount", s.AmountIn, s.MinOutput)
	}
	v, been := &scratch{rows: rows, changed: map[RowKey]MarketValue{}}, map[chain.Address]bool{}
	for _, m := range markets {
		if been[m.MarketToken] {
			return Swapped{}, refuse("DuplicatedMarketInSwapPath", m.MarketToken)
		}
		been[m.MarketToken] = true
		hop, err := s.hop(v, m, prices, done.TokenOut, done.AmountOut)
		if err != nil {
			return Swapped{}, err
		}
		done.Hops = append(done.Hops, hop)
		done.TokenOut, done.AmountOut = hop.TokenOut, hop.AmountOut
	}
	if done.AmountOut.Less(s.MinOutput) {
		return Swapped{}, refuse("InsufficientSwapOutputAmount", done.AmountOut, s.MinOutput)
	}
	return done, nil
}

// swapMarkets looks a path's markets up and refuses those that cannot swap (MarketUtils.validateSwapMarket), all of
// them before the first hop.
func swapMarkets(rows Rows, path []chain.Address) ([]Market, error) {
	markets := make([]Market, 0, len(path))
	for _, token := range path {
		m, known := rows.Get(RowKey{Markets, token.Hash()}).(Market)
		l := ledger{rows: rows, market: m}
		switch {
		case !known:
			return nil, refuse("EmptyMarket")
		case !l.term(marketDisabledKey).IsZero():
			return nil, refuse("DisabledMarket", token)
		case m.LongToken == m.ShortToken:
			return nil, refuse("InvalidSwapMarket", token)
		}
		markets = append(markets, m)
	}
	return markets, nil
}

// scratch is rows with measures changed on top of them, for nobody else to see.
type scratch struct {
	rows    Rows
	changed map[RowKey]MarketValue
}

// Get implements [Rows].
func (v *scratch) Get(k RowKey) Row {
	if value, changed := v.changed[k]; changed {
		return value
	}
	return v.rows.Get(k)
}

// Disabled reports whether the venue executes nothing in a market at present (IS_MARKET_DISABLED).
func Disabled(rows Rows, market chain.Address) bool {
	return !ledger{rows: rows}.word(marketDisabledKey, market.Hash()).IsZero()
}

// DisabledKey is the key of the parameter that says so: it is zero, or missing, while the market is open.
func DisabledKey(market chain.Address) chain.Hash {
	return DataStoreKey("IS_MARKET_DISABLED", market.Hash())
}

// SwapTerms is what bounds a swap of one token in a market: the pool's two amounts, the lowest fee, and by how much a
// swap that balances the pool may be rewarded: what its imbalance in USD, raised to Exponent, comes to times Reward.
// Factors have 30 decimals.
type SwapTerms struct {
	TokenOut         chain.Address
	PoolIn, PoolOut  chain.Uint
	LeastFee         chain.Uint
	Reward, Exponent chain.Uint
}

// SwapTermsOf reads the terms of a market. There are none where it is unknown, has no such token, or only one.
func SwapTermsOf(rows Rows, market, tokenIn chain.Address) (t SwapTerms, known bool) {
	m, known := rows.Get(RowKey{Markets, market.Hash()}).(Market)
	if !known || m.LongToken == m.ShortToken || tokenIn != m.LongToken && tokenIn != m.ShortToken {
		return t, false
	}
	l := ledger{rows: rows, market: m}
	c := l.swapCurve()
	t = SwapTerms{
		TokenOut: m.LongToken, LeastFee: l.sided(swapFeeFactorKey, true).Min(l.sided(swapFeeFactorKey, false)),
		Reward: c.factor[1], Exponent: c.exponent,
	}
	if tokenIn == m.LongToken {
		t.TokenOut = m.ShortToken
	}
	t.PoolIn, t.PoolOut = l.measure(PoolAmount, tokenIn, false).Value.Uint(), l.measure(PoolAmount, t.TokenOut, false).
		Value.Uint()
	return t, true
}
