package planner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
)

// brokers keep what arrives, and take nothing while they are down: whoever publishes then does not know what arrived.
type brokers struct {
	down    bool
	arrived map[string]job.Job
	unknown map[string]bool // jobs whose last publication failed
}

func (b *brokers) publish(_ context.Context, jobs []job.Job) error {
	for _, j := range jobs {
		if b.unknown[j.ID] = b.down; !b.down {
			b.arrived[j.ID] = j
		}
	}
	if b.down {
		return errors.New("the brokers are down")
	}
	return nil
}

// eightPositions are two in each of four markets, all of them due at 4500 dollars for an ether.
func eightPositions() *partitioned {
	state := &partitioned{generation: 1, rev: 1, rows: map[int][]perp.Row{}}
	for i, m := range fourMarkets() {
		state.rows[0] = append(state.rows[0], m)
		for n := range byte(2) {
			p := long(chain.Address{50, n}, 900)
			p.Market = m.MarketToken
			p.PositionKey = perp.PositionKey(p.Account, p.Market, p.CollateralToken, p.IsLong)
			state.rows[(i+int(n))%2] = append(state.rows[(i+int(n))%2], p)
		}
	}
	return state
}

// heal gives the positions of a market so much collateral that they are not due.
func (s *partitioned) heal(market chain.Address) {
	for _, rows := range s.rows {
		for i, row := range rows {
			if p, is := row.(perp.Position); is && p.Market == market {
				p.CollateralAmount, p.Changes = chain.U64(5000).Mul(chain.Pow10(6)), p.Changes+1
				rows[i] = p
			}
		}
	}
	s.rev++
}

// newPassing is a planner that looks at one market in each slice, with prices and without a state yet.
func newPassing(state *partitioned) (*sliced, *brokers) {
	s, b := newSliced(state, 0), &brokers{arrived: map[string]job.Job{}, unknown: map[string]bool{}}
	s.publish = b.publish
	d := fixture{quotes: s.quotes}
	d.report(usdc, chain.Pow10(24), nowMs)
	d.report(eth, dollarsPerEther(4500), nowMs)
	d.report(btc, dollarsPerEther(4500), nowMs)
	s.shards.assign([]int{0, 1})
	return s, b
}

func (s *sliced) reloaded(ctx context.Context) error { return (&Stepper{s.Planner}).Reload(ctx) }

// anew returns the jobs that a planner finds which has just been started.
func anew(t *testing.T, state *partitioned) map[string]job.Job {
	t.Helper()
	s, _ := newPassing(state)
	if err := errors.Join(s.reloaded(t.Context()), s.finish(t.Context())); err != nil {
		t.Fatal(err)
	}
	return s.jobs()
}

// Whichever slices of passes and sweeps cannot publish, all that is due arrives once the brokers are back, and nothing
// is left of which nobody knows whether it did.
func TestBrokersFailBetweenSlices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := t.Context()
		state := eightPositions()
		s, b := newPassing(state)
		failed := false // a pass has failed, and is to be made again
		try := func(err error) {
			if failed = failed || err != nil; err != nil && !b.down {
				t.Fatal(err)
			}
		}
		try(s.reloaded(ctx))
		ms := uint64(nowMs)
		t.Repeat(map[string]func(*rapid.T){
			"price": func(t *rapid.T) {
				ms += 1000
				(&fixture{quotes: s.quotes}).report(rapid.SampledFrom([]chain.Address{eth, btc}).Draw(t, "token"),
					dollarsPerEther(rapid.SampledFrom([]uint64{4500, 6000}).Draw(t, "price")), ms)
				try(s.tick(ctx))
			},
			"state":   func(*rapid.T) { state.rev++; try(s.reloaded(ctx)) },
			"slice":   func(*rapid.T) { try(s.slice(ctx)) },
			"sweep":   func(*rapid.T) { s.beginSweep() },
			"brokers": func(*rapid.T) { b.down = !b.down },
			"": func(t *rapid.T) {
				if !rapid.Bool().Draw(t, "look") {
					return
				}
				b.down = false
				try(s.finish(ctx))
				if failed { // as the plan does after a while
					failed = false
					try(s.reloaded(ctx))
					try(s.finish(ctx))
				}
				for id, j := range s.jobs() {
					if b.unknown[id] || b.arrived[id].DueSinceMs != j.DueSinceMs {
						t.Fatalf("%s is due, and nobody knows whether it arrived", id)
					}
				}
				if s.live.lost {
					t.Fatal("the planner believes that something is lost")
				}
			},
		})
	})
}

// A state that is halted in the middle of a pass or a sweep publishes nothing more; when it goes on, what is published
// is what a planner finds that starts then, whether or not the brokers failed before.
func TestHaltBetweenSlices(t *testing.T) {
	for slices := range 6 {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("after %d slices, lost %t", slices, lost), func(t *testing.T) {
				state := eightPositions()
				s, b := newPassing(state)
				passTo(t, s, b, slices, lost)

				state.halted = "block 5 has gone"
				clear(b.arrived)
				if err := s.reloaded(t.Context()); err != nil {
					t.Fatal(err)
				}
				(&fixture{quotes: s.quotes}).report(eth, dollarsPerEther(4500), nowMs+1000)
				if err := errors.Join(s.tick(t.Context()), s.finish(t.Context())); err != nil {
					t.Fatal(err)
				}
				if len(b.arrived) > 0 {
					t.Errorf("published by a halted state: %v", idsOf(b.arrived))
				}

				state.halted = ""
				state.heal(fourMarkets()[0].MarketToken)
				state.heal(fourMarkets()[3].MarketToken)
				s.goesOn(t, state, b)
			})
		}
	}
}

// A switch of generation in the middle of a pass or a sweep goes on with the old one until the new one is there; from
// then on nothing of the old one is published, whether or not the brokers failed before.
func TestGenerationIsSwitchedBetweenSlices(t *testing.T) {
	for slices := range 6 {
		for _, lost := range []bool{false, true} {
			t.Run(fmt.Sprintf("after %d slices, lost %t", slices, lost), func(t *testing.T) {
				state := eightPositions()
				s, b := newPassing(state)
				passTo(t, s, b, slices, lost)

				state.generation = 2
				state.heal(fourMarkets()[0].MarketToken)
				state.heal(fourMarkets()[3].MarketToken)
				var held []func()
				s.loads.spawn = func(load func()) { held = append(held, load) }
				if err := errors.Join(s.reload(t.Context()), s.slice(t.Context())); err != nil {
					t.Fatal(err)
				}
				if s.book.generation != 1 {
					t.Fatal("the new generation was taken over before it was there")
				}
				s.loads.spawn = func(load func()) { load() }
				if b.down = lost; lost { // the last words of the old generation are lost
					_ = s.announce(t.Context(), s.live.all(), false)
				}
				b.down = false
				clear(b.arrived)
				held[0]()
				s.goesOn(t, state, b)
				for id, j := range b.arrived {
					if j.Evidence.Generation != 2 {
						t.Errorf("%s of generation %d was published", id, j.Evidence.Generation)
					}
				}
			})
		}
	}
}

// passTo begins a pass and a sweep, and makes so many slices of them. If something is to be lost, the last one finds
// the brokers down.
func passTo(t *testing.T, s *sliced, b *brokers, slices int, lost bool) {
	t.Helper()
	if err := s.reloaded(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.beginSweep()
	for n := range slices {
		b.down = lost && n == slices-1
		if err := s.slice(t.Context()); err != nil && !b.down {
			t.Fatal(err)
		}
	}
	b.down = false
}

// goesOn takes in what the state is now, and demands that exactly what is due by it is published.
func (s *sliced) goesOn(t *testing.T, state *partitioned, b *brokers) {
	t.Helper()
	if err := errors.Join(s.reloaded(t.Context()), s.finish(t.Context())); err != nil {
		t.Fatal(err)
	}
	want := anew(t, state)
	if got := s.jobs(); !maps.EqualFunc(want, got, func(a, b job.Job) bool { return a.DueSinceMs == b.DueSinceMs }) {
		t.Errorf("due: %v, want %v", idsOf(got), idsOf(want))
	}
	if got := idsOf(b.arrived); !slices.Equal(got, idsOf(want)) {
		t.Errorf("published: %v, want %v", got, idsOf(want))
	}
}

func idsOf(jobs map[string]job.Job) []string { return slices.Sorted(maps.Keys(jobs)) }
