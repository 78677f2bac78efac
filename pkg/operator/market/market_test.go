package market

import (
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/liquidation"
)

var eth, btc = chain.Address{1}, chain.Address{2}

func report(token chain.Address, source string, low, high, ms uint64) price.Report {
	return price.Report{Token: token, Source: source, Min: chain.U64(low), Max: chain.U64(high), TimeMs: ms}
}

func percent(n uint64) chain.Uint { return perp.One.MulDiv(chain.U64(n), chain.U64(100)) }

// Each source of a token is shown by its newest report, and checked against the newest of all.
func TestPricesBySource(t *testing.T) {
	l := sum([]price.Report{
		report(btc, "a", 500, 500, 9000),
		report(eth, "b", 104, 104, 3000), // later reports may stand first
		report(eth, "a", 100, 110, 1000),
		report(eth, "a", 102, 104, 2000),
	}, time.Minute)
	if l.Tokens != 2 || len(l.Prices) != 3 || l.Mode != liquidation.Normal {
		t.Fatalf("%+v", l)
	}
	b, a := l.Prices[0], l.Prices[1]
	if b.Source != "b" || !b.Newest || !b.Off.IsZero() || !b.Spread.IsZero() || b.Reports != 1 {
		t.Errorf("the newest: %+v", b)
	}
	if a.Source != "a" || a.Newest || a.Reports != 2 || a.TimeMs != 2000 ||
		a.Off != chain.U64(2).MulDiv(perp.One, chain.U64(104)) || a.Spread != chain.U64(2).
		MulDiv(perp.One, chain.U64(102)) {
		t.Errorf("the other: %+v", a)
	}
	if a.Moved != percent(4) || b.Moved != percent(4) || !l.Prices[2].Moved.IsZero() {
		t.Errorf("moved %s and %s", a.Moved, l.Prices[2].Moved)
	}
}

// LIQ-1: the mode is that of the token that moved most within the window.
func TestMode(t *testing.T) {
	for high, want := range map[uint64]liquidation.Mode{105: liquidation.Normal, 106: liquidation.Volatile,
		111: liquidation.Extreme} {
		l := sum([]price.Report{report(btc, "a", 500, 500, 1000), report(eth, "a", 100, 100, 1000),
			report(eth, "a", high, high, 30_000), report(eth, "a", 100, 100, 31_000)}, time.Minute)
		if l.Mode != want {
			t.Errorf("up to %d: %s, want %s", high, l.Mode, want)
		}
	}
	if l := sum(nil, time.Minute); l.Mode != liquidation.Normal || len(l.Prices) != 0 {
		t.Errorf("no reports: %+v", l)
	}
}
