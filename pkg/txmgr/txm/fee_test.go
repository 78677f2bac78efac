package txm

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

func TestFirstPrice(t *testing.T) {
	p := DefaultPolicy()
	rising := []uint64{1 * Gwei, 2 * Gwei, 3 * Gwei, 4 * Gwei, 5 * Gwei, 6 * Gwei, 7 * Gwei, 8 * Gwei, 9 * Gwei,
		10 * Gwei}
	three := rising[:3]
	all := map[job.Lane][]uint64{job.LiquidationLane: three, job.OrderLane: three, job.MaintenanceLane: three}
	for name, c := range map[string]struct {
		lane job.Lane
		gas  uint64
		m    Market
		want uint64
	}{
		"an empty chain":         {job.OrderLane, 1, Market{}, Gwei / 20},
		"the node asks for less": {job.OrderLane, 1, Market{Suggested: 3}, Gwei / 20},
		"the node asks for more": {job.OrderLane, 1, Market{Suggested: Gwei}, Gwei},
		"our own wei":            {job.OrderLane, 1, Market{Suggested: Gwei + 1}, Gwei},
		"no wei upon our wei":    {job.LiquidationLane, 1, Market{Suggested: Gwei + 1}, Gwei + 1},
		"p60 of three blocks":    {job.OrderLane, 1, Market{Paid: all}, 2 * Gwei},
		"p90, and a wei more":    {job.LiquidationLane, 1, Market{Paid: all}, 2*Gwei + 1},
		"p90 of ten blocks, capped": {job.LiquidationLane, 1,
			Market{Paid: map[job.Lane][]uint64{job.LiquidationLane: rising}},
			5 * Gwei},
		"the cap of the lane":         {job.MaintenanceLane, 1, Market{Paid: all}, Gwei},
		"the cost of the job, in gas": {job.LiquidationLane, 16_000_000, Market{Suggested: 90 * Gwei}, 5 * Gwei},
	} {
		if got := p.First(c.lane, c.gas, c.m); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	p.JobCost = 16_000_000 * Gwei
	if got := p.First(job.LiquidationLane, 16_000_000, Market{Suggested: 9 * Gwei}); got != Gwei {
		t.Errorf("a job may cost %d wei, and %d per gas is offered", p.JobCost, got)
	}
}

// A liquidation doubles from the floor to its cap in seven raises of two blocks: about 6 s at 0.45 s a block.
func TestLiquidationsDouble(t *testing.T) {
	p := DefaultPolicy()
	price, raises := p.First(job.LiquidationLane, 4_000_000, Market{}), 0
	for {
		next, ok := p.Raise(job.LiquidationLane, Exec, 4_000_000, SignedTx{Tip: price, Cap: price}, Market{})
		if !ok {
			break
		}
		price, raises = next, raises+1
	}
	if price != 5*Gwei || raises != 7 {
		t.Errorf("%d raises lead to %d", raises, price)
	}
}

// Nodes take a replacement from +10 % of both fields on; no price passes its caps; what frees a nonce can always outbid
// what does the job.
func TestRaise(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := DefaultPolicy()
		lane := rapid.SampledFrom([]job.Lane{job.LiquidationLane, job.OrderLane, job.MaintenanceLane}).Draw(t, "lane")
		gas := rapid.Uint64Range(EmptyGas, MaxGas).Draw(t, "gas")
		before := SignedTx{Tip: rapid.Uint64Range(1, 6*Gwei).Draw(t, "tip")}
		before.Cap = before.Tip + rapid.Uint64Range(0, Gwei).Draw(t, "more")
		m := Market{Suggested: rapid.Uint64Range(0, 20*Gwei).Draw(t, "market")}
		price, ok := p.Raise(lane, Exec, gas, before, m)
		least := (before.Cap*110 + 99) / 100
		switch {
		case ok && price < least:
			t.Fatalf("%d after %d: no node takes that", price, before.Cap)
		case ok && (price > p.Of(lane).Cap || price*gas > p.JobCost):
			t.Fatalf("%d is above the caps", price)
		case !ok && least <= min(p.Of(lane).Cap, p.JobCost/gas):
			t.Fatal("there was room")
		}
		if before.Cap <= p.Of(lane).Cap {
			if _, ok := p.Raise(lane, Cancel, EmptyGas, before, m); !ok {
				t.Fatal("a nonce cannot be freed")
			}
		}
	})
}

// Caps are lowered while transactions are in flight, as when the markets calm down or an operator says so: a nonce can
// be freed of what paid more, within what a job may cost, but nothing is executed above the cap.
func TestRaiseAboveALoweredCap(t *testing.T) {
	p, before := DefaultPolicy(), SignedTx{Gas: 4_000_000, Tip: 10 * Gwei, Cap: 10 * Gwei}
	price, ok := p.Raise(job.LiquidationLane, Cancel, EmptyGas, before, Market{})
	if !ok || price != 11*Gwei {
		t.Errorf("freed at %d, %t", price, ok)
	}
	if price, ok := p.Raise(job.LiquidationLane, Exec, before.Gas, before, Market{}); ok {
		t.Errorf("executed at %d", price)
	}
	if price, ok := p.Raise(job.LiquidationLane, Cancel, EmptyGas,
		SignedTx{Gas: EmptyGas, Tip: 11 * Gwei, Cap: 11 * Gwei},
		Market{}); ok {
		t.Errorf("freed once more, at %d", price)
	}
	before.Cap = p.JobCost / EmptyGas
	if price, ok := p.Raise(job.LiquidationLane, Cancel, EmptyGas, before, Market{}); ok {
		t.Errorf("freed for more than a job may cost, at %d", price)
	}
}

func TestLanes(t *testing.T) {
	lanes := map[job.Kind]job.Lane{job.Liquidation: job.LiquidationLane, job.Adl: job.LiquidationLane,
		job.AdlState: job.LiquidationLane, job.Order: job.OrderLane}
	for _, k := range job.Cancels() {
		lanes[k] = job.CleanupLane
	}
	for _, k := range slices.Concat(job.Kinds(), job.Cancels(), []job.Kind{Filler}) {
		want, known := lanes[k]
		if !known {
			want = job.MaintenanceLane
		}
		if got := k.Lane(); got != want {
			t.Errorf("%s pays as %s, want %s", k, got, want)
		}
	}
}

func TestPolicyValidate(t *testing.T) {
	valid := func(p Policy) bool {
		return p.Validate() == nil
	}
	if !valid(DefaultPolicy()) {
		t.Error("the default is not valid")
	}
	for name, spoil := range map[string]func(*Policy){
		"cap below floor":         func(p *Policy) { p.Order.Cap = p.Floor - 1 },
		"nothing is affordable":   func(p *Policy) { p.JobCost = MaxGas },
		"a day below a job":       func(p *Policy) { p.Budget.Day = Wei(chain.U64(p.JobCost - 1)) },
		"a reserve above the day": func(p *Policy) { p.Budget.Reserve = MustBNB("8.1") },
	} {
		p := DefaultPolicy()
		spoil(&p)
		if valid(p) {
			t.Errorf("%s: accepted", name)
		}
	}
}
