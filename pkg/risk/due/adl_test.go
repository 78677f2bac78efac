package due

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// crowded is a moment in which longs have gained: so many percent of a pool of $1 000 000 in ETH.
func crowded(m *Moment, positions []perp.Position, enabled bool) {
	all := m.Rows.(rows)
	put := func(r perp.Row) { all[r.RowKey()] = r }
	scope := ethMarket.MarketToken.Hash()
	var usd, tokens chain.Uint
	for _, p := range positions {
		usd, tokens = usd.Add(p.SizeInUsd), tokens.Add(p.SizeInTokens)
	}
	put(perp.MarketValue{Measure: perp.OpenInterest, Scope: scope, Token: usdc, IsLong: true, Value: usd.Int()})
	put(perp.MarketValue{Measure: perp.OpenInterestInTokens, Scope: scope, Token: usdc, IsLong: true,
		Value: tokens.Int()})
	put(perp.MarketValue{Measure: perp.PoolAmount, Scope: scope, Token: eth, Value: chain.U64(1_000_000).Mul(perp.One).
		Div(dollarsPerEther(4500)).Int()})
	var is chain.Int
	if enabled {
		is = chain.I64(1)
	}
	put(perp.MarketValue{Measure: perp.AdlEnabled, Scope: scope, IsLong: true, Value: is, Stamp: perp.Stamp{Block: 5}})
	limit := func(name string, percent uint64) {
		kind := perp.BaseKey(name)
		key := perp.DataStoreKey("MAX_PNL_FACTOR", kind, scope, perp.BoolWord(true))
		if name == "MIN_PNL_FACTOR_AFTER_ADL" {
			key = perp.DataStoreKey(name, scope, perp.BoolWord(true))
		}
		put(perp.Parameter{Key: key, Value: chain.U64(percent).Mul(chain.Pow10(28)).Bytes32()})
	}
	limit("MAX_PNL_FACTOR_FOR_ADL", 45)
	limit("MIN_PNL_FACTOR_AFTER_ADL", 40)
	m.Rules.AdlRole = true
}

// gained is a long that has gained so many dollars by now.
func gained(id byte, dollars uint64) perp.Position {
	p := long(5000)
	p.PositionKey = chain.Hash{id}
	worth := chain.U64(1_000_000 + dollars).Mul(perp.One)
	p.SizeInUsd, p.SizeInTokens = chain.U64(1_000_000).Mul(perp.One), worth.Div(dollarsPerEther(4500))
	return p
}

func adl(t interface{ Fatal(...any) }, m *Moment, positions []perp.Position) []Decision {
	got, err := m.Deleverage(ethMarket, true, each(positions), nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func each(positions []perp.Position) func(yield func(*perp.Position) bool) {
	return func(yield func(*perp.Position) bool) {
		for i := range positions {
			if !yield(&positions[i]) {
				return
			}
		}
	}
}

// Planners that share the positions of a side choose, each of its own, together what one that has them all chooses; one
// that does not know the others' chooses nothing.
func TestPlannersChooseTogetherWhatOneWouldChoose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all, left, right []perp.Position
		for i := range byte(rapid.IntRange(2, 10).Draw(t, "positions")) {
			p := gained(i+1, rapid.Uint64Range(40_000, 200_000).Draw(t, "gain"))
			all = append(all, p)
			if rapid.Bool().Draw(t, "left") {
				left = append(left, p)
			} else {
				right = append(right, p)
			}
		}
		m := moment()
		crowded(m, all, true)
		want := adl(t, m, all)
		if len(want) == 0 || want[0].Job.Kind == job.AdlState {
			return
		}
		var got []Decision
		for _, half := range [][2][]perp.Position{{left, right}, {right, left}} {
			chosen, err := m.Deleverage(ethMarket, true, each(half[0]),
				func() ([]perp.Position, bool) { return half[1], true })
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, chosen...)
			if blind, _ := m.Deleverage(ethMarket, true, each(half[0]),
				func() ([]perp.Position, bool) { return nil, false }); len(blind) > 0 {
				t.Fatal("chosen without knowing the others'")
			}
		}
		slices.SortFunc(got, func(a, b Decision) int { return a.Job.Ratio.Cmp(b.Job.Ratio) })
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("together %+v, want %+v", got, want)
		}
	})
}

// TIER-13: first the exchange is told, then the most profitable positions are closed; nothing without the role or below
// the limit.
func TestDeleverage(t *testing.T) {
	positions := []perp.Position{gained(1, 100_000), gained(2, 300_000), gained(3, 80_000)} // 48 % of the pool
	m := moment()
	crowded(m, positions, false)
	if got := adl(t, m, positions); len(got) != 1 || got[0].Job.Kind != job.AdlState ||
		got[0].Job.ID != job.AdlStateID(ethMarket.MarketToken, true, 5) {
		t.Fatalf("not enabled: %+v", got)
	}
	m = moment()
	crowded(m, positions, true)
	got := adl(t, m, positions)
	if len(got) != 1 || got[0].Job.Key != positions[1].PositionKey ||
		!got[0].Job.SizeDeltaUsd.Less(positions[1].SizeInUsd) || !got[0].PriceBorn() {
		t.Fatalf("enabled: %+v", got)
	}
	m.Rules.AdlRole = false
	if got := adl(t, m, positions); got != nil {
		t.Errorf("without the role: %+v", got)
	}
	few := positions[:1]
	m = moment()
	crowded(m, few, false)
	if got := adl(t, m, few); len(got) != 0 {
		t.Errorf("below the limit: %+v", got)
	}
	m = moment()
	crowded(m, few, true)
	if got := adl(t, m, few); len(got) != 1 || got[0].Job.Kind != job.AdlState {
		t.Errorf("enabled and below the limit: %+v", got)
	}
}

// Whatever the positions, what is closed brings the side to between floor and limit, and no position loses more than it
// has.
func TestDeleveragingEndsWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var positions []perp.Position
		var total float64
		for i := range byte(rapid.IntRange(1, 8).Draw(t, "positions")) {
			dollars := rapid.Uint64Range(1_000, 120_000).Draw(t, "gain")
			positions = append(positions, gained(i+1, dollars))
			total += float64(dollars)
		}
		m := moment()
		crowded(m, positions, total > 450_001)
		got := adl(t, m, positions)
		if total < 449_999 {
			if len(got) > 0 {
				t.Fatalf("%f dollars of profit: %d decisions", total, len(got))
			}
			return
		}
		if total < 450_001 {
			return // within the rounding of the limit
		}
		pnl, pool := total, 1_000_000.0
		for _, d := range got {
			i := slices.IndexFunc(positions, func(p perp.Position) bool { return p.PositionKey == d.Job.Key })
			share := d.Job.SizeDeltaUsd.Float() / positions[i].SizeInUsd.Float()
			if share > 1 || share <= 0 {
				t.Fatalf("closes %f of a position", share)
			}
			paid := share * (positions[i].SizeInTokens.Mul(dollarsPerEther(4500)).
				Float() - positions[i].SizeInUsd.Float()) / 1e30
			pnl, pool = pnl-paid, pool-paid
		}
		if factor := pnl / pool; factor < 0.4 || factor > 0.45 {
			t.Fatalf("from %f to %f of the pool", total/1_000_000, factor)
		}
	})
}

// venueSide is the venue's own rule for one execution (AdlHandler.executeAdl), with plain numbers: it refuses what is
// not required, and what overcorrects.
type venueSide struct {
	positions []perp.Position
	pool      chain.Uint // USD, 30 decimals
}

func (v *venueSide) moment() *Moment {
	m := moment()
	crowded(m, v.positions, true)
	all := m.Rows.(rows)
	put := func(r perp.Row) { all[r.RowKey()] = r }
	put(perp.MarketValue{
		Measure: perp.PoolAmount, Scope: ethMarket.MarketToken.Hash(), Token: eth,
		Value: v.pool.Div(dollarsPerEther(4500)).Int(),
	})
	return m
}

// above reports whether profits are more than so many percent of the pool.
func (v *venueSide) above(percent uint64) bool {
	var pnl chain.Int
	for _, p := range v.positions {
		pnl = pnl.Add(p.SizeInTokens.Mul(dollarsPerEther(4500)).Int().Sub(p.SizeInUsd.Int()))
	}
	return v.pool.Mul(chain.U64(percent)).Div(chain.U64(100)).Less(pnl.Uint())
}

// execute closes so much of a position, and says why the venue would not.
func (v *venueSide) execute(d Decision) string {
	i := slices.IndexFunc(v.positions, func(p perp.Position) bool { return p.PositionKey == d.Job.Key })
	p := &v.positions[i]
	tokens := p.SizeInTokens.MulDiv(d.Job.SizeDeltaUsd, p.SizeInUsd)
	if !v.above(45) {
		return "AdlNotRequired"
	}
	paid := tokens.Mul(dollarsPerEther(4500)).Sub(d.Job.SizeDeltaUsd.Min(tokens.Mul(dollarsPerEther(4500))))
	p.SizeInUsd, p.SizeInTokens, v.pool = p.SizeInUsd.Sub(d.Job.SizeDeltaUsd), p.SizeInTokens.Sub(tokens),
		v.pool.Sub(paid)
	if p.SizeInUsd.IsZero() {
		v.positions = slices.Delete(v.positions, i, i+1)
	}
	if !v.above(40) {
		return "PnlOvercorrected"
	}
	return ""
}

// fewest is how many of the positions, the most profitable first, have to be closed at least.
func (v *venueSide) fewest() (n int) {
	gains := make([]float64, 0, len(v.positions))
	total, pool := 0.0, v.pool.Float()/1e30
	for _, p := range v.positions {
		gain := (p.SizeInTokens.Mul(dollarsPerEther(4500)).Float() - p.SizeInUsd.Float()) / 1e30
		gains, total = append(gains, gain), total+gain
	}
	slices.Sort(gains)
	for _, gain := range slices.Backward(gains) {
		if total <= 0.45*pool+0.01 {
			break
		}
		total, pool, n = total-gain, pool-gain, n+1
	}
	return n
}

// TIER-13: chosen anew after each execution, whichever of the chosen is executed first, no more are executed than the
// fewest that bring the side below its limit, and the venue refuses none of them. The third where two suffice is not
// among the chosen.
func TestNoMoreDeleveragingsThanNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := &venueSide{pool: chain.U64(1_000_000).Mul(perp.One)}
		for i := range byte(rapid.IntRange(4, 12).Draw(t, "positions")) {
			v.positions = append(v.positions, gained(i+1, rapid.Uint64Range(1_000, 200_000).Draw(t, "gain")))
		}
		if !v.above(46) || v.above(100) {
			return // nothing to do, or more profit than anybody can pay
		}
		fewest, executed := v.fewest(), 0
		for {
			got := adl(t, v.moment(), v.positions)
			if len(got) == 0 || got[0].Job.Kind == job.AdlState {
				break
			}
			if len(got) != v.fewest() {
				t.Fatalf("%d are chosen, %d are needed", len(got), v.fewest())
			}
			for rank, d := range got {
				if d.Job.Ratio != chain.U64(uint64(rank)) {
					t.Fatalf("the %d. of them has the rank %s", rank, d.Job.Ratio)
				}
			}
			if why := v.execute(rapid.SampledFrom(got).Draw(t, "executed")); why != "" {
				t.Fatalf("refused after %d executions: %s", executed, why)
			}
			executed++
		}
		if executed != fewest || v.above(45) {
			t.Fatalf("%d were executed, %d are needed; above the limit still: %t", executed, fewest, v.above(45))
		}
	})
}

// Reports of before the venue's last update of a side are refused (LATEST_ADL_AT), for updates and for deleveragings;
// those of its second are taken.
func TestNoDeleveragingWithReportsOfBeforeTheUpdate(t *testing.T) {
	positions := []perp.Position{gained(1, 100_000), gained(2, 300_000), gained(3, 80_000)}
	for _, enabled := range []bool{false, true} {
		for late, want := range map[uint64]int{0: 1, 1: 0} {
			m := moment()
			crowded(m, positions, enabled)
			key := perp.MarketValueKey(perp.AdlEnabled, ethMarket.MarketToken.Hash(), chain.Address{}, true)
			last := m.Rows.Get(key).(perp.MarketValue)
			last.Stamp.TimeMs = (m.Quotes[eth].Second()+late)*1000 + 450
			m.Rows.(rows)[key] = last
			if got := adl(t, m, positions); len(got) != want {
				t.Errorf("enabled %v, updated %d s after the report: %d decisions, want %d", enabled, late, len(got),
					want)
			}
		}
	}
}

// A position beyond the contract's arithmetic is named, and the others are deleveraged.
func TestDeleveragingSurvivesAnImpossiblePosition(t *testing.T) {
	positions := []perp.Position{gained(1, 100_000), gained(2, 300_000), gained(3, 80_000)}
	m := moment()
	crowded(m, positions, true)
	huge := gained(4, 1)
	huge.SizeInTokens = chain.UintFromBytes(bytes.Repeat([]byte{0xff}, 32))
	got, err := m.Deleverage(ethMarket, true, func(yield func(*perp.Position) bool) {
		_ = yield(&huge) && yield(&positions[1])
	}, nil)
	if len(got) != 1 || got[0].Job.Key != positions[1].PositionKey || !errors.Is(err, chain.ErrArithmetic) {
		t.Errorf("%+v, %v", got, err)
	}
}
