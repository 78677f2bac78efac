package perp

import (
	"errors"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
)

// swapTwin is the written rule of swaps in numbers without bounds. It keeps what the hops leave in a map of its own.
type swapTwin struct {
	twin
	left map[RowKey]*big.Int
}

func (w *swapTwin) read(m Measure, scope chain.Hash, token chain.Address, isLong bool) *big.Int {
	key := MarketValueKey(m, scope, token, isLong)
	if v, changed := w.left[key]; changed {
		return v
	}
	v, _ := w.rows[key].(MarketValue)
	return v.Value.Big()
}

func (w *swapTwin) poolOf(token chain.Address) *big.Int {
	return w.read(PoolAmount, w.m.MarketToken.Hash(), token, false)
}

func (w *swapTwin) write(v *big.Int, m Measure, scope chain.Hash, token chain.Address, isLong bool) {
	w.left[MarketValueKey(m, scope, token, isLong)] = v
}

func (w *swapTwin) gap(in, out, delta *big.Int) (usd *big.Int, improves, refused bool) {
	if delta.Cmp(out) > 0 {
		return nil, false, true
	}
	charge, exponent := w.own("SWAP_IMPACT_FACTOR", BoolWord(false)), w.own("SWAP_IMPACT_EXPONENT_FACTOR")
	reward := smaller(w.own("SWAP_IMPACT_FACTOR", BoolWord(true)), charge)
	nextIn, nextOut := add(in, delta), sub(out, delta)
	before, after := absDiff(in, out), absDiff(nextIn, nextOut)
	improves = after.Cmp(before) < 0
	at := func(d, f *big.Int) *big.Int { return factored(twinPow(d, exponent), f) }
	if (in.Cmp(out) <= 0) != (nextIn.Cmp(nextOut) <= 0) {
		return sub(at(before, reward), at(after, charge)), improves, false
	}
	f := either(improves, reward, charge)
	d := absDiff(at(before, f), at(after, f))
	return either(improves, d, new(big.Int).Neg(d)), improves, false
}

// hop returns what comes out, or the name of the refusal.
func (w *swapTwin) hop(s Swap, tokenIn chain.Address, amount *big.Int) (tokenOut chain.Address, out *big.Int,
	refusal string) {
	market := w.m.MarketToken.Hash()
	inIsLong := tokenIn == w.m.LongToken
	if !inIsLong && tokenIn != w.m.ShortToken {
		return tokenOut, nil, "InvalidTokenIn"
	}
	tokenOut = either(inIsLong, w.m.ShortToken, w.m.LongToken)
	in, to := w.prices[tokenIn], w.prices[tokenOut]
	two := big.NewInt(2)
	midIn, midOut := quo(add(in.Min.Big(), in.Max.Big()), two), quo(add(to.Min.Big(), to.Max.Big()), two)
	delta := mul(amount, midIn)
	impact, improves, refused := w.gap(mul(w.poolOf(tokenIn), midIn), mul(w.poolOf(tokenOut), midOut), delta)
	if refused {
		return tokenOut, nil, "UsdDeltaExceedsPoolValue"
	}
	id := w.own("VIRTUAL_MARKET_ID")
	scope := chain.Hash(id.FillBytes(make([]byte, 32)))
	inventory := func(isLong bool) *big.Int {
		return w.read(VirtualInventoryForSwaps, scope, chain.Address{}, isLong)
	}
	if id.Sign() > 0 && impact.Sign() < 0 {
		other, otherImproves, refused := w.gap(mul(inventory(inIsLong), midIn), mul(inventory(!inIsLong), midOut),
			delta)
		switch {
		case refused:
			return tokenOut, nil, "UsdDeltaExceedsPoolValue"
		case other.Cmp(impact) < 0:
			impact, improves = other, otherImproves
		}
	}
	fee := factored(amount, w.own("SWAP_FEE_FACTOR", BoolWord(improves)))
	toReceiver := factored(fee, w.word("SWAP_FEE_RECEIVER_FACTOR"))
	ui := factored(amount, smaller(w.word("UI_FEE_FACTOR", s.UIFeeReceiver.Hash()), w.word("MAX_UI_FEE_FACTOR")))
	rest := sub(sub(amount, fee), ui)
	if rest.Sign() < 0 {
		return tokenOut, nil, Panic
	}
	reward := new(big.Int)
	pay := func(token chain.Address, usd *big.Int) (paid, unpaid *big.Int) {
		price, has := w.prices[token].Max.Big(), w.read(SwapImpactPoolAmount, market, token, false)
		wanted := quo(usd, price)
		paid = smaller(wanted, has)
		w.write(sub(has, paid), SwapImpactPoolAmount, market, token, false)
		return paid, mul(sub(wanted, paid), price)
	}
	if impact.Sign() > 0 {
		var unpaid *big.Int
		if reward, unpaid = pay(tokenOut, impact); unpaid.Sign() > 0 {
			more, _ := pay(tokenIn, unpaid)
			rest = add(rest, more)
		}
	} else {
		charged := ceilDiv(new(big.Int).Neg(impact), in.Min.Big())
		w.write(add(w.read(SwapImpactPoolAmount, market, tokenIn, false), charged), SwapImpactPoolAmount, market,
			tokenIn, false)
		if rest.Cmp(charged) <= 0 {
			return tokenOut, nil, "SwapPriceImpactExceedsAmountIn"
		}
		rest = sub(rest, charged)
	}
	fromPool := quo(mul(rest, in.Min.Big()), to.Max.Big())
	for _, move := range []struct {
		token chain.Address
		by    *big.Int
	}{{tokenIn, add(rest, sub(fee, toReceiver))}, {tokenOut, new(big.Int).Neg(fromPool)}} {
		next := add(w.poolOf(move.token), move.by)
		if next.Sign() < 0 {
			return tokenOut, nil, "Invalid state, negative poolAmount"
		}
		w.write(next, PoolAmount, market, move.token, false)
		if id.Sign() > 0 {
			isLong := move.token == w.m.LongToken
			w.write(greater(new(big.Int), add(inventory(isLong), move.by)), VirtualInventoryForSwaps, scope,
				chain.Address{}, isLong)
		}
	}
	return tokenOut, add(fromPool, reward), w.objection(tokenIn, inIsLong)
}

func (w *swapTwin) objection(tokenIn chain.Address, inIsLong bool) string {
	market, index := w.m.MarketToken.Hash(), w.prices[w.m.IndexToken]
	if w.poolOf(tokenIn).Cmp(w.word("MAX_POOL_AMOUNT", market, tokenIn.Hash())) > 0 {
		return "MaxPoolAmountExceeded"
	}
	worth := func(isLong bool) *big.Int {
		token := either(isLong, w.m.LongToken, w.m.ShortToken)
		return mul(w.poolOf(token), w.prices[token].Min.Big())
	}
	reserved := either(inIsLong, w.oi(false), mul(w.oiTokens(true), index.Max.Big()))
	if reserved.Cmp(factored(worth(!inIsLong), w.own("RESERVE_FACTOR", BoolWord(!inIsLong)))) > 0 {
		return "InsufficientReserve"
	}
	for _, isLong := range []bool{true, false} {
		usd, tokens := w.oi(isLong), w.oiTokens(isLong)
		gain := either(isLong, sub(mul(tokens, index.Max.Big()), usd), sub(usd, mul(tokens, index.Min.Big())))
		if usd.Sign() == 0 || tokens.Sign() == 0 || gain.Sign() <= 0 || worth(isLong).Sign() == 0 {
			continue
		}
		// What comes in is a deposit of its side, what goes out a withdrawal from its side.
		kind := either(isLong == inIsLong, "MAX_PNL_FACTOR_FOR_DEPOSITS", "MAX_PNL_FACTOR_FOR_WITHDRAWALS")
		if mulDivBig(gain, e(30), worth(isLong)).Cmp(w.own2("MAX_PNL_FACTOR", kind, isLong)) > 0 {
			return either(isLong, "PnlFactorExceededForLongs", "PnlFactorExceededForShorts")
		}
	}
	return ""
}

var (
	swapEth, swapUsd, swapBtc = chain.Address{0xe7}, chain.Address{0xdd}, chain.Address{0xbc}
	swapReceiver              = chain.Address{0x0f}
)

// drawSwap draws three markets over three tokens, two of which may share a virtual inventory, and a swap along some of
// them.
func drawSwap(t *rapid.T) (rows rowMap, prices map[chain.Address]Price, s Swap) {
	rows, prices = rowMap{}, map[chain.Address]Price{}
	number := func(label string, lo, hi, digits uint64) chain.Uint {
		return chain.U64(rapid.Uint64Range(lo, hi).Draw(t, label)).Mul(chain.Pow10(digits))
	}
	set := func(v chain.Uint, name string, args ...chain.Hash) {
		rows.put(parameter(DataStoreKey(name, args...), v))
	}
	rarely := func(label string) bool { return rapid.IntRange(0, 19).Draw(t, label) == 0 }
	for _, c := range []struct {
		token         chain.Address
		usd, decimals uint64
	}{{swapEth, 5_000, 18}, {swapUsd, 1, 6}, {swapBtc, 100_000, 8}} {
		low := dollars(c.usd, c.decimals).Div(chain.U64(1_000_000)).Mul(number("price", 900_000, 1_100_000, 0))
		prices[c.token] = Price{Min: low, Max: low.Add(low.MulDiv(number("spread", 0, 1_000, 0), chain.U64(1_000_000)))}
	}
	set(number("receiver", 0, 100, 28), "SWAP_FEE_RECEIVER_FACTOR")
	set(number("max ui", 0, 10, 26), "MAX_UI_FEE_FACTOR")
	set(number("ui", 0, 20, 26), "UI_FEE_FACTOR", swapReceiver.Hash())
	amount := map[chain.Address]func(string) chain.Uint{
		swapEth: func(l string) chain.Uint { return number(l, 0, 2_000_000, 15) },
		swapUsd: func(l string) chain.Uint { return number(l, 0, 10_000_000, 6) },
		swapBtc: func(l string) chain.Uint { return number(l, 0, 100_000, 5) },
	}
	var path []chain.Address
	for n, m := range []Market{
		{IndexToken: swapEth, LongToken: swapEth, ShortToken: swapUsd}, {LongToken: swapEth, ShortToken: swapUsd},
		{IndexToken: swapBtc, LongToken: swapBtc, ShortToken: swapUsd},
		{IndexToken: swapEth, LongToken: swapBtc, ShortToken: swapEth},
	} {
		m.MarketToken = chain.Address{0xa0, byte(n)}
		own := m.MarketToken.Hash()
		path = append(path, m.MarketToken)
		rows.put(m)
		if rapid.Bool().Draw(t, "virtual") {
			id := chain.Hash{0x1d, byte(n / 2)}
			set(id32(id), "VIRTUAL_MARKET_ID", own)
			for _, token := range []chain.Address{m.LongToken, m.ShortToken} {
				isLong := token == m.LongToken
				rows.put(MarketValue{Measure: VirtualInventoryForSwaps, Scope: id, IsLong: isLong,
					Value: amount[token]("virtual amount").Int()})
			}
		}
		if rarely("disabled") {
			set(chain.U64(1), "IS_MARKET_DISABLED", own)
		}
		set(number("exponent", 9, 25, 29), "SWAP_IMPACT_EXPONENT_FACTOR", own)
		for _, is := range []bool{true, false} {
			set(number("fee", 0, 20, 26), "SWAP_FEE_FACTOR", own, BoolWord(is))
			set(number("impact", 0, 300, 19), "SWAP_IMPACT_FACTOR", own, BoolWord(is))
			set(number("reserve", 10, 100, 28), "RESERVE_FACTOR", own, BoolWord(is))
			for _, kind := range []string{"MAX_PNL_FACTOR_FOR_DEPOSITS", "MAX_PNL_FACTOR_FOR_WITHDRAWALS"} {
				set(number("pnl", 1, 90, 28), "MAX_PNL_FACTOR", BaseKey(kind), own, BoolWord(is))
			}
		}
		for _, token := range []chain.Address{m.LongToken, m.ShortToken} {
			value := func(measure Measure, isLong bool, v chain.Uint) {
				rows.put(MarketValue{Measure: measure, Scope: own, Token: token, IsLong: isLong, Value: v.Int()})
			}
			value(PoolAmount, false, amount[token]("pool"))
			value(SwapImpactPoolAmount, false, amount[token]("impact pool").Div(chain.U64(1_000)))
			most := amount[token]("most").Mul(chain.U64(20))
			set(most, "MAX_POOL_AMOUNT", own, token.Hash())
			for _, is := range []bool{true, false} {
				if !m.IndexToken.IsZero() {
					value(OpenInterest, is, number("interest", 0, 400_000, 30))
					value(OpenInterestInTokens, is, amount[m.IndexToken]("interest in tokens").Div(chain.U64(20)))
				}
			}
		}
	}
	s = Swap{TokenIn: rapid.SampledFrom([]chain.Address{swapEth, swapUsd, swapBtc}).Draw(t, "in"),
		UIFeeReceiver: swapReceiver}
	s.AmountIn = amount[s.TokenIn]("amount").
		Div(chain.U64(rapid.SampledFrom([]uint64{1, 10, 1_000, 1_000_000}).Draw(t, "part")))
	token := s.TokenIn
	for range rapid.IntRange(0, 3).Draw(t, "hops") {
		n := rapid.IntRange(0, len(path)-1).Draw(t, "market")
		for try := range path { // one of the markets that hold the token, but for now and then
			m := rows[RowKey{Markets, path[(n+try)%len(path)].Hash()}].(Market)
			if m.LongToken == token || m.ShortToken == token || rarely("stray") {
				s.Path = append(s.Path, m.MarketToken)
				token = either(m.LongToken == token, m.ShortToken, m.LongToken)
				break
			}
		}
	}
	return rows, prices, s
}

// twinSwap is the whole path.
func twinSwap(rows rowMap, prices map[chain.Address]Price, s Swap) (out *big.Int, left map[RowKey]*big.Int,
	refusal string) {
	left = map[RowKey]*big.Int{}
	for _, token := range s.Path {
		if (twin{rows: rows}).word("IS_MARKET_DISABLED", token.Hash()).Sign() > 0 {
			return nil, nil, "DisabledMarket"
		}
	}
	token, out, been := s.TokenIn, s.AmountIn.Big(), map[chain.Address]bool{}
	if out.Sign() == 0 {
		return out, left, ""
	}
	for _, market := range s.Path {
		if been[market] {
			return nil, nil, "DuplicatedMarketInSwapPath"
		}
		been[market] = true
		w := swapTwin{twin{rows: rows, m: rows[RowKey{Markets, market.Hash()}].(Market), prices: prices}, left}
		if token, out, refusal = w.hop(s, token, out); refusal != "" {
			return nil, nil, refusal
		}
	}
	if out.Cmp(s.MinOutput.Big()) < 0 {
		return nil, nil, either(len(s.Path) == 0, "InsufficientOutputAmount", "InsufficientSwapOutputAmount")
	}
	return out, left, ""
}

// The venue's whole swap rule is the written one, to the last unit: what comes out, what is left of every pool, or by
// what name it is refused.
func TestSwapAgainstTheTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, prices, s := drawSwap(t)
		out, left, refusal := twinSwap(rows, prices, s)
		if refusal == "" && rapid.Bool().Draw(t, "asks for more") {
			s.MinOutput, _ = chain.UintFromBig(add(out, big.NewInt(1)))
			out, left, refusal = twinSwap(rows, prices, s)
		}
		done, err := s.Execute(rows, prices)
		said, refused := errors.AsType[Refusal](err)
		switch {
		case said.Name != refusal || refused != (err != nil):
			t.Fatalf("refused by %v, want %q", err, refusal)
		case refused:
			return
		case done.AmountOut.Big().Cmp(out) != 0:
			t.Fatalf("%s comes out, want %s", done.AmountOut, out)
		}
		for _, hop := range done.Hops {
			for _, v := range hop.After {
				if _, known := left[v.RowKey()]; !known {
					t.Fatalf("%s of %s is changed", v.Measure, v.Token)
				}
			}
		}
		after := map[RowKey]MarketValue{}
		for _, hop := range done.Hops {
			for _, v := range hop.After {
				after[v.RowKey()] = v
			}
		}
		for key, want := range left {
			if after[key].Value.Big().Cmp(want) != 0 {
				t.Fatalf("%s of %s is left at %s, want %s", after[key].Measure, after[key].Token, after[key].Value,
					want)
			}
		}
	})
}
