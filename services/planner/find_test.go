package planner

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/risk/due"
	"perpkeeper/pkg/risk/liquidation"
)

var (
	eth, btc, usdc = chain.Address{1}, chain.Address{2}, chain.Address{3}
	ethMarket      = perp.Market{MarketToken: chain.Address{10}, IndexToken: eth, LongToken: eth, ShortToken: usdc}
	btcMarket      = perp.Market{MarketToken: chain.Address{11}, IndexToken: btc, LongToken: btc, ShortToken: usdc}
	alice, bob     = chain.Address{20}, chain.Address{21}
)

const nowMs = 1_700_000_000_000

func dollarsPerEther(usd uint64) chain.Uint { return chain.U64(usd).Mul(chain.Pow10(12)) }

// fixture is a finder with its book and its reports.
type fixture struct {
	*finder
	quotes *quotes
	at     uint64 // ms, the state's time
}

// newFixture is a fixture at nowMs with ETH at $4500 and nothing open.
func newFixture() *fixture {
	q := newQuotes(func(r bus.Record, why error) { panic(why) })
	d := &fixture{quotes: q, at: nowMs, finder: &finder{
		book: newBook(liquidation.ArmedRatio), dueTimes: newDueTimes(q), triggers: newTriggerReports(q.board),
		spacing: newSpacing(chain.Uint{}), others: newRemotePositions(nil),
		live:       newLive(),
		signers:    job.NewSigners([]chain.Address{{100}, {101}}, nil),
		unexecuted: unexecuted{metrics: NewMetrics(prometheus.NewRegistry())},
	}}
	d.load()
	d.report(btc, chain.U64(9).Mul(chain.Pow10(26)), nowMs)
	d.report(usdc, chain.Pow10(24), nowMs)
	d.report(eth, dollarsPerEther(4500), nowMs)
	return d
}

func (d *fixture) report(token chain.Address, p chain.Uint, ms uint64) {
	d.quotes.add(price.Report{Token: token, Min: p, Max: p, TimeMs: ms}, time.Now())
}

// load gives the fixture a state, all of it.
func (d *fixture) load(rows ...perp.Row) {
	*d.book = *newBook(d.book.armed)
	c := d.changes(rows...)
	c.Markets.Changed = []perp.Market{ethMarket, btcMarket}
	c.Parameters.Changed = []perp.Parameter{
		{Key: perp.DataStoreKey("MIN_COLLATERAL_FACTOR_FOR_LIQUIDATION", ethMarket.MarketToken.Hash()),
			Value: chain.Pow10(28).Bytes32()},
		{Key: perp.DataStoreKey("REQUEST_EXPIRATION_TIME"), Value: chain.U64(300).Bytes32()},
	}
	d.book.apply(c)
}

// changes are these rows, new or changed.
func (d *fixture) changes(rows ...perp.Row) pg.Changes {
	c := pg.Changes{Progress: pg.Progress{Generation: 1,
		Watermark: chain.BlockRef{Number: 7, Hash: chain.Hash{7}, TimeMs: d.at}}}
	for _, row := range rows {
		switch row := row.(type) {
		case perp.Position:
			c.Positions.Changed, c.Positions.Parts = append(c.Positions.Changed, row), append(c.Positions.Parts, 0)
		case perp.Order:
			c.Orders.Changed, c.Orders.Parts = append(c.Orders.Changed, row), append(c.Orders.Parts, 0)
		case perp.Request:
			c.Requests.Changed, c.Requests.Parts = append(c.Requests.Changed, row), append(c.Requests.Parts, 0)
		}
	}
	return c
}

func (d *fixture) moment() *due.Moment {
	m := &due.Moment{
		Block: d.book.block, Generation: d.book.generation, Rows: d.book.rows, Rules: due.Rules{FireRatio: perp.One},
		Quotes: map[chain.Address]due.Quote{},
	}
	for token := range d.book.byToken {
		if r, known := d.quotes.board.Latest(token); known {
			m.Quotes[token] = quoteOf(r)
		}
	}
	return m
}

// look finds the jobs of markets at a moment.
func (d *fixture) look(markets map[chain.Address]bool, m *due.Moment) (fresh []job.Job, failures error) {
	return d.findAll(context.Background(), maps.Keys(markets), m)
}

// jobs makes a pass over everything and returns all that is due.
func (d *fixture) jobs(t interface{ Fatal(...any) }) []job.Job {
	if _, err := d.look(d.everywhere(), d.moment()); err != nil {
		t.Fatal(err)
	}
	all := d.live.all()
	d.live.order(all)
	return all
}

func order(kind perp.OrderType, trigger uint64) perp.Order {
	return perp.Order{
		Key: chain.Hash{byte(kind), byte(trigger)}, Account: alice, Market: ethMarket.MarketToken,
		InitialCollateralToken: usdc, OrderType: kind,
		IsLong: true, TriggerPrice: dollarsPerEther(trigger), UpdatedAtTime: chain.U64(nowMs/1000 - 10),
		Status: perp.Created, Changes: 1,
		AcceptablePrice: dollarsPerEther(100_000), Birth: perp.Stamp{TimeMs: nowMs - 10_000},
	}
}

// long is a long of $10 000 opened at $5000 with so many dollars of collateral.
func long(account chain.Address, collateralUSD uint64) perp.Position {
	p := perp.Position{
		Account: account, Market: ethMarket.MarketToken, CollateralToken: usdc, IsLong: true, Status: perp.Active,
		Changes:   1,
		SizeInUsd: chain.U64(10_000).Mul(perp.One), SizeInTokens: chain.U64(2).Mul(chain.Pow10(18)),
		CollateralAmount: chain.U64(collateralUSD).Mul(chain.Pow10(6)), IncreasedAtTime: chain.U64(nowMs/1000 - 400),
	}
	p.PositionKey = perp.PositionKey(p.Account, p.Market, p.CollateralToken, p.IsLong)
	return p
}

func ids(jobs []job.Job) []string {
	var ids []string
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// LIQ-6: the lowest margin ratio comes first, and liquidations before everything else.
func TestLiquidationsComeFirst(t *testing.T) {
	d := newFixture()
	d.load(long(alice, 1050), long(bob, 1010), order(perp.MarketIncrease, 0))
	got := d.jobs(t)
	if len(got) != 3 || got[0].Account != bob || got[1].Account != alice || got[2].Kind != job.Order {
		t.Errorf("order of jobs: %v", ids(got))
	}
	if got[0].Signer != job.Route(bob, []chain.Address{{100}, {101}}) || got[0].DueSinceMs == 0 {
		t.Errorf("%+v", got[0])
	}
}

// A tick reaches the markets of its token and no other.
func TestTickReachesItsMarkets(t *testing.T) {
	d := newFixture()
	if got := d.book.reached(map[chain.Address]bool{eth: true}); len(got) != 1 || !got[ethMarket.MarketToken] {
		t.Errorf("ETH reaches %v", got)
	}
	if got := d.book.reached(map[chain.Address]bool{usdc: true}); len(got) != 2 {
		t.Errorf("USDC reaches %v", got)
	}
	d.quotes.take()
	d.report(eth, dollarsPerEther(4400), nowMs-5) // late: a newer one has been judged with
	if tokens, _ := d.quotes.take(); len(tokens) != 0 {
		t.Errorf("a late report is news of %v", tokens)
	}
}

// TIER-9: the due time of a price-born job is the first report of its unbroken run; a break gives a new due time.
func TestDueTimeOfAPriceBornJob(t *testing.T) {
	d := newFixture()
	d.report(eth, dollarsPerEther(5000), nowMs+500)
	d.load(long(alice, 1050))
	at := func(ms, usd uint64) []job.Job {
		d.report(eth, dollarsPerEther(usd), ms)
		return d.jobs(t)
	}
	if j := at(nowMs+1_700, 4500); j[0].DueSinceMs != nowMs+1_000 {
		t.Errorf("born at %d", j[0].DueSinceMs)
	}
	if j := at(nowMs+5_200, 4500); j[0].DueSinceMs != nowMs+1_000 {
		t.Errorf("after a later report born at %d", j[0].DueSinceMs)
	}
	if j := at(nowMs+6_000, 5000); len(j) != 0 {
		t.Errorf("recovered, but found %v", ids(j))
	}
	if j := at(nowMs+9_900, 4500); j[0].DueSinceMs != nowMs+9_000 {
		t.Errorf("dipped again, born at %d", j[0].DueSinceMs)
	}
}

// TIER-9: whenever a planner starts, it comes to the due time that one which was always there has known since.
func TestDueTimesAgreeAfterARestart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		always := newFixture()
		always.load(long(alice, 1050), order(perp.LimitIncrease, 4600))
		late := newFixture()
		late.load(long(alice, 1050), order(perp.LimitIncrease, 4600))
		dueTimes := map[string]uint64{}
		for second := range uint64(rapid.IntRange(1, 40).Draw(t, "seconds")) {
			usd := rapid.SampledFrom([]uint64{4400, 4500, 4550, 4700, 5000}).Draw(t, "price")
			ms := nowMs + 1000*second + rapid.Uint64Range(0, 999).Draw(t, "ms")
			always.report(eth, dollarsPerEther(usd), ms)
			late.report(eth, dollarsPerEther(usd), ms)
			dueTimes = map[string]uint64{}
			for _, j := range always.jobs(t) {
				dueTimes[j.ID] = j.DueSinceMs
			}
		}
		for _, j := range late.jobs(t) {
			if j.DueSinceMs != dueTimes[j.ID] {
				t.Fatalf("%s born at %d, for the other one at %d", j.ID, j.DueSinceMs, dueTimes[j.ID])
			}
			delete(dueTimes, j.ID)
		}
		if len(dueTimes) > 0 {
			t.Fatalf("not found after the restart: %v", dueTimes)
		}
	})
}

// Whatever changes in the state, a book that follows the changes holds what one that is loaded holds.
func TestChangesAreExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, all := newFixture(), map[chain.Hash]perp.Row{}
		for range rapid.IntRange(1, 8).Draw(t, "states") {
			var changed []perp.Row
			var removed []chain.Hash
			for i := range byte(6) {
				row := drawRow(t, i)
				key := row.RowKey().Key
				switch rapid.IntRange(0, 2).Draw(t, "fate") {
				case 0:
					all[key] = row
					changed = append(changed, row)
				case 1: // some of them were never there
					delete(all, key)
					removed = append(removed, key)
				}
			}
			c := d.changes(changed...)
			c.Positions.Removed, c.Orders.Removed, c.Requests.Removed = removed, removed, removed
			d.book.apply(c)
			fresh := newFixture()
			fresh.load(slices.Collect(maps.Values(all))...)
			got, want := ids(d.jobs(t)), ids(fresh.jobs(t))
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Fatalf("due %v, want %v", got, want)
			}
		}
	})
}

// drawRow draws the i-th row, always of the same kind: positions, orders of changing type, requests.
func drawRow(t *rapid.T, i byte) perp.Row {
	switch i % 3 {
	case 0:
		return long(chain.Address{i + 1}, rapid.Uint64Range(900, 1200).Draw(t, "collateral"))
	case 1:
		o := order(rapid.SampledFrom([]perp.OrderType{perp.MarketIncrease, perp.LimitIncrease, perp.StopIncrease}).
			Draw(t, "type"), 4400+100*uint64(i))
		o.Key, o.Changes = chain.Hash{99, i}, rapid.Uint64Range(1, 5).Draw(t, "changes")
		o.Market = rapid.SampledFrom([]perp.Market{ethMarket, btcMarket}).Draw(t, "market").MarketToken
		return o
	default:
		return perp.Request{
			Kind: perp.Deposit, Key: chain.Hash{98, i}, Market: ethMarket.MarketToken,
			UpdatedAtTime: chain.U64(nowMs / 1000),
			Status:        rapid.SampledFrom([]perp.Status{perp.Created, perp.Frozen}).Draw(t, "status"),
		}
	}
}

// PIPE-7: what another planner has been given is not due here any more.
func TestLostShardEndsItsJobs(t *testing.T) {
	d := newFixture()
	d.load(long(alice, 1050), order(perp.MarketIncrease, 0))
	if len(d.jobs(t)) != 2 {
		t.Fatal("not found")
	}
	d.load()
	if left := d.jobs(t); len(left) != 0 {
		t.Errorf("still due: %v", ids(left))
	}
}

// New jobs are published at once, those that end are forgotten, and all are there for the sweep.
func TestLive(t *testing.T) {
	a, b := job.Job{ID: "a"}, job.Job{ID: "b"}
	l := newLive()
	for i, step := range []struct {
		jobs         []job.Job
		fresh, ended []string
	}{
		{[]job.Job{a}, []string{"a"}, nil},
		{[]job.Job{a}, nil, nil},
		{[]job.Job{a, b}, []string{"b"}, nil},
		{[]job.Job{b}, nil, []string{"a"}},
		{[]job.Job{a, b}, []string{"a"}, nil},
		{nil, nil, []string{"a", "b"}},
	} {
		fresh, ended := l.update(chain.Address{1}, step.jobs)
		slices.Sort(ended)
		if !slices.Equal(ids(fresh), step.fresh) || !slices.Equal(ended, step.ended) || len(l.all()) != len(step.jobs) {
			t.Errorf("step %d: new %v, ended %v, all %v", i, ids(fresh), ended, ids(l.all()))
		}
	}
}

// Equally urgent jobs do not stand in the same order for ever: one that fails each time does not block the others.
func TestEqualsTakeTurns(t *testing.T) {
	l := newLive()
	jobs := []job.Job{{ID: "poison"}, {ID: "a"}, {ID: "b"}, {ID: "urgent", Class: 0, Ratio: chain.Uint{}}}
	for i := range jobs[:3] {
		jobs[i].Class = job.ClassRequest
	}
	first := map[string]bool{}
	for range 50 {
		l.order(jobs)
		if jobs[0].ID != "urgent" {
			t.Fatalf("order %v", ids(jobs))
		}
		first[jobs[1].ID] = true
	}
	if len(first) != 3 {
		t.Errorf("the first of equals is always one of %v", first)
	}
}

// LIQ-13: on a venue that closes whole positions, large liquidations of one market are one a block apart; small ones
// are not held.
func TestLargeLiquidationsAreSpaced(t *testing.T) {
	s := newSpacing(chain.Pow10(28)) // 1 % of the side's open interest
	interest := chain.U64(1_000_000).Mul(perp.One)
	large, small := chain.U64(10_001).Mul(perp.One), chain.U64(10_000).Mul(perp.One)
	in := func(market byte) job.Job { return job.Job{Market: chain.Address{market}} }
	for i, c := range []struct {
		market byte
		size   chain.Uint
		block  uint64
		holds  bool
	}{{1, large, 5, false}, {1, large, 5, true}, {1, small, 5, false}, {2, large, 5, false}, {1, large, 6, false},
		{1, large, 6, true}} {
		if got := s.holds(in(c.market), c.size, interest, c.block); got != c.holds {
			t.Errorf("step %d: holds %v", i, got)
		}
	}
	if newSpacing(chain.Uint{}).holds(in(1), large, interest, 5) {
		t.Error("spacing that is off holds")
	}
}

// A report that a planner does not understand as fresh makes no jobs: a feed that stopped does not liquidate anybody.
func TestNoReportNoLiquidation(t *testing.T) {
	d := newFixture()
	d.load(long(alice, 1050))
	m := d.moment()
	delete(m.Quotes, eth)
	if fresh, err := d.look(d.everywhere(), m); err != nil || len(fresh) != 0 {
		t.Errorf("found %v, %v", ids(fresh), err)
	}
}

func TestBadSettingsAreAllNamed(t *testing.T) {
	var c Config
	if bad := c.Planner.Validate(); bad == nil || c.Validate() == nil {
		t.Errorf("want two problems: %v, %v", bad, c.Validate())
	}
	c = DefaultConfig()
	c.Keeper.Signers = []chain.Address{{1}}
	if err := errors.Join(c.Validate(), c.Planner.Validate()); err != nil {
		t.Error(err)
	}
}

// TIER-11: what expires without having been executed is told of, once, and not for ever.
func TestExpiredIsTold(t *testing.T) {
	d := newFixture()
	late, later := order(perp.MarketIncrease, 0), order(perp.MarketDecrease, 0)
	late.UpdatedAtTime, later.UpdatedAtTime = chain.U64(nowMs/1000-301), chain.U64(nowMs/1000-400-reportWithinMs/1000)
	d.load(late, later)
	for range 3 {
		if jobs := d.jobs(t); len(jobs) != 0 {
			t.Fatalf("jobs of expired orders: %v", ids(jobs))
		}
	}
	if got := testutil.ToFloat64(d.unexecuted.metrics.expired.WithLabelValues("order")); got != 1 {
		t.Errorf("told of %g", got)
	}
	d.at += reportWithinMs + 10_000 // the fixture's state is a quarter of an hour older
	fresh := order(perp.MarketSwap, 0)
	fresh.UpdatedAtTime = chain.U64(d.at/1000 - 301)
	d.book.apply(d.changes(fresh))
	d.jobs(t)
	if got := testutil.ToFloat64(d.unexecuted.metrics.expired.WithLabelValues("order")); got != 2 ||
		len(d.unexecuted.reported) != 1 {
		t.Errorf("told of %g, and %d are remembered", got, len(d.unexecuted.reported))
	}
}

// What expired is cancelled from contracts v2.2c on, after everything that is executed, in place of the job it was; an
// order that waits for a price is not. The venue told so, or this keeper, none is.
func TestExpiredIsCancelled(t *testing.T) {
	d := newFixture()
	late, waits := order(perp.MarketIncrease, 0), order(perp.LimitIncrease, 4400)
	late.UpdatedAtTime, waits.UpdatedAtTime = chain.U64(nowMs/1000-301), chain.U64(nowMs/1000-86_400)
	shift := perp.Request{Kind: perp.Shift, Key: chain.Hash{0x51}, Account: bob, Market: ethMarket.MarketToken,
		UpdatedAtTime: chain.U64(nowMs/1000 - 900), Status: perp.Created}
	d.load(late, waits, shift, order(perp.MarketDecrease, 0))
	pass := func(cancels bool, v perp.Version) []job.Job {
		p := perp.HandlerVersion(chain.Address{}, v)
		d.book.rows[p.RowKey()] = p
		m := d.moment()
		m.Rules.CancelExpired = cancels
		if _, err := d.look(d.everywhere(), m); err != nil {
			t.Fatal(err)
		}
		all := d.live.all()
		d.live.order(all)
		return all
	}
	if jobs := pass(true, perp.V22c); len(jobs) != 3 || jobs[0].Class != job.ClassMarketOrder ||
		jobs[1].ID != job.CancelID(job.Job{ID: job.OrderID(late.Key, 1), Kind: job.Order}) || jobs[1].Signer.IsZero() ||
		jobs[1].DueSinceMs != nowMs-1000 || jobs[2].ID != "cancelShift:"+shift.Key.Hex() ||
		jobs[2].DueSinceMs != nowMs {
		t.Errorf("%+v", jobs)
	}
	if jobs := pass(true, perp.V22b); len(jobs) != 1 {
		t.Errorf("the venue is v2.2b: %v", ids(jobs))
	}
	if jobs := pass(false, perp.V22c); len(jobs) != 1 {
		t.Errorf("switched off: %v", ids(jobs))
	}
}

// TIER-13: which positions are deleveraged is said anew with every block, so that whoever executes knows an old
// decision from a new one; other jobs are not.
func TestDeleveragingsAreSaidWithEveryBlock(t *testing.T) {
	l := newLive()
	at := func(block uint64, kind job.Kind) job.Job {
		return job.Job{ID: string(kind), Kind: kind, DueSinceMs: 5,
			Evidence: job.Evidence{Block: chain.BlockRef{Number: block}}}
	}
	for i, c := range []struct {
		block uint64
		fresh int
	}{{7, 2}, {7, 0}, {8, 1}} {
		fresh, _ := l.update(ethMarket.MarketToken, []job.Job{at(c.block, job.Adl), at(c.block, job.Liquidation)})
		if len(fresh) != c.fresh || c.fresh == 1 && fresh[0].Kind != job.Adl {
			t.Errorf("look %d: %v", i, ids(fresh))
		}
	}
}
