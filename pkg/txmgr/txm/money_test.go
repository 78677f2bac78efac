package txm

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

func TestBNB(t *testing.T) {
	for text, wei := range map[string]string{
		"0": "0", "0.5": "500000000000000000", "2": "2000000000000000000", "0.000000000000000001": "1",
		"10.25": "10250000000000000000", "007.10": "7100000000000000000",
		"9223372036.854775808": "9223372036854775808000000000", // far more than 64 bits of wei
	} {
		var b BNB
		if err := b.UnmarshalText([]byte(text)); err != nil || b.Wei().String() != wei {
			t.Errorf("%s: %s wei, %v; want %s", text, b.Wei(), err, wei)
		}
	}
	for _, text := range []string{"", ".5", "5.", "1,5", "-1", "+1", "1e18", "0.0000000000000000001", "1.2.3", " 1",
		"1" + string(make([]byte, 90)), "9" + new(big.Int).Lsh(big.NewInt(1), 256).String()} {
		b := MustBNB("3")
		if err := b.UnmarshalText([]byte(text)); err == nil || b != MustBNB("3") {
			t.Errorf("%q was read as %s", text, b)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := Wei(chain.U64(rapid.Uint64().Draw(t, "wei")).Mul(chain.U64(rapid.Uint64().Draw(t, "times"))))
		var again BNB
		if err := again.UnmarshalText([]byte(b.String())); err != nil || again != b {
			t.Fatalf("%s was read as %s, %v", b, again, err)
		}
	})
}

// Orders that have spent all they may leave the reserve to liquidations, at any price of gas; fees that were earned are
// money again; and the day's money is not bounded by what 64 bits hold.
func TestBudget(t *testing.T) {
	b := Budget{Day: MustBNB("20"), Reserve: MustBNB("5"), Cleanup: MustBNB("1")}
	wei := func(bnb string) chain.Uint { return MustBNB(bnb).Wei() }
	spent := func(liquidation, order, cleanup string) ByLane {
		return ByLane{job.LiquidationLane: wei(liquidation), job.OrderLane: wei(order),
			job.CleanupLane: wei(cleanup)}
	}
	for name, c := range map[string]struct {
		lane          job.Lane
		wei           string
		burnt, earned ByLane
		want          bool
	}{
		"the first order":                {job.OrderLane, "15", nil, nil, true},
		"into the reserve":               {job.OrderLane, "15.000000000000000001", nil, nil, false},
		"a liquidation after all orders": {job.LiquidationLane, "5", spent("0", "14.5", "0.5"), nil, true},
		"a liquidation beyond the day":   {job.LiquidationLane, "5.1", spent("0", "14.5", "0.5"), nil, false},
		"an order after liquidations":    {job.OrderLane, "1", spent("15", "0", "0"), nil, false},
		"a cancel within its lane":       {job.CleanupLane, "0.4", spent("0", "3", "0.6"), nil, true},
		"a cancel beyond its lane":       {job.CleanupLane, "0.5", spent("0", "3", "0.6"), nil, false},
		"a cancel that earned its lane": {job.CleanupLane, "0.5", spent("0", "3", "0.6"),
			spent("0", "0", "0.2"), true},
		"an order when fees paid for the rest": {job.OrderLane, "1", spent("0", "400", "0"),
			spent("0", "400", "0"), true},
		"what costs no more than before": {job.OrderLane, "0", spent("14", "2", "0"), nil, true},
		"more was earned than burnt":     {job.OrderLane, "16", spent("0", "1", "0"), spent("0", "9", "0"), false},
	} {
		if got := b.Allows(c.lane, wei(c.wei), c.burnt, c.earned); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if b.Allows(job.CleanupLane, wei("0.01"), spent("0", "15", "0"), nil) ||
		!b.Allows(job.MaintenanceLane, wei("14"), spent("0", "0", "1"), nil) {
		t.Error("the cleanup has money of its own, and none of the reserve; a request has all others'")
	}
	if got := b.Used(job.CleanupLane, spent("0", "3", "0.5"), nil); got != 0.5 {
		t.Errorf("half of the cleanup's money is %g", got)
	}
	if got := b.Used(job.LiquidationLane, spent("10", "5", "1"), spent("0", "0", "0")); got != 0.8 {
		t.Errorf("16 of 20 is %g", got)
	}
}

// Whatever was spent in whatever order, all lanes together stay within the day, what is not urgent stays outside of the
// reserve and within its lane, and a liquidation that fits the day is never refused.
func TestBudgetIsKept(t *testing.T) {
	lanes := []job.Lane{job.LiquidationLane, job.OrderLane, job.CleanupLane}
	rapid.Check(t, func(t *rapid.T) {
		n := func(what string) uint64 { return rapid.Uint64Range(0, 100).Draw(t, what) }
		day, reserve, cleanup := n("day"), n("reserve"), n("cleanup")
		b := Budget{Day: Wei(chain.U64(day)), Reserve: Wei(chain.U64(reserve)), Cleanup: Wei(chain.U64(cleanup))}
		spent := map[job.Lane]uint64{}
		burnt := ByLane{}
		for range rapid.IntRange(0, 30).Draw(t, "times") {
			lane, cost := rapid.SampledFrom(lanes).Draw(t, "lane"), n("cost")
			sum := spent[job.LiquidationLane] + spent[job.OrderLane] + spent[job.CleanupLane]
			open := day - min(day, reserve)
			may := sum+cost <= day
			if lane != job.LiquidationLane {
				may = sum+cost <= open && (lane != job.CleanupLane || cleanup == 0 || spent[lane]+cost <= cleanup)
			}
			may = may || cost == 0
			if got := b.Allows(lane, chain.U64(cost), burnt, nil); got != may {
				t.Fatalf("%d more for the lane %s after %v: %t", cost, lane, spent, got)
			}
			if may {
				spent[lane] += cost
				burnt.Add(lane, chain.U64(cost))
			}
		}
	})
}
