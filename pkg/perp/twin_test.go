package perp

import (
	"errors"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
)

// The twin is the written rule in numbers without bounds, as plainly as it can be put. It shares nothing with the code
// it checks but the rows.

func e(digits int64) *big.Int                  { return new(big.Int).Exp(big.NewInt(10), big.NewInt(digits), nil) }
func add(a, b *big.Int) *big.Int               { return new(big.Int).Add(a, b) }
func sub(a, b *big.Int) *big.Int               { return new(big.Int).Sub(a, b) }
func mul(a, b *big.Int) *big.Int               { return new(big.Int).Mul(a, b) }
func quo(a, b *big.Int) *big.Int               { return new(big.Int).Quo(a, b) }
func absDiff(a, b *big.Int) *big.Int           { return new(big.Int).Abs(sub(a, b)) }
func mulDivBig(a, b, d *big.Int) *big.Int      { return quo(mul(a, b), d) }
func factored(a, f *big.Int) *big.Int          { return mulDivBig(a, f, e(30)) }
func ceilDiv(a, b *big.Int) *big.Int           { return quo(add(a, sub(b, big.NewInt(1))), b) }
func smaller(a, b *big.Int) *big.Int           { return map[bool]*big.Int{true: a, false: b}[a.Cmp(b) < 0] }
func greater(a, b *big.Int) *big.Int           { return map[bool]*big.Int{true: a, false: b}[a.Cmp(b) > 0] }
func either[T any](is bool, yes, no T) (one T) { return map[bool]T{true: yes, false: no}[is] }

// twinPow is a power of 30-decimal numbers with the chain's fixed-point algorithm, step by step; nil where the
// algorithm refuses.
func twinPow(value, exponent *big.Int) *big.Int {
	if value.Cmp(e(30)) < 0 {
		return new(big.Int)
	}
	if exponent.Cmp(e(30)) == 0 {
		return value
	}
	x, y := quo(value, e(12)), quo(exponent, e(12))
	whole := uint(quo(x, e(18)).BitLen() - 1)
	log := mul(big.NewInt(int64(whole)), e(18))
	for rest, delta := new(big.Int).Rsh(x, whole), quo(e(18), big.NewInt(2)); delta.Sign() > 0; delta = quo(delta,
		big.NewInt(2)) {
		if rest = quo(mul(rest, rest), e(18)); rest.Cmp(mul(big.NewInt(2), e(18))) >= 0 {
			log, rest = add(log, delta), quo(rest, big.NewInt(2))
		}
	}
	power := quo(add(mul(log, y), quo(e(18), big.NewInt(2))), e(18))
	if power.Cmp(mul(big.NewInt(192), e(18))) >= 0 {
		return nil
	}
	bits := quo(new(big.Int).Lsh(power, 64), e(18))
	result := new(big.Int).Lsh(big.NewInt(1), 191)
	root := new(big.Int).Lsh(big.NewInt(2), 1024) // 2·2^1024, then its square roots with 512 bits after the point
	for bit := 63; bit >= 0; bit-- {
		root = new(big.Int).Sqrt(root) // 512 bits after the point
		if bits.Bit(bit) == 1 {
			factor := new(big.Int).Rsh(add(root, new(big.Int).Lsh(big.NewInt(1), 512-65)), 512-64)
			result = new(big.Int).Rsh(mul(result, factor), 64)
		}
		root = new(big.Int).Lsh(root, 512)
	}
	result = new(big.Int).Rsh(mul(result, e(18)), uint(191-new(big.Int).Rsh(bits, 64).Int64()))
	return mul(result, e(12))
}

type twin struct {
	rows    rowMap
	m       Market
	prices  map[chain.Address]Price
	now     uint64
	version Version
}

func (w twin) word(name string, args ...chain.Hash) *big.Int {
	p, _ := w.rows[RowKey{Parameters, DataStoreKey(name, args...)}].(Parameter)
	return p.Uint().Big()
}

func (w twin) own(name string, args ...chain.Hash) *big.Int {
	return w.word(name, append([]chain.Hash{w.m.MarketToken.Hash()}, args...)...)
}

func (w twin) flag(name string) bool { return w.word(name).Sign() != 0 }

func (w twin) value(m Measure, token chain.Address, isLong bool) *big.Int {
	v, _ := w.rows[MarketValueKey(m, w.m.MarketToken.Hash(), token, isLong)].(MarketValue)
	return v.Value.Big()
}

func (w twin) seconds(m Measure, isLong bool) *big.Int {
	v, known := w.rows[MarketValueKey(m, w.m.MarketToken.Hash(), chain.Address{}, isLong)].(MarketValue)
	if !known {
		return new(big.Int)
	}
	return big.NewInt(int64(w.now - v.Stamp.TimeMs/1000))
}

func (w twin) divisor() *big.Int {
	return big.NewInt(either[int64](w.m.LongToken == w.m.ShortToken, 2, 1))
}

func (w twin) interest(m Measure, isLong bool) (inLong, inShort, sum *big.Int) {
	inLong = quo(w.value(m, w.m.LongToken, isLong), w.divisor())
	inShort = quo(w.value(m, w.m.ShortToken, isLong), w.divisor())
	return inLong, inShort, add(inLong, inShort)
}

func (w twin) oi(isLong bool) *big.Int { _, _, sum := w.interest(OpenInterest, isLong); return sum }

func (w twin) oiTokens(isLong bool) *big.Int {
	_, _, sum := w.interest(OpenInterestInTokens, isLong)
	return sum
}

func (w twin) middle() *big.Int {
	p := w.prices[w.m.IndexToken]
	return quo(add(p.Min.Big(), p.Max.Big()), big.NewInt(2))
}

func (w twin) balance(isLong bool) *big.Int {
	if w.flag("USE_OPEN_INTEREST_IN_TOKENS_FOR_BALANCE") {
		return mul(w.oiTokens(isLong), w.middle())
	}
	return w.oi(isLong)
}

func (w twin) pool(isLong bool) *big.Int {
	token := either(isLong, w.m.LongToken, w.m.ShortToken)
	return mul(quo(w.value(PoolAmount, token, false), w.divisor()), w.prices[token].Min.Big())
}

func (w twin) borrowingFactor(isLong bool) *big.Int {
	return add(w.value(CumulativeBorrowingFactor, chain.Address{}, isLong),
		mul(w.seconds(CumulativeBorrowingFactor, isLong), w.borrowingRate(isLong)))
}

func (w twin) borrowingRate(isLong bool) *big.Int {
	side, index := BoolWord(isLong), w.prices[w.m.IndexToken]
	reserved := either(isLong, mul(w.oiTokens(true), index.Max.Big()), w.oi(false))
	if reserved.Sign() == 0 || w.flag("SKIP_BORROWING_FEE_FOR_SMALLER_SIDE") && w.balance(isLong).
		Cmp(w.balance(!isLong)) < 0 {
		return new(big.Int)
	}
	optimal := w.own("OPTIMAL_USAGE_FACTOR", side)
	if optimal.Sign() == 0 {
		used := mulDivBig(twinPow(reserved, w.own("BORROWING_EXPONENT_FACTOR", side)), e(30), w.pool(isLong))
		return factored(used, w.own("BORROWING_FACTOR", side))
	}
	usage := mulDivBig(reserved, e(30), factored(w.pool(isLong), w.own("OPEN_INTEREST_RESERVE_FACTOR", side)))
	base, above := w.own("BASE_BORROWING_FACTOR", side), w.own("ABOVE_OPTIMAL_USAGE_BORROWING_FACTOR", side)
	rate := factored(usage, base)
	if usage.Cmp(optimal) > 0 && optimal.Cmp(e(30)) < 0 {
		extra := greater(new(big.Int), sub(above, base))
		rate = add(rate, quo(mul(extra, sub(usage, optimal)), sub(e(30), optimal)))
	}
	return rate
}

// cannotFund tells a venue that cannot set its funding factor: it balances tokens, and its open interest has none.
func (w twin) cannotFund() bool {
	empty := w.balance(true).Sign() == 0 && w.balance(false).Sign() == 0
	return w.oi(true).Sign() > 0 && w.oi(false).Sign() > 0 && empty && w.own("FUNDING_INCREASE_FACTOR_PER_SECOND").
		Sign() > 0
}

// fundingRate is the rate, who pays, and the factor to save.
func (w twin) fundingRate(seconds *big.Int) (rate *big.Int, longsPay bool, saved *big.Int) {
	nothing := new(big.Int)
	before := w.value(SavedFundingFactorPerSecond, chain.Address{}, false)
	if w.oi(true).Sign() == 0 || w.oi(false).Sign() == 0 {
		return nothing, false, either(w.version == V22c, before, nothing)
	}
	long, short := w.balance(true), w.balance(false)
	increase := w.own("FUNDING_INCREASE_FACTOR_PER_SECOND")
	bound := func(name string, longsPay bool) *big.Int {
		if w.version == V22c {
			return w.own(name, BoolWord(longsPay))
		}
		return w.own(name)
	}
	gap := absDiff(long, short)
	if gap.Sign() == 0 && increase.Sign() == 0 {
		return nothing, true, nothing
	}
	skew := mulDivBig(twinPow(gap, w.own("FUNDING_EXPONENT_FACTOR")), e(30), add(long, short))
	if increase.Sign() == 0 {
		longsPay = long.Cmp(short) > 0
		most := bound("MAX_FUNDING_FACTOR_PER_SECOND", longsPay)
		return smaller(factored(skew, w.own("FUNDING_FACTOR")), most), longsPay, nothing
	}
	saved = before
	sameWay := saved.Sign() > 0 && long.Cmp(short) > 0 || saved.Sign() < 0 && short.Cmp(long) > 0
	switch {
	case !sameWay || skew.Cmp(w.own("THRESHOLD_FOR_STABLE_FUNDING")) > 0:
		perSecond := factored(skew, increase)
		if floor := w.own("MIN_FUNDING_INCREASE_RATE_PER_SECOND"); w.version == V22c && skew.Sign() > 0 &&
			perSecond.Cmp(floor) < 0 {
			perSecond = floor
		}
		step := mul(perSecond, seconds)
		saved = either(long.Cmp(short) < 0, sub(saved, step), add(saved, step))
	case skew.Cmp(w.own("THRESHOLD_FOR_DECREASE_FUNDING")) < 0:
		left := sub(new(big.Int).Abs(saved), mul(w.own("FUNDING_DECREASE_FACTOR_PER_SECOND"), seconds))
		saved = mul(greater(left, big.NewInt(1)), big.NewInt(int64(saved.Sign())))
	}
	signed := func(magnitude *big.Int) *big.Int {
		return either(saved.Sign() < 0, new(big.Int).Neg(magnitude), magnitude)
	}
	least, most := bound("MIN_FUNDING_FACTOR_PER_SECOND", saved.Sign() >= 0),
		bound("MAX_FUNDING_FACTOR_PER_SECOND", saved.Sign() >= 0)
	magnitude := smaller(new(big.Int).Abs(saved), most)
	bounded := signed(smaller(greater(magnitude, least), most))
	return new(big.Int).Abs(bounded), bounded.Sign() > 0, signed(magnitude)
}

func (w twin) fundingPerSize(collateral chain.Address, isLong bool) *big.Int {
	stored := w.value(FundingFeeAmountPerSize, collateral, isLong)
	seconds := w.seconds(FundingFactorPerSecond, false)
	rate, longsPay, _ := w.fundingRate(seconds)
	if rate.Sign() == 0 || longsPay != isLong {
		return stored
	}
	inLong, inShort, total := w.interest(OpenInterest, isLong)
	usd := quo(factored(total, mul(seconds, rate)), w.divisor())
	for _, part := range []struct {
		token chain.Address
		oi    *big.Int
	}{{w.m.LongToken, inLong}, {w.m.ShortToken, inShort}} {
		share := mulDivBig(usd, part.oi, total)
		if part.token == collateral && share.Sign() > 0 {
			stored = add(stored, ceilDiv(ceilDiv(mul(share, e(45)), part.oi), w.prices[collateral].Max.Big()))
		}
	}
	return stored
}

func (w twin) impactFactors(name string) (positive, negative *big.Int) {
	positive, negative = w.own(name, BoolWord(true)), w.own(name, BoolWord(false))
	return smaller(positive, negative), negative
}

func (w twin) impactBetween(long, short *big.Int, isLong bool, delta *big.Int) (usd *big.Int, improves bool) {
	fPositive, fNegative := w.impactFactors("POSITION_IMPACT_FACTOR")
	ePositive, eNegative := w.impactFactors("POSITION_IMPACT_EXPONENT_FACTOR")
	nextLong := either(isLong, greater(new(big.Int), sub(long, delta)), long)
	nextShort := either(isLong, short, greater(new(big.Int), sub(short, delta)))
	before, after := absDiff(long, short), absDiff(nextLong, nextShort)
	improves = after.Cmp(before) < 0
	if (long.Cmp(short) <= 0) == (nextLong.Cmp(nextShort) <= 0) {
		f, ex := either(improves, fPositive, fNegative), either(improves, ePositive, eNegative)
		gap := absDiff(factored(twinPow(before, ex), f), factored(twinPow(after, ex), f))
		return either(improves, gap, new(big.Int).Neg(gap)), improves
	}
	return sub(factored(twinPow(before, ePositive), fPositive), factored(twinPow(after, eNegative), fNegative)),
		improves
}

func (w twin) impact(p Position) (usd *big.Int, improves bool) {
	inTokens := w.flag("USE_OPEN_INTEREST_IN_TOKENS_FOR_BALANCE")
	delta := either(inTokens, mul(p.SizeInTokens.Big(), w.middle()), p.SizeInUsd.Big())
	usd, improves = w.impactBetween(w.balance(true), w.balance(false), p.IsLong, delta)
	id := w.word("VIRTUAL_TOKEN_ID", w.m.IndexToken.Hash())
	if usd.Sign() >= 0 || id.Sign() == 0 {
		return usd, improves
	}
	which := either(inTokens, VirtualInventoryForPositionsInTokens, VirtualInventoryForPositions)
	v, _ := w.rows[MarketValueKey(which, chain.Hash(id.FillBytes(make([]byte, 32))), chain.Address{},
		false)].(MarketValue)
	inventory := either(inTokens, mul(v.Value.Big(), w.middle()), v.Value.Big())
	zero := new(big.Int)
	long, short := greater(zero, new(big.Int).Neg(inventory)), greater(zero, inventory)
	virtual, improvesVirtual := w.impactBetween(add(long, delta), add(short, delta), p.IsLong, delta)
	if virtual.Cmp(usd) < 0 {
		return virtual, improvesVirtual
	}
	return usd, improves
}

func (w twin) remaining(p Position, discount *big.Int) *big.Int {
	index, col, size := w.prices[w.m.IndexToken], w.prices[p.CollateralToken].Min.Big(), p.SizeInUsd.Big()
	worth := mul(p.SizeInTokens.Big(), either(p.IsLong, index.Min, index.Max).Big())
	pnl := either(p.IsLong, sub(worth, size), sub(size, worth))
	if pnl.Sign() > 0 {
		oi, oiTokens := w.oi(p.IsLong), w.oiTokens(p.IsLong)
		all := either(p.IsLong, sub(mul(oiTokens, index.Max.Big()), oi), sub(oi, mul(oiTokens, index.Min.Big())))
		limit := factored(w.pool(p.IsLong), w.own2("MAX_PNL_FACTOR", "MAX_PNL_FACTOR_FOR_TRADERS", p.IsLong))
		if oi.Sign() > 0 && oiTokens.Sign() > 0 && limit.Sign() > 0 && all.Cmp(limit) > 0 {
			pnl = mulDivBig(pnl, limit, all)
		}
	}
	impact, improves := w.impact(p)
	if impact.Sign() >= 0 {
		most, _ := w.impactFactors("MAX_POSITION_IMPACT_FACTOR")
		impact = smaller(impact, factored(size, most))
	}
	pending := p.PendingImpactAmount.Big()
	impact = add(impact, mul(pending, either(pending.Sign() > 0, index.Min, index.Max).Big()))
	impact = smaller(impact, new(big.Int))
	impact = greater(impact, new(big.Int).Neg(factored(size, w.own("MAX_POSITION_IMPACT_FACTOR_FOR_LIQUIDATIONS"))))

	fee := quo(factored(size, w.own("POSITION_FEE_FACTOR", BoolWord(improves))), col)
	fee = sub(fee, factored(fee, discount))
	fee = add(fee, quo(factored(size, sub(w.borrowingFactor(p.IsLong), p.BorrowingFactor.Big())), col))
	fee = add(fee, ceilDiv(mul(size,
		sub(w.fundingPerSize(p.CollateralToken, p.IsLong), p.FundingFeeAmountPerSize.Big())), e(45)))
	return sub(add(add(mul(p.CollateralAmount.Big(), col), pnl), impact), mul(fee, col))
}

func (w twin) own2(name, kind string, isLong bool) *big.Int {
	return w.word(name, BaseKey(kind), w.m.MarketToken.Hash(), BoolWord(isLong))
}

// drawVenue draws a market with every parameter of the rule, each sometimes absent, and a position in it.
func drawVenue(t *rapid.T) (twin, Position) {
	eth, col := chain.Address{0xe7}, chain.Address{0xdd}
	number := func(label string, lo, hi uint64, digits uint64) chain.Uint {
		return chain.U64(rapid.Uint64Range(lo, hi).Draw(t, label)).Mul(chain.Pow10(digits))
	}
	maybe := func(label string, v chain.Uint) chain.Uint {
		if rapid.IntRange(0, 4).Draw(t, label+"?") == 0 {
			return chain.Uint{}
		}
		return v
	}
	m := Market{MarketToken: market, IndexToken: eth, LongToken: eth, ShortToken: usdc}
	switch rapid.IntRange(0, 3).Draw(t, "kind of market") {
	case 0:
		m.LongToken = col
	case 1:
		m.LongToken = usdc
	}
	const now = 1_800_000_000
	w := twin{rows: rowMap{}, m: m, now: now, prices: map[chain.Address]Price{},
		version: rapid.SampledFrom([]Version{V22b, V22c}).Draw(t, "version")}
	w.rows.put(m, HandlerVersion(chain.Address{}, w.version))
	spread := func(p chain.Uint, label string) Price {
		return Price{Min: p, Max: p.Add(p.Div(chain.U64(rapid.Uint64Range(500, 100_000).Draw(t, label))))}
	}
	w.prices[eth] = spread(number("eth", 1_000_000, 9_000_000, 9), "eth spread")
	w.prices[usdc] = spread(number("usdc", 990_000, 1_010_000, 18), "usdc spread")
	w.prices[col] = spread(number("col", 10_000_000, 90_000_000, 15), "col spread") // 8 decimals
	set := func(v chain.Uint, name string, args ...chain.Hash) {
		w.rows.put(parameter(DataStoreKey(name, args...), maybe(name, v)))
	}
	own := market.Hash()
	exponent := func(label string) chain.Uint {
		return rapid.SampledFrom([]chain.Uint{One, number(label, 1_000, 2_200, 27), chain.U64(2).Mul(One)}).
			Draw(t, label+" of")
	}
	set(number("minimum", 0, 200, 30), "MIN_COLLATERAL_USD")
	set(number("leverage", 0, 40, 27), "MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", own)
	set(number("liquidation impact", 0, 50, 26), "MAX_POSITION_IMPACT_FACTOR_FOR_LIQUIDATIONS", own)
	set(chain.U64(uint64(rapid.IntRange(0, 1).Draw(t, "tokens"))), "USE_OPEN_INTEREST_IN_TOKENS_FOR_BALANCE")
	set(chain.U64(uint64(rapid.IntRange(0, 1).Draw(t, "skip"))), "SKIP_BORROWING_FEE_FOR_SMALLER_SIDE")
	id := chain.Hash{0x1d}
	set(id32(id), "VIRTUAL_TOKEN_ID", eth.Hash())
	set(number("funding", 1, 90, 21), "FUNDING_FACTOR", own)
	set(exponent("funding exponent"), "FUNDING_EXPONENT_FACTOR", own)
	set(number("funding increase", 1, 90, 18), "FUNDING_INCREASE_FACTOR_PER_SECOND", own)
	set(number("funding decrease", 1, 90, 16), "FUNDING_DECREASE_FACTOR_PER_SECOND", own)
	set(number("least funding", 1, 90, 19), "MIN_FUNDING_FACTOR_PER_SECOND", own)
	set(number("most funding", 1, 90, 21), "MAX_FUNDING_FACTOR_PER_SECOND", own)
	for _, isLong := range []bool{false, true} {
		set(number("least funding of a side", 1, 90, 19), "MIN_FUNDING_FACTOR_PER_SECOND", own, BoolWord(isLong))
		set(number("most funding of a side", 1, 90, 21), "MAX_FUNDING_FACTOR_PER_SECOND", own, BoolWord(isLong))
	}
	set(number("least increase", 1, 90, 15), "MIN_FUNDING_INCREASE_RATE_PER_SECOND", own)
	set(number("stable", 1, 500, 27), "THRESHOLD_FOR_STABLE_FUNDING", own)
	set(number("decrease", 1, 300, 27), "THRESHOLD_FOR_DECREASE_FUNDING", own)
	stamped := func(v MarketValue, label string) MarketValue {
		v.Stamp.TimeMs = (now - rapid.Uint64Range(0, 900_000).Draw(t, label)) * 1000
		return v
	}
	put := func(v MarketValue) {
		if rapid.IntRange(0, 9).Draw(t, "known") > 0 {
			w.rows.put(v)
		}
	}
	for _, isLong := range []bool{false, true} {
		side := BoolWord(isLong)
		set(number("fee", 1, 90, 25), "POSITION_FEE_FACTOR", own, side)
		set(number("impact", 1, 90, 18), "POSITION_IMPACT_FACTOR", own, side)
		set(exponent("impact exponent"), "POSITION_IMPACT_EXPONENT_FACTOR", own, side)
		set(number("most impact", 1, 90, 26), "MAX_POSITION_IMPACT_FACTOR", own, side)
		set(number("profits", 1, 100, 27), "MAX_PNL_FACTOR", maxPnlFactorForTraders, own, side)
		set(number("borrowing", 1, 90, 15), "BORROWING_FACTOR", own, side)
		set(exponent("borrowing exponent"), "BORROWING_EXPONENT_FACTOR", own, side)
		if rapid.Bool().Draw(t, "kinked") {
			set(number("optimal", 1, 1_100, 27), "OPTIMAL_USAGE_FACTOR", own, side)
		}
		w.rows.put(parameter(DataStoreKey("OPEN_INTEREST_RESERVE_FACTOR", own, side),
			number("reserve", 100, 1_500, 27)))
		set(number("base", 1, 90, 20), "BASE_BORROWING_FACTOR", own, side)
		set(number("above", 1, 90, 21), "ABOVE_OPTIMAL_USAGE_BORROWING_FACTOR", own, side)
		for _, token := range []chain.Address{m.LongToken, usdc} {
			put(measure(OpenInterest, token, isLong, number("interest", 0, 90_000_000, 27)))
			put(measure(OpenInterestInTokens, token, isLong, number("interest in tokens", 0, 30_000_000, 15)))
			put(measure(FundingFeeAmountPerSize, token, isLong, number("per size", 0, 90_000, 15)))
			w.rows.put(measure(PoolAmount, token, false, number("pool", 1_000, 90_000_000, 9)))
		}
		put(stamped(measure(CumulativeBorrowingFactor, chain.Address{}, isLong, number("borrowed", 0, 90, 26)),
			"borrowed at"))
	}
	put(stamped(measure(FundingFactorPerSecond, chain.Address{}, false, chain.Uint{}), "funded at"))
	signedNumber := func(label string, v chain.Uint) chain.Int {
		return signedBy(v, rapid.Bool().Draw(t, label+" sign"))
	}
	saved := measure(SavedFundingFactorPerSecond, chain.Address{}, false, chain.Uint{})
	saved.Value = signedNumber("saved", number("saved", 0, 90, 21))
	put(saved)
	put(MarketValue{Measure: VirtualInventoryForPositions, Scope: id,
		Value: signedNumber("virtual", number("virtual", 0, 90_000_000, 27))})
	put(MarketValue{Measure: VirtualInventoryForPositionsInTokens, Scope: id,
		Value: signedNumber("virtual tokens", number("virtual tokens", 0, 30_000_000, 15))})
	p := Position{Account: trader, Market: market,
		CollateralToken: rapid.SampledFrom([]chain.Address{m.LongToken, usdc}).Draw(t, "collateral"),
		IsLong:          rapid.Bool().Draw(t, "long"), SizeInUsd: number("size", 1, 20_000_000, 27)}
	p.PendingImpactAmount = signedNumber("pending", number("pending", 0, 1_000, 13))
	p.SizeInTokens = p.SizeInUsd.Div(number("entry", 1_000_000, 9_000_000, 9)).Add(chain.U64(1))
	p.CollateralAmount = p.SizeInUsd.Div(w.prices[p.CollateralToken].Min).
		Div(chain.U64(rapid.Uint64Range(1, 100).Draw(t, "leverage of")))
	p.BorrowingFactor = measureOf(w.rows, CumulativeBorrowingFactor, chain.Address{}, p.IsLong).
		Min(number("factor", 0, 90, 26))
	p.FundingFeeAmountPerSize = measureOf(w.rows, FundingFeeAmountPerSize, p.CollateralToken, p.IsLong).
		Min(number("paid per size", 0, 90_000, 15))
	return w, p
}

func measureOf(rows rowMap, m Measure, token chain.Address, isLong bool) chain.Uint {
	v, _ := rows[MarketValueKey(m, market.Hash(), token, isLong)].(MarketValue)
	return v.Value.Uint()
}

// LIQ-5: the verdict is the written rule's, to the last digit, and the quick look of a pass never says safe where it is
// not.
func TestJudgeAgainstTheTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := drawVenue(t)
		pro := chain.U64(rapid.Uint64Range(0, 400).Draw(t, "pro")).Mul(chain.Pow10(27))
		w.rows.put(parameter(DataStoreKey("PRO_TRADER_TIER", trader.Hash()),
			chain.U64(uint64(rapid.IntRange(0, 1).Draw(t, "tier")))),
			parameter(DataStoreKey("PRO_DISCOUNT_FACTOR", chain.Hash{31: 1}), pro),
			parameter(DataStoreKey("PRO_DISCOUNT_FACTOR", chain.Hash{}), One))
		c := Circumstances{Rows: w.rows, Prices: w.prices, Time: w.now,
			FireRatio: chain.U64(rapid.Uint64Range(90, 120).Draw(t, "fire")).Mul(chain.Pow10(28))}
		view := NewView(c)
		got, err := view.Judge(p)
		if w.cannotFund() {
			if !errors.Is(err, chain.ErrArithmetic) {
				t.Fatalf("judged %+v (%v) where the venue reverts", got, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		discount := new(big.Int)
		if w.word("PRO_TRADER_TIER", trader.Hash()).Sign() > 0 {
			discount = pro.Big()
		}
		remaining := w.remaining(p, discount)
		leverage := factored(p.SizeInUsd.Big(), w.own("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION"))
		required := greater(leverage, w.word("MIN_COLLATERAL_USD"))
		liquidatable := remaining.Sign() <= 0 ||
			remaining.Cmp(greater(required, factored(required, c.FireRatio.Big()))) < 0
		if got.RemainingCollateralUsd.Big().Cmp(remaining) != 0 || got.MinCollateralUsdForLeverage.Big().
			Cmp(leverage) != 0 || got.Liquidatable != liquidatable {
			t.Fatalf("got %+v\nwant remaining %v, leverage %v, liquidatable %v", got, remaining, leverage, liquidatable)
		}
		parts := got.CollateralUsd.Int().Add(got.PnlUsd).Add(got.ImpactUsd).Sub(got.FeesUsd.Int())
		if parts != got.RemainingCollateralUsd {
			t.Fatalf("the parts of %+v add up to %s", got, parts)
		}
		terms, err := view.Terms(market)
		if err != nil {
			t.Fatal(err)
		}
		borrowed, _ := terms.Borrowing(p.IsLong)
		funded, _ := terms.Funding(p.IsLong, p.CollateralToken)
		if want := w.fundingPerSize(p.CollateralToken, p.IsLong); funded.Big().Cmp(want) != 0 || borrowed.Big().
			Cmp(w.borrowingFactor(p.IsLong)) != 0 {
			t.Fatalf("accrued to %s and %s, want %s and %s", borrowed, funded, w.borrowingFactor(p.IsLong), want)
		}
		quick, found, err := view.Liquidatable(p)
		if err != nil || found != liquidatable || found && quick != got {
			t.Fatalf("the quick look says %v, %+v (%v), the rule %v, %+v", found, quick, err, liquidatable, got)
		}
	})
}

// The saved funding factor after a Funding event is the twin's next one, whatever the event shows, as long as that is
// true.
func TestFundingFoldAgainstTheTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, _ := drawVenue(t)
		if w.flag("USE_OPEN_INTEREST_IN_TOKENS_FOR_BALANCE") {
			// Only a funding exponent of one can be folded without a price, and only while the sides are a dollar apart
			// at any price.
			w.rows.put(parameter(DataStoreKey("FUNDING_EXPONENT_FACTOR", market.Hash()), One))
			gap, all := absDiff(w.oiTokens(true), w.oiTokens(false)), add(w.oiTokens(true), w.oiTokens(false))
			if all.Sign() == 0 || mul(gap, smaller(w.middle(), quo(add(w.oi(true), w.oi(false)), all))).Cmp(e(30)) < 0 {
				t.Skip("balanced, or dust")
			}
		}
		seconds := w.seconds(FundingFactorPerSecond, false)
		rate, _, saved := w.fundingRate(seconds)
		if w.version == V22c && (w.oi(true).Sign() == 0 || w.oi(false).Sign() == 0) {
			rate = new(big.Int).Abs(saved) // what the event shows of a market with an empty side
		}
		shown, err := chain.UintFromBig(rate)
		if err != nil {
			t.Fatal(err)
		}
		event := measure(FundingFactorPerSecond, chain.Address{}, false, shown)
		event.Stamp.TimeMs = w.now * 1000
		got, known := foldedFunding(w.rows, event, w.version)
		if !known || got.Value.Big().Cmp(saved) != 0 {
			t.Fatalf("folded %s, want %s (%v)", got.Value, saved, known)
		}
	})
}

// A position one unit of collateral short of what the venue asks for is never called safe.
func TestSafeNeverErrs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := drawVenue(t)
		c := Circumstances{Rows: w.rows, Prices: w.prices, Time: w.now,
			FireRatio: chain.U64(rapid.Uint64Range(100, 120).Draw(t, "fire")).Mul(chain.Pow10(28))}
		terms, err := NewView(c).Terms(market)
		if err != nil {
			t.Skip(err)
		}
		p.CollateralAmount = p.SizeInUsd // more than anything may take
		rich, err := terms.judge(p, chain.Uint{})
		if err != nil {
			t.Fatal(err)
		}
		own, err := terms.pledge(p.CollateralToken)
		if err != nil {
			t.Fatal(err)
		}
		threshold := ApplyFactor(rich.required(), c.FireRatio)
		less := rich.RemainingCollateralUsd.Uint().Sub(threshold).Div(own.price.Min).Add(chain.U64(1))
		if p.CollateralAmount.Less(less) {
			t.Skip("its profit is enough")
		}
		p.CollateralAmount = p.CollateralAmount.Sub(less)
		short, err := terms.judge(p, chain.Uint{})
		if err != nil || !short.Liquidatable {
			t.Fatalf("%s remain of %s: %+v, %v", short.RemainingCollateralUsd, threshold, short, err)
		}
		if terms.safe(&p) {
			t.Fatalf("called safe: %+v", short)
		}
	})
}
