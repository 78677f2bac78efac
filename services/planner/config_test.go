package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
)

// A lane that nobody takes is refused at start, and so is what was meant for somebody else.
func TestBindings(t *testing.T) {
	a, b := chain.Address{100}, chain.Address{101}
	for name, c := range map[string]struct {
		bindings []Binding
		want     string // in the error; empty where there is none
	}{
		"nobody is bound": {nil, ""},
		"one for liquidations": {[]Binding{{a, []string{"liquidation"}}, {b, []string{"order", "maintenance"}}},
			""},
		"the other takes all": {[]Binding{{a, []string{"liquidation"}}}, ""},
		"no signer for a lane": {[]Binding{{a, []string{"order"}}, {b, []string{"maintenance"}}},
			"the lane liquidation"},
		"none for another": {[]Binding{{a, []string{"liquidation"}}, {b, []string{"order"}}},
			"the lane maintenance"},
		"somebody else": {[]Binding{{chain.Address{9}, []string{"order"}}}, "is not among keeper.signers"},
		"bound twice": {[]Binding{{a, []string{"order"}}, {a, []string{"liquidation"}}},
			"bindings[1]: signer"},
		"no lanes":                 {[]Binding{{a, nil}}, "has no lanes"},
		"a lane that nobody knows": {[]Binding{{a, []string{"liquidations"}}}, `"liquidations" is no lane`},
	} {
		cfg := DefaultConfig()
		cfg.Keeper.Signers, cfg.Planner.Bindings = []chain.Address{a, b}, c.bindings
		err := cfg.Validate()
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: one mistake, and several lines: %v", name, err)
		}
	}
}

// Sweeps that are too rare for who waits for a job's next word are refused.
func TestRareSweepsAreRefused(t *testing.T) {
	for every, want := range map[time.Duration]string{
		100 * time.Millisecond:                 "",
		job.SaidEvery:                          "",
		job.SaidEvery + time.Millisecond:       "sweep_interval: 10.001s is not between 100ms and 10s",
		10 * time.Minute:                       "sweep_interval: 10m0s is not between 100ms and 10s",
		100*time.Millisecond - time.Nanosecond: "sweep_interval: 99.999999ms is not between 100ms and 10s",
	} {
		if err := (Settings{SweepInterval: every}).Validate(); fmt.Sprint(err) != cmp.Or(want, "<nil>") {
			t.Errorf("%s: %v, want %q", every, err, want)
		}
	}
}

// Liquidations and deleveraging have a signer of their own where one is bound to their lane.
func TestBoundSignersAreRoutedTo(t *testing.T) {
	d := newFixture()
	cfg := Config{Keeper: wire.Config{Signers: []chain.Address{{100}, {101}}}, Planner: Settings{Bindings: []Binding{
		{chain.Address{100}, []string{"liquidation"}}, {chain.Address{101}, []string{"order", "maintenance"}}}}}
	d.signers = cfg.signers()
	d.out.Store(&[]chain.Address{{100}}) // whose lane has no other
	d.load(long(alice, 1050), long(bob, 1010), order(perp.MarketIncrease, 0), order(perp.MarketDecrease, 0))
	signers := map[job.Kind]chain.Address{job.Liquidation: {100}, job.Order: {101}}
	got := d.jobs(t)
	if len(got) < 3 {
		t.Fatalf("jobs: %v", ids(got))
	}
	for _, j := range got {
		if j.Signer != signers[j.Kind] {
			t.Errorf("%s goes to %s", j.ID, j.Signer)
		}
	}
}

// NON-15: a signer that is out gets no job, as long as another one takes its lane.
func TestSignersThatAreOutArePassedBy(t *testing.T) {
	d := newFixture()
	d.load(long(alice, 1050), long(bob, 1010), order(perp.MarketIncrease, 0))
	for _, out := range []chain.Address{{100}, {101}} {
		p := &Planner{finder: d.finder}
		ctx, stop := context.WithCancel(t.Context())
		if err := p.passBy(ctx, func(context.Context) ([]chain.Address, error) {
			stop()
			return []chain.Address{out}, nil
		}); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		for _, j := range d.jobs(t) {
			if j.Signer == out || j.Signer.IsZero() {
				t.Errorf("%s goes to %s while %s is out", j.ID, j.Signer, out)
			}
		}
	}
}
