package web

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/status"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/pg/txstore/txstoretest"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/services/console/chart"
)

// TIER-16: jobs that a tier executed that is not the first stand out, beside this keeper's own; what a process counted
// before the console looked is not of the hour, and one that was started anew has counted from zero.
func TestTakeoversStandOut(t *testing.T) {
	counted := atomic.Int64{}
	sender := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "# TYPE sender_tier_executed_total counter\n"+
			"sender_tier_executed_total{kind=\"liquidation\",tier=\"2\"} %d\n"+
			"sender_tier_executed_total{kind=\"order\",tier=\"1\"} 900\n", counted.Load())
	}))
	defer sender.Close()
	d := txstoretest.New(t, 2)
	r := txm.Receipt{TxHash: d.MustClaim(t, d.Intents[0], 0, 0).Hash, Block: chain.BlockRef{Number: 1,
		Hash: chain.Hash{1}}, Outcome: job.Done, OK: true, GasUsed: 21_000, GasPrice: 5}
	if err := txstore.NewIntents(d.DB).Record(t.Context(), d.Fence, r); err != nil {
		t.Fatal(err)
	}
	c := &console{Deps: Deps{DB: d.DB, Log: zerolog.Nop(), Now: time.Now,
		Processes: []Process{{"planner", "http://127.0.0.1:1"}, {"sender", sender.URL}},
		Tier:      tier.Config{Enabled: true, Priority: 1, Tiers: 2}}}
	for _, n := range []int64{7, 10, 2} { // 3 more, and 2 of a process that began anew
		counted.Store(n)
		g, landed, err := c.glance(t.Context(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		c.hour.add(g, landed, c.Now())
	}
	drawn, taken := c.executedChart()
	for _, want := range []string{`class="t2 k1"`, "tier 2, liquidations <b>5</b>", `class="t1 k2"`,
		"tier 1, this keeper, orders <b>1</b>", "6 in all, 5 of them by a tier that is not the first"} {
		if !strings.Contains(string(drawn), want) {
			t.Errorf("no %s in\n%s", want, drawn)
		}
	}
	if taken != 5 {
		t.Errorf("%d were taken over", taken)
	}
	for _, s := range c.road()[2:] {
		if s.Last == "" || s.Most == "" || !strings.Contains(string(s.Line), "p50 "+s.Middle) {
			t.Errorf("%+v", s)
		}
	}
}

// An hour has no more looks than fit into it, and what is read again is not there twice.
func TestAnHourIsBounded(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	at := func(before time.Duration) pg.Landed {
		return pg.Landed{SeenMs: uint64(now.Add(-before).UnixMilli()), GasPrice: uint64(before / time.Second)}
	}
	var h hour
	for i := range 2 * looksKept {
		h.add(glance{at: now.Add(time.Duration(i-2*looksKept) * lookEvery)}, nil, now)
	}
	h.add(glance{at: now}, []pg.Landed{at(10 * time.Second), at(30 * time.Second), at(59 * time.Minute)}, now)
	h.add(glance{at: now}, []pg.Landed{at(0), at(10 * time.Second), at(20 * time.Second)}, now)
	h.add(glance{at: now}, nil, now.Add(2*time.Minute))
	p := h.past(now)
	var ages []uint64
	for _, l := range p.landed {
		ages = append(ages, l.GasPrice)
	}
	if len(p.looks) != looksKept || !slices.Equal(ages, []uint64{0, 10, 20, 30}) {
		t.Errorf("%d looks, landed %d s ago", len(p.looks), ages)
	}
}

// A console that has just begun shows a quarter of an hour, and what was there before it as far as the database knows.
func TestPicturesBeginWithWhatIsKnown(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for first, want := range map[time.Duration]int{0: 15, 14 * time.Minute: 15, 16 * time.Minute: 30, 50 * time.Minute: 60} {
		var h hour
		h.add(glance{at: now, head: chart.At(perp.U64(5))}, []pg.Landed{{SeenMs: uint64(now.Add(-first).UnixMilli())}}, now)
		p := h.past(now)
		points := p.track(func(g glance) chart.Point { return g.head })
		if p.minutes != want || len(points) != 6*want || !points[len(points)-1].Known || points[0].Known {
			t.Errorf("since %s: %d minutes, %d points", first, p.minutes, len(points))
		}
	}
}

// purse is a node whose signers have a balance; what else is asked of it, it does not know.
type purse struct {
	Node

	wei uint64
}

func (p purse) Head(context.Context) (chain.BlockRef, error) {
	return chain.BlockRef{Number: 1, TimeMs: uint64(time.Now().UnixMilli())}, nil
}
func (p purse) Balance(context.Context, chain.Address) (perp.Uint, error) {
	return perp.U64(p.wei), nil
}
func (p purse) GasPrice(context.Context) (uint64, error) { return 3_000_000_000, nil }

// A balance is shown in the hours that it lasts, with its slope; what was paid for gas, beside the node's suggestion.
func TestBalancesLast(t *testing.T) {
	signer, now := chain.Address{0xaa}, time.Unix(1_700_000_000, 0)
	c := &console{Deps: Deps{DB: pgtest.DB(t), Log: zerolog.Nop(), Now: func() time.Time { return now }}}
	if got := c.fuelOf(signer); got != (fuel{}) {
		t.Errorf("of a signer that nobody asked for: %+v", got)
	}
	if err := txstore.NewLeases(c.DB).Register(t.Context(), signer, 56); err != nil {
		t.Fatal(err)
	}
	spent := pg.Landed{Signer: signer, SeenMs: uint64(now.Add(-30 * time.Minute).UnixMilli()), GasUsed: 100_000,
		GasPrice: 1_000_000_000} // 0.0001 in half an hour
	for i, wei := range []uint64{3e15, 2e15} {
		c.Node = purse{wei: wei}
		g, _, err := c.glance(t.Context(), time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		g.at = now.Add(time.Duration(i-1) * 30 * time.Minute)
		c.hour.add(g, []pg.Landed{spent}, now)
	}
	got := c.fuelOf(signer)
	if got.Lasts != "10 h" || got.Slope != "−0.002 BNB an hour" || !strings.Contains(string(got.Line), "<path") {
		t.Errorf("%+v", got)
	}
	gas := string(c.gasChart())
	for _, want := range []string{"paid, middle of each minute <b>1 Gwei</b>", "the node&#39;s suggestion <b>3 Gwei</b>"} {
		if !strings.Contains(gas, want) {
			t.Errorf("no %s in\n%s", want, gas)
		}
	}
}

// Every kind of job has a colour, and every number of a tier.
func TestEveryExecutionHasItsColour(t *testing.T) {
	c := &console{Deps: Deps{Now: time.Now, Tier: tier.Config{Enabled: true, Priority: 2}}}
	executed := map[status.Executions]uint64{}
	for _, kind := range slices.Concat(job.Kinds(), job.Cancels()) {
		for by := range 7 {
			executed[status.Executions{Tier: by, Kind: kind}] = 1
		}
	}
	c.hour.add(glance{at: time.Now(), executed: executed}, nil, time.Now())
	drawn, _ := c.executedChart()
	style, err := static.ReadFile("static/console.css")
	if err != nil {
		t.Fatal(err)
	}
	for by := range 5 {
		if class := fmt.Sprintf(".t%d", by); by != 2 && !strings.Contains(string(drawn), class[1:]+" k1") ||
			!strings.Contains(string(style), class) {
			t.Errorf("tier %d has no colour", by)
		}
	}
	for _, text := range []string{"k0", "<i class=\"t2"} { // no lane is unknown; what this keeper did itself, it knows better
		if strings.Contains(string(drawn), text) {
			t.Errorf("%s in\n%s", text, drawn)
		}
	}
}
