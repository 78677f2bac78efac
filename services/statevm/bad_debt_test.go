package statevm

import (
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// LIQ-17: only what liquidations of the present closed and did not cover counts.
func TestLosses(t *testing.T) {
	l, now := newLosses(prometheus.NewRegistry()), time.UnixMilli(1_800_000_000_000)
	at := func(ago time.Duration) perp.Stamp { return perp.Stamp{TimeMs: uint64(now.Add(-ago).UnixMilli())} }
	usd := func(n uint64) chain.Uint { return chain.U64(n).Mul(chain.Pow10(30)) }
	decrease := func(kind perp.OrderType, size uint64, ago time.Duration) perp.Event {
		return perp.PositionDecreased{Position: perp.Position{Stamp: at(ago)}, OrderType: kind, SizeDeltaUsd: usd(size)}
	}
	for _, e := range []perp.Event{
		decrease(perp.Liquidation, 1000, time.Second), decrease(perp.Liquidation, 500, recentWindow-time.Second),
		decrease(perp.Liquidation, 99, recentWindow),
		decrease(perp.MarketDecrease, 7, time.Second),
		perp.ClosedInsolvent{Debt: perp.BadDebt{RemainingCostUsd: usd(3), Stamp: at(time.Second)}},
		perp.ClosedInsolvent{Debt: perp.BadDebt{RemainingCostUsd: usd(4), Stamp: at(time.Hour)}},
		perp.ParameterSet{},
	} {
		l.counted(e, now)
	}
	cents := func(c prometheus.Counter) int { return int(math.Round(testutil.ToFloat64(c) * 100)) }
	if got := [4]int{cents(l.liquidated), cents(l.closes), cents(l.badDebt), cents(l.insolvent)}; got !=
		[4]int{150_000, 200, 300, 100} {
		t.Errorf("counted %v", got)
	}
}
