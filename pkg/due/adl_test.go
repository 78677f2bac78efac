package due

import (
	"bytes"
	"errors"
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
	var usd, tokens perp.Uint
	for _, p := range positions {
		usd, tokens = usd.Add(p.SizeInUsd), tokens.Add(p.SizeInTokens)
	}
	put(perp.MarketValue{Measure: perp.OpenInterest, Scope: scope, Token: usdc, IsLong: true, Value: usd.Int()})
	put(perp.MarketValue{Measure: perp.OpenInterestInTokens, Scope: scope, Token: usdc, IsLong: true, Value: tokens.Int()})
	put(perp.MarketValue{Measure: perp.PoolAmount, Scope: scope, Token: eth, Value: perp.U64(1_000_000).Mul(perp.One).Div(dollarsPerEther(4500)).Int()})
	var is perp.Int
	if enabled {
		is = perp.I64(1)
	}
	put(perp.MarketValue{Measure: perp.AdlEnabled, Scope: scope, IsLong: true, Value: is, Stamp: perp.Stamp{Block: 5}})
	limit := func(name string, percent uint64) {
		kind := perp.BaseKey(name)
		key := perp.DataStoreKey("MAX_PNL_FACTOR", kind, scope, perp.BoolWord(true))
		if name == "MIN_PNL_FACTOR_AFTER_ADL" {
			key = perp.DataStoreKey(name, scope, perp.BoolWord(true))
		}
		put(perp.Parameter{Key: key, Value: perp.U64(percent).Mul(perp.Pow10(28)).Bytes32()})
	}
	limit("MAX_PNL_FACTOR_FOR_ADL", 45)
	limit("MIN_PNL_FACTOR_AFTER_ADL", 40)
	m.Rules.AdlRole = true
}

// gained is a long that has gained so many dollars by now.
func gained(id byte, dollars uint64) perp.Position {
	p := long(5000)
	p.PositionKey = chain.Hash{id}
	worth := perp.U64(1_000_000 + dollars).Mul(perp.One)
	p.SizeInUsd, p.SizeInTokens = perp.U64(1_000_000).Mul(perp.One), worth.Div(dollarsPerEther(4500))
	return p
}

func adl(t interface{ Fatal(...any) }, m *Moment, positions []perp.Position) []Decision {
	got, err := m.Deleverage(ethMarket, true, func(yield func(*perp.Position) bool) {
		for i := range positions {
			if !yield(&positions[i]) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TIER-13: first the exchange is told, then the most profitable positions are closed; nothing without the role or below the limit.
func TestDeleverage(t *testing.T) {
	positions := []perp.Position{gained(1, 100_000), gained(2, 300_000), gained(3, 80_000)} // 48 % of the pool
	m := moment()
	crowded(m, positions, false)
	if got := adl(t, m, positions); len(got) != 1 || got[0].Job.Kind != job.AdlState || got[0].Job.ID != job.AdlStateID(ethMarket.MarketToken, true, 5) {
		t.Fatalf("not enabled: %+v", got)
	}
	m = moment()
	crowded(m, positions, true)
	got := adl(t, m, positions)
	if len(got) != 1 || got[0].Job.Key != positions[1].PositionKey || !got[0].Job.SizeDeltaUsd.Less(positions[1].SizeInUsd) || !got[0].PriceBorn() {
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

// Whatever the positions, what is closed brings the side to between floor and limit, and no position loses more than it has.
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
			paid := share * (positions[i].SizeInTokens.Mul(dollarsPerEther(4500)).Float() - positions[i].SizeInUsd.Float()) / 1e30
			pnl, pool = pnl-paid, pool-paid
		}
		if factor := pnl / pool; factor < 0.4 || factor > 0.45 {
			t.Fatalf("from %f to %f of the pool", total/1_000_000, factor)
		}
	})
}

// Reports of before the venue's last update of a side are refused (LATEST_ADL_AT), for updates and for deleveragings; those of its second are taken.
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
				t.Errorf("enabled %v, updated %d s after the report: %d decisions, want %d", enabled, late, len(got), want)
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
	huge.SizeInTokens = perp.UintFromBytes(bytes.Repeat([]byte{0xff}, 32))
	got, err := m.Deleverage(ethMarket, true, func(yield func(*perp.Position) bool) {
		_ = yield(&huge) && yield(&positions[1])
	})
	if len(got) != 1 || got[0].Job.Key != positions[1].PositionKey || !errors.Is(err, perp.ErrArithmetic) {
		t.Errorf("%+v, %v", got, err)
	}
}
