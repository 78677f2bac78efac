package planner

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// LIQ-17: the age of what nobody executes grows from one renewal to the next, and ends when its condition does.
func TestOldestDueOutlivesRenewals(t *testing.T) {
	d := newFixture()
	d.load(long(alice, 1050))
	age := func(usd uint64, after time.Duration) time.Duration {
		ms := nowMs + uint64(after.Milliseconds())
		d.report(usdc, chain.Pow10(24), ms)
		d.report(eth, dollarsPerEther(usd), ms)
		d.jobs(t)
		return d.oldest(d.moment())[job.Liquidation]
	}
	for after := time.Second; after <= 13*time.Minute; after += 20 * time.Second {
		if got := age(4500, after); got != after {
			t.Fatalf("due for %s, want %s", got, after)
		}
	}
	if got := age(5000, 14*time.Minute); got != 0 {
		t.Errorf("healthy again, and due for %s", got)
	}
	age(4500, 14*time.Minute+2*time.Second)
	if got := age(4500, 14*time.Minute+5*time.Second); got != 3*time.Second {
		t.Errorf("due again for %s, want 3 s", got)
	}
}

// What a planner cannot look at grows older all the same.
func TestOverdueGrowsBetweenLooks(t *testing.T) {
	now := time.Now()
	o := newOverdue()
	o.clock = func() time.Time { return now }
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(o)
	shown := func() map[string]float64 {
		families, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		ages := map[string]float64{}
		for _, m := range families[0].GetMetric() {
			ages[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
		return ages
	}
	if got := shown(); len(got) != len(job.Kinds()) || got["liquidation"] != 0 {
		t.Errorf("before the first look: %v", got)
	}
	o.show(map[job.Kind]time.Duration{job.Liquidation: 4 * time.Second})
	now = now.Add(20 * time.Second)
	if got := shown(); got["liquidation"] != 24 || got["order"] != 0 {
		t.Errorf("20 s after a look that found 4 s: %v", got)
	}
	if o.show(nil); shown()["liquidation"] != 0 || o.stale() {
		t.Error("nothing is due any more, as was just looked up")
	}
}
