package planner

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/service"
)

// partitioned is a state in partitions, as a database would tell of it.
type partitioned struct {
	generation int
	rev        int64
	halted     string
	rows       map[int][]perp.Row
	fees       map[chain.Hash]perp.Parameter
	gone       []chain.Hash // orders
	failing    error
	feeless    error // of looking up fees alone
}

func (s *partitioned) look(partitions []int) pg.Changes {
	at := chain.BlockRef{Number: uint64(s.rev), Hash: chain.Hash{byte(s.rev)}, TimeMs: nowMs}
	c := pg.Changes{Progress: pg.Progress{Generation: s.generation, Partitions: 2, Watermark: at, Halted: s.halted}}
	c.Seen = pg.Seen{Generation: s.generation, Partitions: partitions, Revs: map[int]int64{0: s.rev, 1: s.rev}, At: at}
	return c
}

func (s *partitioned) Changes(_ context.Context, partitions []int, since pg.Seen) (pg.Changes, error) {
	c := s.look(partitions)
	if c.Reload = since.Generation != s.generation || since.Revs == nil; !c.HasView() || c.Reload {
		return c, s.failing
	}
	for _, part := range partitions {
		if since.Revs[part] == s.rev {
			continue
		}
		for _, row := range s.rows[part] {
			switch r := row.(type) {
			case perp.Position:
				c.Positions.Changed, c.Positions.Parts = append(c.Positions.Changed, r), append(c.Positions.Parts, part)
			case perp.Order:
				c.Orders.Changed, c.Orders.Parts = append(c.Orders.Changed, r), append(c.Orders.Parts, part)
			}
		}
		c.Parameters.Changed, c.Orders.Removed = slices.Collect(maps.Values(s.fees)), s.gone
	}
	return c, s.failing
}

func (s *partitioned) Parameters(_ context.Context, keys []chain.Hash) (found []perp.Parameter, err error) {
	for _, key := range keys {
		if p, known := s.fees[key]; known {
			found = append(found, p)
		}
	}
	return found, s.feeless
}

func (s *partitioned) Load(_ context.Context, partitions []int, take func(int, perp.Row) error) (pg.Changes, error) {
	c := s.look(partitions)
	if !c.HasView() {
		return c, s.failing
	}
	c.Reload = true
	err := take(0, ethMarket)
	for _, p := range s.fees {
		err = errors.Join(err, take(0, p))
	}
	for _, part := range partitions {
		for _, row := range s.rows[part] {
			err = errors.Join(err, take(part, row))
		}
	}
	return c, errors.Join(err, s.failing)
}

func (s *partitioned) MostProfitable(context.Context, pg.Gainers) ([]perp.Position, error) {
	return nil, nil
}

// sharded is a planner of such a state whose loads run when the test says so.
type sharded struct {
	*Planner
	t     *testing.T
	state *partitioned
	held  []func()
}

func newSharded(t *testing.T) *sharded {
	state := &partitioned{generation: 1, rev: 1, rows: map[int][]perp.Row{0: {long(alice, 900)}, 1: {long(bob, 900)}}}
	s := &sharded{t: t, state: state,
		Planner: newPlanner(DefaultConfig(), zerolog.Nop(), NewMetrics(prometheus.NewRegistry()), state)}
	s.finder.signers = job.NewSigners([]chain.Address{{100}}, nil)
	s.publish = func(context.Context, []job.Job) error { return nil }
	s.stateReady, s.jobsReady = new(service.Condition), new(service.Condition)
	s.shards.handover = 0
	s.loads.spawn = func(load func()) { s.held = append(s.held, load) }
	d := fixture{quotes: s.quotes}
	d.report(usdc, chain.Pow10(24), nowMs)
	d.report(eth, dollarsPerEther(4500), nowMs)
	return s
}

func (s *sharded) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// load lets the load that is under way end, and takes it in.
func (s *sharded) load() error {
	s.t.Helper()
	if len(s.held) != 1 {
		s.t.Fatalf("%d loads are under way", len(s.held))
	}
	load := s.held[0]
	s.held = nil
	load()
	return s.arrive(s.t.Context(), <-s.loads.arrived)
}

// due demands whose positions are to be liquidated.
func (s *sharded) due(what string, accounts ...chain.Address) {
	s.t.Helper()
	s.quotes.tokens[eth] = true
	s.must(s.tick(s.t.Context()))
	var got []chain.Address
	for _, j := range s.live.all() {
		got = append(got, j.Account)
	}
	slices.SortFunc(got, func(a, b chain.Address) int { return slices.Compare(a[:], b[:]) })
	if !slices.Equal(got, accounts) {
		s.t.Fatalf("%s: due of %v, want %v", what, got, accounts)
	}
}

func (s *sharded) assign(partitions ...int) {
	s.t.Helper()
	s.shards.assign(partitions)
	s.must(s.reload(s.t.Context()))
}

// What the planner has is planned while another partition is loaded, and ends at once when it is another planner's.
func TestPartitionsComeBesideThePlan(t *testing.T) {
	s := newSharded(t)
	s.assign(0)
	s.due("nothing has come")
	s.must(s.load())
	s.due("one partition", alice)
	s.assign(0, 1)
	s.due("the other one is being loaded", alice)
	s.state.rows[0] = append(s.state.rows[0], long(chain.Address{22}, 900))
	s.state.rev++
	s.must(s.reload(t.Context()))
	s.due("the state is followed meanwhile", alice, chain.Address{22})
	s.must(s.load())
	s.due("both", alice, bob, chain.Address{22})
	s.assign(1)
	s.due("the first has gone", bob)
	s.state.failing = errors.New("down")
	s.shards.assign([]int{0, 1})
	if err := s.reload(t.Context()); err == nil {
		t.Fatal("the database is down")
	}
	s.due("the database is down", bob)
	s.state.failing = nil
	s.must(s.reload(t.Context()))
	s.state.failing = errors.New("down")
	if err := s.load(); err == nil {
		t.Fatal("the load failed")
	}
	s.due("the load has failed", bob)
	s.state.failing = nil
	s.must(s.reload(t.Context()))
	s.must(s.load())
	s.due("both again", alice, bob, chain.Address{22})
	if len(s.held) != 0 {
		t.Error("more is loaded than is missing")
	}
}

// At a rebalance the group takes all partitions away before it gives them out: what comes back is not loaded again, and
// what another planner gets is planned until that one has had the time to load it.
func TestRebalanceLeavesNothingUnwatched(t *testing.T) {
	s := newSharded(t)
	s.assign(0, 1)
	s.must(s.load())
	s.must(s.load())
	s.shards.handover = time.Hour
	s.assign()
	s.due("between two generations of the group", alice, bob)
	s.assign(0)
	s.due("the other planner is loading", alice, bob)
	s.shards.handover = 0
	s.must(s.reload(t.Context()))
	s.due("the other planner has loaded", alice)
	if len(s.held) != 0 {
		t.Error("something is loaded again")
	}
}

// A switch of generation changes over when all partitions of the new one are there; what was loaded of an older one
// never joins.
func TestGenerationsAreNotMixed(t *testing.T) {
	s := newSharded(t)
	s.assign(0, 1)
	s.must(s.load())
	s.must(s.load())
	s.due("the first generation", alice, bob)
	before := maps.Clone(s.book.shards)
	s.state.generation, s.state.rows = 2, map[int][]perp.Row{0: {long(chain.Address{22}, 900)}, 1: {}}
	s.must(s.reload(t.Context()))
	s.due("the second is being loaded", alice, bob)
	s.must(s.load())
	s.due("half of it is there", alice, bob)
	if !maps.Equal(before, s.book.shards) {
		t.Error("the book is neither the one nor the other")
	}
	s.must(s.load())
	s.due("the second generation", chain.Address{22})

	s.assign(0)
	s.assign(0, 1)
	load := s.held[0]
	s.held = nil
	load() // of the second generation
	s.state.generation = 3
	s.must(s.arrive(t.Context(), <-s.loads.arrived))
	s.due("it has come too late", chain.Address{22})
	s.must(s.load())
	s.must(s.load())
	s.due("the third generation", chain.Address{22})
	if s.book.generation != 3 || len(s.book.shards) != 2 {
		t.Errorf("generation %d, %d shards", s.book.generation, len(s.book.shards))
	}
}

// What was loaded before the state was halted decides nothing after.
func TestHaltedStateDropsWhatIsBeside(t *testing.T) {
	s := newSharded(t)
	s.assign(0)
	load := s.held[0]
	s.held = nil
	load()
	s.state.halted = "block 5 has gone"
	s.must(s.arrive(t.Context(), <-s.loads.arrived))
	if s.due("halted"); s.loads.beside != nil || !s.book.block.Hash.IsZero() {
		t.Error("something is left")
	}
	s.state.halted = ""
	s.must(s.reload(t.Context()))
	s.must(s.load())
	s.due("it goes on", alice)
}

// A key of a lost branch that is given again in another partition is due once, as it is there.
func TestKeysMoveBetweenPartitions(t *testing.T) {
	d := newFixture()
	d.load(long(alice, 1050), order(perp.MarketIncrease, 0))
	c := d.changes(long(alice, 5000), order(perp.MarketIncrease, 0))
	c.Positions.Parts, c.Orders.Parts = []int{1}, []int{1}
	d.book.apply(c)
	if got := ids(d.jobs(t)); !slices.Equal(got, []string{job.OrderID(order(perp.MarketIncrease, 0).Key, 1)}) {
		t.Errorf("due: %v", got)
	}
	if d.book.shards[0].index.Len()+len(d.book.shards[0].orders) != 0 {
		t.Error("the rows are in two shards")
	}
}

// The positions of a side that other planners have are asked for before anybody is chosen to be deleveraged.
func TestDeleveragingLooksAtEveryPartition(t *testing.T) {
	d := newFixture()
	d.load(long(alice, 1050))
	s := side{ethMarket.MarketToken, true}
	if d.others.of(d.book, s, perp.One) != nil {
		t.Fatal("a planner that has all partitions asks others")
	}
	d.book.partitions = 2
	ask := d.others.of(d.book, s, perp.One)
	if _, known := ask(); known {
		t.Fatal("known without having been asked for")
	}
	d.others.store = &gaining{positions: []perp.Position{long(bob, 1050), long(alice, 1050)}}
	d.others.ask(t.Context(), d.book, func(load func()) { load() })
	if err := d.others.receive(<-d.others.arrived); err != nil {
		t.Fatal(err)
	}
	found, known := ask()
	if !known || len(found) != 1 || found[0].Account != bob {
		t.Errorf("%v, known: %t; want that of another planner alone", found, known)
	}
	if d.others.ask(t.Context(), d.book, func(func()) { t.Error("asked again at once") }); len(d.others.wanted) != 1 {
		t.Error("what is wanted is forgotten")
	}
}

type gaining struct {
	partitioned
	positions []perp.Position
}

func (g *gaining) MostProfitable(_ context.Context, q pg.Gainers) ([]perp.Position, error) {
	if !slices.Equal(q.Except, []int{0}) || q.Market != ethMarket.MarketToken || !q.IsLong {
		return nil, errors.New("another question")
	}
	return g.positions, nil
}
