package planner

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/service"
)

// sliced is a planner that notes what it publishes.
type sliced struct {
	*Planner
	said map[string]job.Job // as it was last published
}

// newSliced is a planner of a state whose slices take this long.
func newSliced(state *partitioned, slice time.Duration) *sliced {
	s := &sliced{said: map[string]job.Job{},
		Planner: newPlanner(DefaultConfig(), zerolog.Nop(), NewMetrics(prometheus.NewRegistry()), state)}
	s.finder.signers = job.NewSigners([]chain.Address{{100}}, nil)
	s.publish = func(_ context.Context, jobs []job.Job) error {
		for _, j := range jobs {
			s.said[j.ID] = j
		}
		return nil
	}
	s.stateReady, s.jobsReady = new(service.Condition), new(service.Condition)
	s.shards.handover, s.work.slice = 0, slice
	return s
}

// finish makes all slices that are left.
func (s *sliced) finish(ctx context.Context) (err error) {
	for err == nil && (s.work.on() || s.sweeping.on()) {
		err = s.slice(ctx)
	}
	return err
}

// jobs returns what is due by id.
func (s *sliced) jobs() map[string]job.Job {
	jobs := map[string]job.Job{}
	for _, j := range s.live.all() {
		jobs[j.ID] = j
	}
	return jobs
}

// fourMarkets follow two prices.
func fourMarkets() (markets []perp.Market) {
	for i := range byte(4) {
		m := ethMarket
		if i%2 == 1 {
			m = btcMarket
		}
		m.MarketToken = chain.Address{40, i}
		markets = append(markets, m)
	}
	return markets
}

// The same reports, states, partitions and sweeps come to the same jobs whether each pass is made as a whole or a
// market at a time, with whatever happens in between; and all of them have been published as they are.
func TestPassInPiecesFindsWhatAWholeOneFinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		state := &partitioned{generation: 1, rev: 1, rows: map[int][]perp.Row{}}
		for i, m := range fourMarkets() {
			state.rows[0] = append(state.rows[0], m)
			for n := range byte(2) {
				p := long(chain.Address{50, n}, 1050)
				p.Market = m.MarketToken
				p.PositionKey = perp.PositionKey(p.Account, p.Market, p.CollateralToken, p.IsLong)
				state.rows[(i+int(n))%2] = append(state.rows[(i+int(n))%2], p)
			}
		}
		whole, pieces := newSliced(state, time.Hour), newSliced(state, 0)
		both := func(do func(*sliced) error) {
			for _, s := range []*sliced{whole, pieces} {
				if err := do(s); err != nil {
					t.Fatal(err)
				}
			}
		}
		reload := func(s *sliced) error { return (&Stepper{s.Planner}).Reload(ctx) }
		ms := uint64(nowMs)
		report := func(token chain.Address, p chain.Uint) {
			both(func(s *sliced) error {
				(&fixture{quotes: s.quotes}).report(token, p, ms)
				return s.tick(ctx)
			})
		}
		report(usdc, chain.Pow10(24))
		both(func(s *sliced) error { s.shards.assign([]int{0, 1}); return reload(s) })
		t.Repeat(map[string]func(*rapid.T){
			"price": func(t *rapid.T) {
				ms += rapid.SampledFrom([]uint64{100, 1000, 40_000}).Draw(t, "pause")
				token := rapid.SampledFrom([]chain.Address{eth, btc}).Draw(t, "token")
				report(token, dollarsPerEther(rapid.SampledFrom([]uint64{4500, 4600, 5000}).Draw(t, "price")))
			},
			"state": func(t *rapid.T) {
				rows := state.rows[rapid.IntRange(0, 1).Draw(t, "partition")]
				at := rapid.IntRange(0, len(rows)-1).Draw(t, "row")
				if p, is := rows[at].(perp.Position); is {
					p.Changes++
					dollars := chain.U64(rapid.Uint64Range(900, 1100).Draw(t, "collateral"))
					p.CollateralAmount = dollars.Mul(chain.Pow10(6))
					rows[at] = p
				}
				state.rev++
				both(reload)
			},
			"partitions": func(t *rapid.T) {
				mine := rapid.SampledFrom([][]int{{}, {0}, {1}, {0, 1}}).Draw(t, "partitions")
				both(func(s *sliced) error { s.shards.assign(mine); return reload(s) })
			},
			"slices": func(t *rapid.T) {
				for range rapid.IntRange(1, 5).Draw(t, "slices") {
					if err := pieces.slice(ctx); err != nil {
						t.Fatal(err)
					}
				}
			},
			"sweep": func(t *rapid.T) {
				clear(whole.said)
				clear(pieces.said)
				pieces.beginSweep()
				if err := whole.sweep(ctx); err != nil {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) {
				if !rapid.Bool().Draw(t, "look") {
					return
				}
				if err := pieces.finish(ctx); err != nil {
					t.Fatal(err)
				}
				want, got := whole.jobs(), pieces.jobs()
				if !reflect.DeepEqual(want, got) {
					t.Fatalf("in pieces due: %+v\nas a whole: %+v", got, want)
				}
				for id, j := range want {
					if whole.said[id].DueSinceMs != j.DueSinceMs || pieces.said[id].DueSinceMs != j.DueSinceMs {
						t.Fatalf("%s, born at %d, was not published", id, j.DueSinceMs)
					}
				}
			},
		})
	})
}

// Whatever is left of a pass, a market whose price has moved is looked at after those that have waited for longer, and
// one of the pass between each of them; every market of both is looked at once.
func TestPricesComeBetweenTheSlicesOfAPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, start := newWorklist(), time.Unix(1, 0)
		w.slice = 0
		markets := rapid.SliceOfNDistinct(rapid.Byte(), 1, 20, rapid.ID).Draw(t, "markets")
		pass := map[chain.Address]bool{}
		for _, m := range markets {
			pass[chain.Address{m}] = true
		}
		w.begin(maps.Clone(pass), false)
		moved := rapid.SliceOfNDistinct(rapid.Byte(), 0, 20, rapid.ID).Draw(t, "moved")
		for i, m := range moved {
			w.move(map[chain.Address]bool{{m}: true}, start.Add(time.Duration(i)))
		}
		seen := map[chain.Address]int{}
		for looks := 1; w.on(); looks++ {
			var l looked
			for m := range w.next(time.Now(), &l) {
				if _, before := seen[m]; before {
					t.Fatalf("%s is looked at again", m)
				}
				seen[m] = looks
			}
			w.end()
		}
		for i, m := range moved {
			if at := seen[chain.Address{m}]; at == 0 || at > 2*(i+1) {
				t.Fatalf("number %d of those that moved is looked at as number %d", i+1, at)
			}
		}
		for m := range pass {
			if seen[m] == 0 {
				t.Fatalf("%s is not looked at", m)
			}
		}
	})
}

// A pass that is cut short leaves what it has not looked at as it was: what is due stays due, with its due time.
func TestPassEndsWithItsContext(t *testing.T) {
	d := newFixture()
	d.load(long(alice, 1050), order(perp.MarketIncrease, 0))
	want := d.jobs(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = d.findAll(ctx, maps.Keys(d.everywhere()), d.moment()) // that ctx has ended its caller knows
	got := d.live.all()
	if d.live.order(got); !slices.Equal(ids(got), ids(want)) {
		t.Errorf("due: %v, want %v", ids(got), ids(want))
		return
	}
	for i := range want {
		if got[i].DueSinceMs != want[i].DueSinceMs {
			t.Errorf("%s is born at %d, want %d", want[i].ID, got[i].DueSinceMs, want[i].DueSinceMs)
		}
	}
}
