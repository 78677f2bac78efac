package liquidation

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// venue is a random exchange of three markets: one whose index token is also its long token, one backed by a foreign
// token, one of a single token.
type venue struct {
	book      *perp.Book
	prices    map[chain.Address]perp.Price
	positions map[chain.Hash]perp.Position
	time      uint64
	block     uint64
}

var (
	doge    = chain.Address{5}
	other   = perp.Market{MarketToken: chain.Address{6}, IndexToken: doge, LongToken: eth, ShortToken: usdc}
	single  = perp.Market{MarketToken: chain.Address{7}, IndexToken: eth, LongToken: eth, ShortToken: eth}
	markets = []perp.Market{market, other, single}
	sides   = []bool{false, true}
)

const second = 1_700_000_000

func drawVenue(t *rapid.T) *venue {
	v := &venue{book: perp.NewBook(), prices: map[chain.Address]perp.Price{}, positions: map[chain.Hash]perp.Position{},
		time: second}
	v.begin(t)
	v.price(eth, 4000e12, 1)
	v.price(usdc, 1e24, 1)
	v.price(doge, 2e21, 1) // $0.2 with 8 decimals
	v.set("MIN_COLLATERAL_USD", chain.Pow10(30))
	for _, m := range markets {
		v.book.Put(m)
		v.drawParameters(t, m)
		v.drawInterest(t, m)
	}
	return v
}

func (v *venue) begin(t *rapid.T) {
	v.block++
	if err := v.book.Begin(v.block); err != nil {
		t.Fatal(err)
	}
}

func (v *venue) set(name string, value chain.Uint, args ...chain.Hash) {
	v.book.Put(perp.Parameter{Key: perp.DataStoreKey(name, args...), Value: value.Bytes32()})
}

// price sets a price with a spread of so many hundredths of a percent.
func (v *venue) price(token chain.Address, price float64, spread uint64) {
	middle := uintOf(price)
	half := middle.Mul(chain.U64(spread)).Div(chain.U64(20_000))
	v.prices[token] = perp.Price{Min: middle.Sub(half), Max: middle.Add(half)}
}

func uintOf(f float64) chain.Uint {
	const exact = 1e15
	e := 0
	for f >= exact {
		f, e = f/10, e+1
	}
	return chain.U64(uint64(f)).Mul(chain.Pow10(uint64(e)))
}

// factor draws a 30-decimal factor of so many billionths at most.
func factor(t *rapid.T, name string, most uint64) chain.Uint {
	return chain.U64(rapid.Uint64Range(0, most).Draw(t, name)).Mul(chain.Pow10(21))
}

func (v *venue) drawParameters(t *rapid.T, m perp.Market) {
	key := m.MarketToken.Hash()
	v.set("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", factor(t, "min collateral", 20_000_000), key)
	v.set("MAX_POSITION_IMPACT_FACTOR_FOR_LIQUIDATIONS", factor(t, "max impact", 5_000_000), key)
	v.set("FUNDING_FACTOR", factor(t, "funding", 20_000), key)
	v.set("FUNDING_EXPONENT_FACTOR", perp.One, key)
	v.set("MAX_FUNDING_FACTOR_PER_SECOND", factor(t, "max funding", 20_000), key)
	for _, is := range sides {
		v.set("POSITION_FEE_FACTOR", factor(t, "fee", 1_000_000), key, perp.BoolWord(is))
		impact := chain.U64(rapid.Uint64Range(0, 1_000_000).Draw(t, "impact"))
		v.set("POSITION_IMPACT_FACTOR", impact.Mul(chain.Pow10(16)), key, perp.BoolWord(is))
		v.set("POSITION_IMPACT_EXPONENT_FACTOR", chain.U64(2).Mul(perp.One), key, perp.BoolWord(is))
		v.set("BORROWING_FACTOR", factor(t, "borrowing", 20_000), key, perp.BoolWord(is))
		v.set("BORROWING_EXPONENT_FACTOR", perp.One, key, perp.BoolWord(is))
	}
}

// drawInterest puts new open interest, pools and accruals, as a trade of somebody else does.
func (v *venue) drawInterest(t *rapid.T, m perp.Market) {
	scope, stamp := m.MarketToken.Hash(), perp.Stamp{Block: v.block, TimeMs: v.time * 1000}
	put := func(measure perp.Measure, token chain.Address, isLong bool, value chain.Uint) {
		v.book.Put(perp.MarketValue{Measure: measure, Scope: scope, Token: token, IsLong: isLong, Value: value.Int(),
			Stamp: stamp})
	}
	for _, token := range []chain.Address{m.LongToken, m.ShortToken} {
		usd := rapid.Uint64Range(1_000_000, 50_000_000).Draw(t, "pool")
		put(perp.PoolAmount, token, false, chain.U64(usd).Mul(perp.One).Div(v.prices[token].Max))
		for _, isLong := range sides {
			interest := chain.U64(rapid.Uint64Range(0, 10_000_000).Draw(t, "interest")).Mul(perp.One)
			put(perp.OpenInterest, token, isLong, interest)
			put(perp.OpenInterestInTokens, token, isLong, interest.Div(v.prices[m.IndexToken].Max))
		}
	}
	put(perp.FundingFactorPerSecond, chain.Address{}, false, chain.Uint{})
	for _, isLong := range sides {
		key := perp.MarketValueKey(perp.CumulativeBorrowingFactor, scope, chain.Address{}, isLong)
		before, _ := v.book.Get(key).(perp.MarketValue)
		put(perp.CumulativeBorrowingFactor, chain.Address{}, isLong, before.Value.Uint().
			Add(factor(t, "accrued", 1000)))
	}
}

// drawPosition opens a position or replaces one, with a collateral from nothing to 30 % of its size, or to three times
// it.
func (v *venue) drawPosition(t *rapid.T) perp.Position {
	m := rapid.SampledFrom(markets).Draw(t, "market")
	p := perp.Position{
		PositionKey: chain.Hash{byte(rapid.IntRange(1, 30).Draw(t, "position"))}, Market: m.MarketToken,
		Status:          perp.Active,
		CollateralToken: rapid.SampledFrom([]chain.Address{m.LongToken, m.ShortToken}).Draw(t, "collateral"),
		IsLong:          rapid.Bool().Draw(t, "long"),
	}
	cents := chain.U64(rapid.OneOf(rapid.Uint64Range(10, 1000), rapid.Uint64Range(500, 100_000_000)).Draw(t, "size"))
	p.SizeInUsd = cents.Mul(chain.Pow10(28))
	p.SizeInTokens = p.SizeInUsd.Div(v.prices[m.IndexToken].Max)
	margin := chain.U64(rapid.OneOf(rapid.Uint64Range(0, 300), rapid.Uint64Range(0, 3000)).Draw(t, "margin"))
	p.CollateralAmount = cents.Mul(margin).Mul(chain.Pow10(25)).Div(v.prices[p.CollateralToken].Max)
	p.BorrowingFactor = v.stored(perp.CumulativeBorrowingFactor, m, chain.Address{}, p.IsLong)
	p.FundingFeeAmountPerSize = v.stored(perp.FundingFeeAmountPerSize, m, p.CollateralToken, p.IsLong)
	v.positions[p.PositionKey] = p
	return p
}

// stored is a measure as it was last accrued: a position takes it along when it changes.
func (v *venue) stored(m perp.Measure, of perp.Market, token chain.Address, isLong bool) chain.Uint {
	value, _ := v.book.Get(perp.MarketValueKey(m, of.MarketToken.Hash(), token, isLong)).(perp.MarketValue)
	return value.Value.Uint()
}

func (v *venue) view() *perp.View {
	return perp.NewView(perp.Circumstances{Rows: v.book, Prices: v.prices, Time: v.time, FireRatio: perp.One})
}

// drawTick moves a price: by a little, by a lot, or to just about where a position has its judging price.
func (v *venue) drawTick(t *rapid.T, x *Index) {
	token := rapid.SampledFrom([]chain.Address{eth, usdc, doge}).Draw(t, "token")
	price := v.prices[token].Max.Float() * (1 + rapid.Float64Range(-0.15, 0.15).Draw(t, "move"))
	if rapid.Bool().Draw(t, "at a judging price") {
		for _, r := range x.entries() {
			index := market.IndexToken
			if x.position(r.member).Market == other.MarketToken {
				index = other.IndexToken
			}
			if at := math.Abs(float64(r.price)); at > 1e10 && at < 1e40 {
				off := rapid.SampledFrom([]float64{1e-9, 1e-4, 1e-2}).Draw(t, "far") * rapid.Float64Range(-1, 1).
					Draw(t, "off")
				token, price = index, at*(1+off)
				break
			}
		}
	}
	v.price(token, price, rapid.Uint64Range(0, 100).Draw(t, "spread"))
}

// entries are those of all groups that stand.
func (x *Index) entries() (all priceEntries) {
	for _, g := range x.groups {
		if g.stands {
			all = append(all, g.byPrice...)
		}
	}
	return all
}

// LIQ-2: for any path of prices, positions, accruals and parameters, what the index yields has all that an exact sweep
// finds, with the same verdicts; and nothing that is safe beyond the armed ratio.
func TestIndexMissesNothing(t *testing.T) {
	armed := chain.U64(11).Mul(chain.Pow10(29))
	rapid.Check(t, func(t *rapid.T) {
		v, x := drawVenue(t), NewIndex(armed)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			switch rapid.IntRange(0, 6).Draw(t, "step") {
			case 0, 1:
				x.Put(v.drawPosition(t))
			case 2:
				key := chain.Hash{byte(rapid.IntRange(1, 30).Draw(t, "closed"))}
				delete(v.positions, key)
				x.Remove(key)
			case 3:
				v.time += rapid.Uint64Range(1, 2000).Draw(t, "seconds")
			case 4:
				v.begin(t)
				m := rapid.SampledFrom(markets).Draw(t, "traded")
				v.drawInterest(t, m)
				if rapid.Bool().Draw(t, "reconfigured") {
					v.drawParameters(t, m)
				}
			default:
				v.drawTick(t, x)
			}
			v.compare(t, x, armed)
		}
	})
}

func (v *venue) compare(t *rapid.T, x *Index, armed chain.Uint) {
	view := v.view()
	found := map[chain.Hash]perp.Verdict{}
	for _, m := range x.Markets() {
		candidates, err := x.Candidates(m, view)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range candidates {
			found[c.Position.PositionKey] = c.Verdict
		}
	}
	var swept []Candidate
	for key, p := range v.positions {
		verdict, err := view.Judge(p)
		if err != nil {
			t.Fatal(err)
		}
		near := verdict.Liquidatable || verdict.Ratio.Less(armed)
		if got, is := found[key]; is != near || is && got != verdict {
			t.Fatalf("position %x with ratio %s, liquidatable %v: found %v", key[:1], verdict.Ratio,
				verdict.Liquidatable, is)
		}
		if verdict.Liquidatable {
			swept = append(swept, Candidate{p, verdict})
		}
	}
	if missed := x.Missed(swept, view); len(missed) > 0 {
		t.Fatalf("missed %d", len(missed))
	}
}

// A position the index should have judged and would not is noticed by the sweep.
func TestMissedIsNoticed(t *testing.T) {
	x := NewIndex(perp.One)
	p := long(1, 500)
	x.Put(p)
	view := perp.NewView(circumstances(t, 4000))
	if found, err := x.Candidates(market.MarketToken, view); err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	x.groups[0].byPrice[0].price = 1 // as if the filter had gone wrong
	if found, _ := x.Candidates(market.MarketToken, view); len(found) != 0 {
		t.Fatal("the broken filter still finds it")
	}
	swept, err := Sweep(t.Context(), []perp.Position{p}, view, 2)
	if err != nil || len(x.Missed(swept.Liquidatable, view)) != 1 {
		t.Errorf("missed %v, %v", x.Missed(swept.Liquidatable, view), err)
	}
}

// A position that the index has missed is found from then on, whatever its certificate says, until it changes: the
// alarm alone liquidates nothing.
func TestMissedIsFoundFromThenOn(t *testing.T) {
	x := NewIndex(perp.One)
	p, healthy := long(1, 500), long(2, 4_000)
	x.Put(p)
	x.Put(healthy)
	c := circumstances(t, 4000)
	view := perp.NewView(c)
	found := func() int {
		t.Helper()
		near, err := x.Candidates(market.MarketToken, view)
		if err != nil {
			t.Fatal(err)
		}
		return len(near)
	}
	if found() != 1 {
		t.Fatal("the case is none")
	}
	miss := func() {
		t.Helper()
		g := x.groups[0]
		for i := range g.byPrice {
			g.byPrice[i].price = 1 // as if the filter had gone wrong
		}
		if found() != 0 {
			t.Fatal("the broken filter still finds it")
		}
		swept, err := Sweep(t.Context(), []perp.Position{p, healthy}, view, 1)
		if err != nil || len(x.Missed(swept.Liquidatable, view)) != 1 {
			t.Fatalf("the sweep: %+v, %v", swept, err)
		}
	}
	miss()
	if found() != 1 {
		t.Error("what the sweep has found is found by nobody")
	}
	x.groups[0].stands = false // as when prices have left the certificate
	if found() != 1 {
		t.Error("forgotten when judging prices were computed anew")
	}
	if swept, err := Sweep(t.Context(), []perp.Position{p}, view, 1); err != nil ||
		len(x.Missed(swept.Liquidatable, view)) != 0 {
		t.Errorf("it is missed again: %v", err)
	}
	p.CollateralAmount = healthy.CollateralAmount
	x.Put(p)
	if found() != 0 || len(x.groups[0].distrusted) != 0 {
		t.Error("it is distrusted although it has changed")
	}
	x.Remove(p.PositionKey)
	x.Remove(healthy.PositionKey)
	if len(x.groups[0].byPrice) != 0 || x.Len() != 0 {
		t.Errorf("%d entries stay behind", len(x.groups[0].byPrice))
	}
}

// A keeper that files a position that gapped past its trigger as "far" looks again hours later: here it is found at the
// next tick, however far.
func TestGapPastTheTriggerIsFoundAtOnce(t *testing.T) {
	x := NewIndex(perp.One)
	x.Put(long(1, 1000))
	for price, want := range map[uint64]int{5000: 0, 4600: 0, 4000: 1, 100: 1} {
		found, err := x.Candidates(market.MarketToken, perp.NewView(circumstances(t, price)))
		if err != nil || len(found) != want {
			t.Errorf("at %d: %d found, want %d (%v)", price, len(found), want, err)
		}
	}
}

// LIQ-2: a short smaller than what must remain of it, held in its index token: the collateral gains at every price what
// the position loses, and it is liquidatable all the same.
func TestTinyShortInItsIndexToken(t *testing.T) {
	c := circumstances(t, 5000)
	rows := c.Rows.(*perp.Book)
	rows.Put(perp.Parameter{Key: perp.DataStoreKey("MIN_COLLATERAL_USD"), Value: perp.One.Bytes32()})
	p := perp.Position{
		PositionKey: chain.Hash{1}, Market: market.MarketToken, CollateralToken: eth, Status: perp.Active,
		SizeInUsd: perp.One.Div(chain.U64(2)),
		// $1.30 and $1.35 by now
		SizeInTokens: chain.U64(26).Mul(chain.Pow10(13)), CollateralAmount: chain.U64(27).Mul(chain.Pow10(13)),
	}
	view := perp.NewView(c)
	if v, err := view.Judge(p); err != nil || !v.Liquidatable {
		t.Fatalf("the case is none: %+v, %v", v, err)
	}
	x := NewIndex(ArmedRatio)
	x.Put(p)
	if found, err := x.Candidates(market.MarketToken, view); err != nil || len(found) != 1 {
		t.Errorf("found %d, %v", len(found), err)
	}
}
