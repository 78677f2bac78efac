package planner

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// A market that the exchange adds has a token that no source of prices names: nothing is executed there, and somebody
// has to be told. A disabled market needs no prices, and one that only swaps no index token.
func TestTokensWithoutAReport(t *testing.T) {
	d, sol := newFixture(), chain.Address{4}
	added := perp.Market{MarketToken: chain.Address{12}, IndexToken: sol, LongToken: eth, ShortToken: usdc}
	swaps := perp.Market{MarketToken: chain.Address{13}, LongToken: eth, ShortToken: usdc}
	want := func(when string, count int) {
		t.Helper()
		if got := d.book.unpriced(d.quotes.latest); got != count {
			t.Errorf("%s: %d tokens without a report, want %d", when, got, count)
		}
	}
	want("before", 0)
	c := d.changes()
	c.Markets.Changed = []perp.Market{added, swaps}
	d.book.apply(c)
	want("added", 1)
	off := perp.Parameter{Key: perp.DataStoreKey("IS_MARKET_DISABLED", added.MarketToken.Hash()),
		Value: perp.BoolWord(true)}
	d.book.rows[off.RowKey()] = off
	want("disabled", 0)
	off.Value = perp.BoolWord(false)
	d.book.rows[off.RowKey()] = off
	want("enabled again", 1)
	d.report(sol, dollarsPerEther(150), nowMs)
	want("with a feed", 0)
}

// Each pass over everything counts them.
func TestPassCountsTokensWithoutAReport(t *testing.T) {
	s := newSliced(&partitioned{generation: 1, rev: 1, rows: map[int][]perp.Row{0: {btcMarket, long(alice, 1050)}}},
		time.Hour)
	pass := func(look func() error, want float64) {
		t.Helper()
		if err := look(); err != nil {
			t.Fatal(err)
		}
		if err := s.finish(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := testutil.ToFloat64(s.metrics.unpriced); got != want {
			t.Errorf("%v tokens without a report, want %v", got, want)
		}
	}
	reports := &fixture{quotes: s.quotes}
	reports.report(usdc, chain.Pow10(24), nowMs)
	s.shards.assign([]int{0, 1})
	pass(func() error { return (&Stepper{s.Planner}).Reload(t.Context()) }, 2)
	reports.report(eth, dollarsPerEther(4500), nowMs)
	pass(func() error { return s.everything(t.Context(), false) }, 1)
}
