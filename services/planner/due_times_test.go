package planner

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// mixedMarket is one whose collateral is neither its index token nor stable, so that three tokens decide about its
// positions.
var mixedMarket = perp.Market{MarketToken: chain.Address{12}, IndexToken: eth, LongToken: btc, ShortToken: usdc}

// inBitcoin is a long of $10 000 on ETH, opened at $5000, with $1050 of BTC at $90 000.
func inBitcoin() perp.Position {
	p := long(alice, 0)
	p.Market, p.CollateralToken, p.CollateralAmount = mixedMarket.MarketToken, btc, chain.U64(1_166_667)
	p.PositionKey = perp.PositionKey(p.Account, p.Market, p.CollateralToken, p.IsLong)
	return p
}

// TIER-3, TIER-9: keepers find the same jobs and agree on due times whichever token's report makes the job due, however
// many reports they look at in one pass, how long ever it is due, and whenever they started.
func TestKeepersAgreeOnDueTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		born := func(d *fixture) map[string]uint64 {
			dueTimes := map[string]uint64{}
			for _, j := range d.jobs(t) {
				dueTimes[j.ID] = j.DueSinceMs
			}
			return dueTimes
		}
		eager, lazy, late := newFixture(), newFixture(), newFixture()
		keepers := []*fixture{eager, lazy, late}
		for _, d := range keepers {
			c := d.changes(inBitcoin())
			c.Markets.Changed = []perp.Market{mixedMarket}
			d.book.apply(c)
		}
		ms := uint64(nowMs)
		for range rapid.IntRange(1, 60).Draw(t, "reports") {
			ms += rapid.SampledFrom([]uint64{100, 700, 1000, 2500, 40_000}).Draw(t, "pause")
			token := rapid.SampledFrom([]chain.Address{eth, btc, usdc}).Draw(t, "token")
			value := chain.Pow10(24)
			switch token {
			case eth:
				value = dollarsPerEther(rapid.SampledFrom([]uint64{4500, 4600, 5000}).Draw(t, "eth"))
			case btc:
				value = chain.U64(rapid.SampledFrom([]uint64{70, 90, 110}).Draw(t, "btc")).Mul(chain.Pow10(25))
			}
			for _, d := range keepers {
				d.report(token, value, ms)
			}
			born(eager)
			if rapid.Bool().Draw(t, "lazy looks") {
				born(lazy)
			}
		}
		want := born(eager)
		for name, d := range map[string]*fixture{"looks seldom": lazy, "started late": late} {
			got := born(d)
			if len(got) != len(want) {
				t.Fatalf("the one that %s finds %v, want %v", name, got, want)
			}
			for id, dueSince := range want {
				if got[id] != dueSince {
					t.Fatalf("%s born at %d for the one that %s, want %d", id, got[id]-nowMs, name, dueSince-nowMs)
				}
			}
		}
	})
}

// TIER-11: a job that stays due is renewed at the age at which jobs end, and said again at once.
func TestOldJobsAreRenewed(t *testing.T) {
	d := newFixture()
	d.load(long(alice, 1050))
	first := d.jobs(t)
	if len(first) != 1 || first[0].DueSinceMs != nowMs {
		t.Fatalf("%+v", first)
	}
	for second := uint64(1); second <= 700; second++ {
		d.report(usdc, chain.Pow10(24), nowMs+second*1000)
		d.report(eth, dollarsPerEther(4500), nowMs+second*1000)
		fresh, err := d.look(d.everywhere(), d.moment())
		if err != nil {
			t.Fatal(err)
		}
		now := uint64(nowMs)/1000 + second
		want := uint64(nowMs) / 1000
		if second >= longest {
			want = now / longest * longest
		}
		again := second == longest || second > longest && now%longest == 0
		if j := d.live.all()[0]; j.DueSinceMs != want*1000 || (len(fresh) == 1) != again {
			t.Fatalf("second %d: born at %d, want %d; said again: %v", second, j.DueSinceMs, want*1000, ids(fresh))
		}
		alarms := 0.0 // one when it is renewed, and not at every look
		if second >= longest {
			alarms = float64(now/longest - (nowMs/1000+longest)/longest + 1)
		}
		if got := testutil.ToFloat64(d.unexecuted.metrics.renewed.WithLabelValues("liquidation")); got != alarms {
			t.Fatalf("second %d: told %g times that nobody executed it, want %g", second, got, alarms)
		}
	}
}

// TIER-11: that nobody executed a job is told where its condition held all the while, and never where it held for
// moments, however many.
func TestMomentsAreNoAlarm(t *testing.T) {
	d := newFixture()
	trigger := order(perp.LimitIncrease, 0)
	trigger.IsLong, trigger.TriggerPrice, trigger.AcceptablePrice = true, dollarsPerEther(4500), dollarsPerEther(4600)
	d.load(long(alice, 1050), trigger)
	for second := uint64(1); second <= 1000; second++ {
		value := dollarsPerEther(4500)
		if second%200 == 0 { // neither due
			value = dollarsPerEther(5000)
		}
		d.report(usdc, chain.Pow10(24), nowMs+second*1000)
		d.report(eth, value, nowMs+second*1000)
		if _, err := d.look(d.everywhere(), d.moment()); err != nil {
			t.Fatal(err)
		}
		if due := len(d.live.all()); (due == 2) != (second%200 != 0) {
			t.Fatalf("second %d: %d jobs are due", second, due)
		}
	}
	for _, kind := range []string{"liquidation", "order"} {
		if got := testutil.ToFloat64(d.unexecuted.metrics.renewed.WithLabelValues(kind)); got != 0 {
			t.Errorf("told %g times that nobody executed a %s", got, kind)
		}
	}
}

// TIER-9: the report that makes a job due bears it, also that of the collateral's token, and a later one of the index
// token does not bear it again.
func TestDueTimeByTheCollateralsReport(t *testing.T) {
	d := newFixture()
	c := d.changes(inBitcoin())
	c.Markets.Changed = []perp.Market{mixedMarket}
	d.book.apply(c)
	if early := d.jobs(t); len(early) != 0 {
		t.Fatalf("due already: %v", ids(early))
	}
	d.report(btc, chain.U64(7).Mul(chain.Pow10(26)), nowMs+5_000)
	if j := d.jobs(t); len(j) != 1 || j[0].DueSinceMs != nowMs+5_000 {
		t.Fatalf("%+v", j)
	}
	d.report(eth, dollarsPerEther(4500), nowMs+6_000)
	if j := d.jobs(t); len(j) != 1 || j[0].DueSinceMs != nowMs+5_000 {
		t.Fatalf("after a report of the index token: %+v", j)
	}
}
