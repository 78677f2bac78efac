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
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/pg/txstore/txstoretest"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmgr/txm"
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
		Processes: []status.Address{{Name: "planner", URL: "http://127.0.0.1:1"}, {Name: "sender", URL: sender.URL}},
		Tier:      tier.Config{Enabled: true, Priority: 1, Tiers: 2}}}
	w := new(witness)
	for _, n := range []int64{7, 10, 2} { // 3 more, and 2 of a process that began anew
		counted.Store(n)
		c.glance(t.Context(), w)
	}
	drawn, taken := c.executedChart(c.past())
	for _, want := range []string{`class="t2 k1"`, "tier 2, liquidations <b>5</b>", `class="t1 k2"`,
		"this keeper, orders <b>1</b>", "6 in all, 5 of them by a tier that is not the first"} {
		if !strings.Contains(string(drawn), want) {
			t.Errorf("no %s in\n%s", want, drawn)
		}
	}
	if taken != 5 {
		t.Errorf("%d were taken over", taken)
	}
	for _, s := range c.past().road()[2:] {
		if s.Last == "" || s.Most == "" || !strings.Contains(string(s.Line), "p50 "+s.Middle) {
			t.Errorf("%+v", s)
		}
	}
}

// What is older than an hour is forgotten, and what is kept does not change under who reads it.
func TestAnHourIsForgotten(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	c := &console{Deps: Deps{Now: func() time.Time { return now }}}
	for range 3 * int(time.Hour/lookEvery) {
		now = now.Add(lookEvery)
		c.keep(map[any]chain.Uint{headAge: chain.U64(uint64(now.Unix()))}, nil)
	}
	p := c.past()
	first := p.marks[headAge][0]
	if n := len(p.marks[headAge]); n != int(time.Hour/lookEvery) || p.minutes != 60 {
		t.Errorf("%d looks are kept, %d minutes are shown", n, p.minutes)
	}
	now = now.Add(2 * time.Hour)
	c.keep(map[any]chain.Uint{stateAge: chain.U64(1)}, nil)
	if _, kept := c.past().marks[headAge]; kept || p.marks[headAge][0] != first {
		t.Error("what nobody says any more is kept, or another one's hour has changed")
	}
}

// A console that has just begun shows a few minutes, and what was there before it as far as the database knows.
func TestPicturesBeginWithWhatIsKnown(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	for first, want := range map[time.Duration]int{0: 6, 5 * time.Minute: 6, 6 * time.Minute: 12,
		30 * time.Minute: 48, 50 * time.Minute: 60} {
		c := &console{Deps: Deps{Now: func() time.Time { return now }}}
		c.keep(map[any]chain.Uint{headAge: chain.U64(5)}, []pg.Landed{{SeenMs: uint64(now.Add(-first).UnixMilli())}})
		p := c.past()
		values := p.highest(p.marks[headAge])
		if p.minutes != want || len(values) != want || values[want-1] == nil || values[0] != nil {
			t.Errorf("since %s: %d minutes, %v", first, p.minutes, values)
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
func (p purse) Balance(context.Context, chain.Address) (chain.Uint, error) {
	return chain.U64(p.wei), nil
}
func (p purse) GasPrice(context.Context) (uint64, error) { return 3_000_000_000, nil }

// A balance is shown in the hours that it lasts, with its slope; what was paid for gas, beside the node's suggestion.
func TestBalancesLast(t *testing.T) {
	end := time.Unix(1_700_000_000, 0)
	now := end.Add(-30 * time.Minute)
	d := txstoretest.New(t, 0)
	signer := d.Fence.Signer
	c := &console{Deps: Deps{DB: d.DB, Log: zerolog.Nop(), Now: func() time.Time { return now }}}
	if got := c.past().fuel(signer); got != (fuel{}) {
		t.Errorf("of a signer that nobody asked for: %+v", got)
	}
	for _, wei := range []uint64{3e15, 2e15} {
		c.Node = purse{wei: wei}
		c.glance(t.Context(), new(witness))
		now = end
	}
	c.keep(nil, []pg.Landed{{Signer: signer, SeenMs: uint64(end.Add(-30 * time.Minute).UnixMilli()), GasUsed: 100_000,
		GasPrice: 1_000_000_000}}) // 0.0001 in half an hour
	p := c.past()
	if got := p.fuel(signer); got.Lasts != "10 h" || got.Slope != "−0.002 BNB an hour" ||
		!strings.Contains(string(got.Line), "which lasts 10 h and moves by −0.002 BNB an hour") {
		t.Errorf("%+v", got)
	}
	gas := string(p.gasChart())
	for _, want := range []string{"paid at most <b>1 Gwei</b>", "the node&#39;s suggestion <b>3 Gwei</b>"} {
		if !strings.Contains(gas, want) {
			t.Errorf("no %s in\n%s", want, gas)
		}
	}
}

// Every kind of job has a colour, and every number of a tier; what this keeper did itself it knows better.
func TestEveryExecutionHasItsColour(t *testing.T) {
	c := &console{Deps: Deps{Now: time.Now, Tier: tier.Config{Enabled: true, Priority: 2}}}
	executed := map[any]chain.Uint{}
	for _, kind := range slices.Concat(job.Kinds(), job.Cancels()) {
		for by := range 7 {
			executed[status.Executions{Tier: by, Kind: kind}] = chain.U64(1)
		}
	}
	c.keep(executed, nil)
	drawn, _ := c.executedChart(c.past())
	style, err := static.ReadFile("static/console.css")
	if err != nil {
		t.Fatal(err)
	}
	for by := range 5 {
		for lane := range job.Lanes() {
			class := fmt.Sprintf(`class="t%d k%d"`, by, lane+1)
			if strings.Contains(string(drawn), class) != (by != 2) {
				t.Errorf("%s is drawn, or is not", class)
			}
		}
		if !strings.Contains(string(style), fmt.Sprintf(".t%d", by)) {
			t.Errorf("tier %d has no colour", by)
		}
	}
}

func TestDollars(t *testing.T) {
	for usd, want := range map[uint64]string{0: "$0", 999: "$999", 1000: "$1k", 1_226_999: "$1.22M", 45e9: "$45B",
		7e15: "$7000T"} {
		if got := dollars(chain.U64(usd).Mul(perp.One)); got != want {
			t.Errorf("%d: %s, want %s", usd, got, want)
		}
	}
}
