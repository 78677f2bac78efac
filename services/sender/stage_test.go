package sender

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
	"perpkeeper/pkg/price"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txm"
	"perpkeeper/pkg/wire"
)

// nowMs is the chain's time in these tests.
const nowMs = 1_700_000_000_000

var weth, usdc = chain.Address{1}, chain.Address{2}

func reportAt(token chain.Address, ms uint64) price.Report {
	return price.Report{Token: token, Provider: chain.Address{9}, Data: []byte{token[0]}, Min: perp.U64(1), Max: perp.U64(1), TimeMs: ms}
}

func quotesOf(reports ...price.Report) *quotes {
	q := newQuotes(time.Minute)
	for _, r := range reports {
		q.Add(r)
	}
	q.complete.Store(true)
	return q
}

func horizonAt(ms uint64, arrived time.Time) *horizon {
	h := newHorizon(time.Now)
	h.set(chain.BlockRef{Number: 100, Hash: chain.Hash{1}, TimeMs: ms}, arrived)
	return h
}

// standingAt is a state that has come up to a time of the chain; none at all for 0.
type standingAt uint64

func (at standingAt) Standing(context.Context) (pg.Standing, error) {
	var s pg.Standing
	if at > 0 {
		s.Watermark.BlockRef = chain.BlockRef{Number: 99, Hash: chain.Hash{2}, TimeMs: uint64(at)}
	}
	return s, nil
}

// away is a state that cannot be asked.
type away struct{}

func (away) Standing(context.Context) (pg.Standing, error) {
	return pg.Standing{}, errors.New("connection refused")
}

// generation is a state of another generation; 0 is one that is halted.
type generation struct {
	state interface {
		Standing(ctx context.Context) (pg.Standing, error)
	}
	number int
}

func (g generation) Standing(ctx context.Context) (pg.Standing, error) {
	s, err := g.state.Standing(ctx)
	s.Generation = g.number
	if g.number == 0 {
		s.Halted = "a final block is gone"
	}
	return s, err
}

// headsAt are endpoints that have named heads of these times.
func headsAt(times ...uint64) func() []evm.EndpointStatus {
	list := []evm.EndpointStatus{{Private: true, Head: chain.BlockRef{TimeMs: nowMs}}}
	for _, ms := range times {
		list = append(list, evm.EndpointStatus{Head: chain.BlockRef{TimeMs: ms}})
	}
	return func() []evm.EndpointStatus { return list }
}

// alone has every turn.
func alone() *turns {
	return newTurns(tier.DefaultConfig(), nil, newHorizon(time.Now), time.Now, NewMetrics(prometheus.NewRegistry()), zerolog.Nop())
}

// TIER-8: the gate opens when, and only when, this keeper sees what happens.
func TestSettle(t *testing.T) {
	fresh := func() settle {
		return settle{
			horizon: horizonAt(nowMs, time.Now()), quotes: quotesOf(reportAt(weth, nowMs), reportAt(usdc, nowMs)), state: standingAt(nowMs),
			turns: alone(), endpoints: func() []evm.EndpointStatus { return nil }, bounds: tier.DefaultBounds(), signer: anySigner(),
		}
	}
	for name, c := range map[string]struct {
		spoil func(*settle)
		want  decision
		why   string
	}{
		"all is well":        {func(*settle) {}, onward, ""},
		"no head ever":       {func(s *settle) { s.horizon = newHorizon(time.Now) }, closed, "no new block"},
		"heads have stopped": {func(s *settle) { s.horizon = horizonAt(nowMs, time.Now().Add(-4*time.Second)) }, closed, "no new block for more than 3s"},
		"no state":           {func(s *settle) { s.state = standingAt(0) }, closed, "no block yet"},
		"state behind":       {func(s *settle) { s.state = standingAt(nowMs - 3001) }, closed, "behind the chain"},
		"state at the limit": {func(s *settle) { s.state = standingAt(nowMs - 3000) }, onward, ""},
		"state ahead":        {func(s *settle) { s.state = standingAt(nowMs + 500) }, onward, ""},
		"prices being read":  {func(s *settle) { s.quotes.complete.Store(false) }, closed, "still being read"},
		"a price missing":    {func(s *settle) { s.quotes = quotesOf(reportAt(weth, nowMs)) }, waiting, "no price report"},
		"a price stale":      {func(s *settle) { s.quotes = quotesOf(reportAt(weth, nowMs), reportAt(usdc, nowMs-10_001)) }, waiting, "more than 10s old"},
		"the feed is silent": {func(s *settle) { s.quotes = quotesOf(reportAt(weth, nowMs-3001), reportAt(usdc, nowMs-3001)) }, closed, "3s apart"},
		"the head is old":    {func(s *settle) { s.horizon = horizonAt(nowMs-3001, time.Now()) }, closed, "3s apart"},
		"the feed is silent, and two endpoints agree": {func(s *settle) {
			s.quotes, s.endpoints = quotesOf(reportAt(weth, nowMs-9000), reportAt(usdc, nowMs-9000)), headsAt(nowMs, nowMs-450)
		}, onward, ""},
		"the feed is silent, and the other endpoint behind": {func(s *settle) {
			s.quotes, s.endpoints = quotesOf(reportAt(weth, nowMs-9000), reportAt(usdc, nowMs-9000)), headsAt(nowMs, nowMs-9000)
		}, closed, "3s apart"},
		"not compared":       {func(s *settle) { s.signer.reconciled = func() bool { return false } }, closed, "nonces"},
		"another generation": {func(s *settle) { s.state = generation{s.state, 2} }, waiting, "generation 0"},
		"halted":             {func(s *settle) { s.state = generation{s.state, 0} }, closed, "halted"},
		"no means":           {func(s *settle) { s.signer.held = func() string { return "the signer cannot pay for gas" } }, closed, "cannot pay"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fresh()
			c.spoil(&s)
			v, err := s.run(t.Context(), &task{intent: txm.Intent{Job: job.Job{Tokens: []chain.Address{weth, usdc}}}})
			if err != nil || v.kind != c.want || !strings.Contains(v.reason, c.why) {
				t.Errorf("%+v, %v; want %d, %q", v, err, c.want, c.why)
			}
		})
	}
	s := fresh()
	s.state = away{}
	if _, err := s.run(t.Context(), &task{}); err == nil {
		t.Error("a database that cannot be asked must not look like an answer")
	}
}

// written is a state of single rows.
type written struct {
	positions map[chain.Hash]perp.Position
	orders    map[chain.Hash]perp.Order
	requests  map[chain.Hash]perp.Request
	values    map[chain.Hash]perp.MarketValue
	err       error
}

func find[R perp.Row](rows map[chain.Hash]R, key chain.Hash, err error) (pg.Found[R], error) {
	row, known := rows[key]
	return pg.Found[R]{Row: row, Known: known}, err
}

func (w written) Position(_ context.Context, key chain.Hash) (pg.Found[perp.Position], error) {
	return find(w.positions, key, w.err)
}

func (w written) Order(_ context.Context, key chain.Hash) (pg.Found[perp.Order], error) {
	return find(w.orders, key, w.err)
}

func (w written) Request(_ context.Context, key chain.Hash) (pg.Found[perp.Request], error) {
	return find(w.requests, key, w.err)
}

func (w written) MarketValue(_ context.Context, key chain.Hash) (pg.Found[perp.MarketValue], error) {
	return find(w.values, key, w.err)
}

// TIER-4, TIER-5.
func TestPending(t *testing.T) {
	key := chain.Hash{5}
	position := func(status perp.PositionStatus) written {
		return written{positions: map[chain.Hash]perp.Position{key: {
			PositionKey: key, Status: status, Changes: 2, IncreasedAtTime: perp.U64(50), DecreasedAtTime: perp.U64(70),
		}}}
	}
	order := func(kind perp.OrderType, status perp.Status) written {
		o := perp.Order{Key: key, OrderType: kind, Status: status, Changes: 2, UpdatedAtTime: perp.U64(60)}
		return written{
			orders:    map[chain.Hash]perp.Order{key: o},
			positions: map[chain.Hash]perp.Position{o.PositionKey(): {IncreasedAtTime: perp.U64(65)}},
		}
	}
	request := func(status perp.Status) written {
		return written{requests: map[chain.Hash]perp.Request{key: {Key: key, Status: status, UpdatedAtTime: perp.U64(60)}}}
	}
	liquidation := job.Job{ID: job.LiquidationID(key, 2), Kind: job.Liquidation, Key: key}
	execution := job.Job{ID: job.OrderID(key, 2), Kind: job.Order, Key: key, ExpiresMs: 360_000}
	deposit := job.Job{ID: job.RequestID(job.Deposit, key), Kind: job.Deposit, Key: key, ExpiresMs: 360_000}
	venue := chain.Address{6}
	said := func(block uint64) written {
		row := perp.MarketValue{Measure: perp.AdlEnabled, Scope: venue.Hash(), IsLong: true, Stamp: perp.Stamp{Block: block, TimeMs: 70_000}}
		return written{values: map[chain.Hash]perp.MarketValue{row.RowKey().Key: row}}
	}
	update := job.Job{ID: job.AdlStateID(venue, true, 4), Kind: job.AdlState, Key: venue.Hash(), Market: venue, IsLong: true}
	skip := func(why string) verdict { return end(job.SkippedDone, why) }
	stale := func(id string, j job.Job) job.Job {
		j.ID = id
		return j
	}
	for name, c := range map[string]struct {
		state  written
		frozen bool
		j      job.Job
		want   terms
		v      verdict
	}{
		"open position":   {position(perp.Active), false, liquidation, terms{window: perp.Window{From: 70}}, verdict{}},
		"closed position": {position(perp.Closed), false, liquidation, terms{}, skip("the position is Closed")},
		"no position":     {written{}, false, liquidation, terms{}, skip("there is no such position")},
		"position changed": {position(perp.Active), false, stale(job.LiquidationID(key, 1), liquidation), terms{},
			skip("the position has changed: another job stands for it")},
		"deleveraging state":            {said(4), false, update, terms{window: perp.Window{From: 70}}, verdict{}},
		"deleveraging state said":       {said(5), false, update, terms{}, skip("the exchange said so in block 5")},
		"deleveraging state never said": {written{}, false, stale(job.AdlStateID(venue, true, 0), update), terms{}, verdict{}},
		"market order": {order(perp.MarketIncrease, perp.Created), false, execution,
			terms{window: perp.Window{From: 60, To: 360}, first: true}, verdict{}},
		"updated limit order": {order(perp.LimitIncrease, perp.Updated), false, execution, terms{window: perp.Window{From: 60}}, verdict{}},
		"stop loss":           {order(perp.StopLossDecrease, perp.Created), false, execution, terms{window: perp.Window{From: 65}}, verdict{}},
		"executed order":      {order(perp.MarketIncrease, perp.Executed), false, execution, terms{}, skip("the order is Executed")},
		"cancelled order":     {order(perp.MarketIncrease, perp.Cancelled), false, execution, terms{}, skip("the order is Cancelled")},
		"frozen order":        {order(perp.LimitIncrease, perp.Frozen), false, execution, terms{}, skip("the order is Frozen")},
		"frozen, with role":   {order(perp.LimitIncrease, perp.Frozen), true, execution, terms{window: perp.Window{From: 60}}, verdict{}},
		"no order":            {written{}, false, execution, terms{}, skip("there is no such order")},
		"order changed": {order(perp.LimitIncrease, perp.Created), false, stale(job.OrderID(key, 3), execution), terms{},
			skip("the order has changed: another job stands for it")},
		"request":          {request(perp.Created), false, deposit, terms{window: perp.Window{From: 60, To: 360}, first: true}, verdict{}},
		"executed request": {request(perp.Executed), false, deposit, terms{}, skip("the request is Executed")},
		"no request":       {written{}, false, deposit, terms{}, skip("there is no such request")},
	} {
		got, v, err := pending{c.state, c.frozen}.ask(t.Context(), c.j)
		if err != nil || got != c.want || v != c.v {
			t.Errorf("%s: %+v, %+v, %v; want %+v, %+v", name, got, v, err, c.want, c.v)
		}
	}
	for _, j := range []job.Job{liquidation, execution, deposit, update} {
		if _, v, err := (pending{written{err: errors.New("connection refused")}, false}).ask(t.Context(), j); err == nil || v.kind != onward {
			t.Errorf("%s: an error is not an answer: %+v, %v", j.Kind, v, err)
		}
	}
}

// TIER-14: which reports an execution takes.
func TestPrepareChoosesReports(t *testing.T) {
	venue := gmx.Config{OrderHandler: chain.Address{7}}
	r := recheck{quotes: quotesOf(reportAt(weth, 60_100), reportAt(weth, 61_000), reportAt(weth, 90_000)), venue: venue, gas: defaultGas()}
	j := job.Job{ID: "order:x:1", Kind: job.Order, Key: chain.Hash{1}, Tokens: []chain.Address{weth}}
	with := func(ms uint64) []byte {
		_, data, err := venue.Call(j, setOf([]price.Report{reportAt(weth, ms)}))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, c := range map[string]struct {
		terms terms
		data  []byte
		want  decision
		why   string
	}{
		"the first at or after":        {terms{perp.Window{From: 60, To: 360}, true}, with(60_100), onward, ""},
		"the newest":                   {terms{perp.Window{From: 60}, false}, with(90_000), onward, ""},
		"none young enough yet, first": {terms{perp.Window{From: 91, To: 391}, true}, nil, waiting, "no price report"},
		"none young enough yet":        {terms{perp.Window{From: 91}, false}, nil, waiting, "wants one from 91 on"},
		"none old enough any more":     {terms{perp.Window{From: 62, To: 80}, true}, nil, ended, "none after 80"},
	} {
		got, v := r.prepare(j, c.terms)
		if v.kind != c.want || !strings.Contains(v.reason, c.why) {
			t.Errorf("%s: %+v", name, v)
			continue
		}
		if c.want == onward && (got.to != venue.OrderHandler || got.gas != r.gas.Order || !slices.Equal(got.data, c.data)) {
			t.Errorf("%s: call %+v", name, got)
		}
	}
	if _, v := r.prepare(job.Job{ID: "deposit:x", Kind: job.Deposit}, terms{}); v.kind != ended || v.outcome != job.Refused {
		t.Errorf("a kind without a handler: %+v", v)
	}
}

func TestForetold(t *testing.T) {
	for class, want := range map[gmx.RevertClass]verdict{
		gmx.DoneElsewhere: {kind: ended, outcome: job.LostRace}, gmx.Recovered: {kind: ended, outcome: job.DroppedRecovered},
		gmx.NeedsReport: {kind: waiting}, gmx.Expired: {kind: ended, outcome: job.Expired}, gmx.NeedsGas: {kind: ended, outcome: job.Refused},
		gmx.RoleOrFeature: {kind: ended, outcome: job.Refused}, gmx.UnknownRevert: {kind: ended, outcome: job.Refused},
	} {
		got := foretold(gmx.Revert{Class: class, Name: "Cause"})
		if got.kind != want.kind || got.outcome != want.outcome || got.reason == "" {
			t.Errorf("%s: %+v, want %+v", class, got, want)
		}
	}
}

// errNode is a node that answers every simulated call alike.
type errNode struct{ err error }

func (n errNode) Simulate(context.Context, chain.Address, chain.Address, []byte, uint64, perp.Uint) error {
	return n.err
}

func TestRecheckTellsSilenceFromAnAnswer(t *testing.T) {
	r := recheck{node: errNode{errors.New("connection refused")}}
	if v, err := r.rehearse(t.Context(), call{}); err == nil || v.kind != onward {
		t.Errorf("a node that does not answer: %+v, %v", v, err)
	}
	if v, err := (recheck{node: errNode{}}).rehearse(t.Context(), call{}); err != nil || v.kind != onward {
		t.Errorf("a call that succeeds: %+v, %v", v, err)
	}
	late := recheck{horizon: horizonAt(nowMs, time.Now())}
	v, err := late.run(t.Context(), &task{intent: txm.Intent{Job: job.Job{ExpiresMs: nowMs - 1}}})
	if err != nil || v.outcome != job.Expired {
		t.Errorf("a job past its end: %+v, %v", v, err)
	}
}

// office is a drain over a real queue, with a road of a test's own.
type office struct {
	*drain
	db     *pg.DB
	signer chain.Address
	gates  []string
	trail  []string // jobs in the order in which they took to the road
}

func newOffice(t *testing.T, road func(j job.Job) (verdict, error)) *office {
	t.Helper()
	o := &office{db: pgtest.DB(t), signer: chain.Address{0xaa}}
	if err := o.db.Leases().Register(t.Context(), o.signer, 56); err != nil {
		t.Fatal(err)
	}
	metrics := NewMetrics(prometheus.NewRegistry())
	tenure, err := lease.Acquire(t.Context(), o.db.Leases(), o.signer, lease.NewOwner("test"), time.Minute, metrics.Leases)
	if err != nil {
		t.Fatal(err)
	}
	o.drain = &drain{
		tenure: tenure, turns: alone(), queue: o.db.Intents(), batch: 1, limits: limits{mode: newNerves(time.Minute).mode},
		maxAge: time.Hour, metrics: metrics, log: zerolog.Nop(), ended: func() {}, clock: time.Now,
		rest: func(txm.Intent, job.Outcome) txm.Rest { return txm.Rest{} }, tidy: func(context.Context) error { return nil },
		count: func(context.Context) (uint64, error) { return 0, nil }, reconcile: func(context.Context) error { return nil }, yielded: map[int64]time.Time{},
		gate: func(reason string) { o.gates = append(o.gates, reason) }, asleep: map[int64]time.Time{},
		road: []stage{{"test", func(_ context.Context, t *task) (verdict, error) {
			o.trail = append(o.trail, t.job().ID)
			return road(t.job())
		}}},
	}
	return o
}

// queue stores jobs, the more urgent the earlier.
func (o *office) queue(t *testing.T, ids ...string) {
	t.Helper()
	for i, id := range ids {
		j := job.Job{ID: id, Kind: job.Order, Class: job.ClassMarketOrder, BirthMs: uint64(i), Signer: o.signer}
		if _, err := o.db.Intents().Enqueue(t.Context(), j); err != nil {
			t.Fatal(err)
		}
	}
}

func (o *office) outcomes(t *testing.T) map[string]job.Outcome {
	t.Helper()
	ended, err := o.db.Intents().Unreported(t.Context(), o.signer, 100)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]job.Outcome{}
	for _, e := range ended {
		outcomes[e.Intent.Job.ID] = e.Intent.Outcome
	}
	return outcomes
}

// NON-9, LIQ-6: the most urgent first; one that waits is passed over, one that has ended is gone.
func TestDrainTakesTheMostUrgentFirst(t *testing.T) {
	o := newOffice(t, func(j job.Job) (verdict, error) {
		if j.ID == "b" {
			return wait("no report yet"), nil
		}
		return end(job.DroppedRecovered, "healthy"), nil
	})
	o.queue(t, "a", "b", "c")
	if err := o.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.trail, []string{"a", "b", "c"}) {
		t.Errorf("took %v", o.trail)
	}
	want := map[string]job.Outcome{"a": job.DroppedRecovered, "c": job.DroppedRecovered}
	if got := o.outcomes(t); !reflect.DeepEqual(got, want) {
		t.Errorf("ended: %v", got)
	}
	clear(o.asleep)
	if err := o.pass(t.Context()); err != nil || o.trail[len(o.trail)-1] != "b" {
		t.Errorf("what waited is not tried again: %v, %v", o.trail, err)
	}
}

func TestDrainStopsAtAClosedGate(t *testing.T) {
	o := newOffice(t, func(job.Job) (verdict, error) { return shut("no new block"), nil })
	o.queue(t, "a", "b")
	if err := o.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.trail, []string{"a"}) || !slices.Equal(o.gates, []string{"no new block"}) {
		t.Errorf("took %v, gate said %v", o.trail, o.gates)
	}
}

// TIER-5: what could not be asked is asked again; the job stays.
func TestDrainKeepsTheJobWhenItCannotTell(t *testing.T) {
	failure := errors.New("connection refused")
	o := newOffice(t, func(job.Job) (verdict, error) { return verdict{}, failure })
	o.queue(t, "a")
	if err := o.pass(t.Context()); !errors.Is(err, failure) {
		t.Errorf("got %v", err)
	}
	if got := o.outcomes(t); len(got) != 0 {
		t.Errorf("ended: %v", got)
	}
}

// TIER-11: nothing waits for ever, and nothing vanishes silently.
func TestDrainGivesUpWaiting(t *testing.T) {
	o := newOffice(t, func(job.Job) (verdict, error) { return wait("no report yet"), nil })
	o.maxAge = -time.Second
	o.queue(t, "a")
	if err := o.pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := o.outcomes(t); got["a"] != job.Expired {
		t.Errorf("ended: %v", got)
	}
}

func TestDrainEndsWithTheTenure(t *testing.T) {
	o := newOffice(t, func(job.Job) (verdict, error) { return end(job.SkippedDone, "done"), nil })
	o.queue(t, "a")
	if err := o.db.Leases().Release(t.Context(), o.tenure.Fence()); err != nil {
		t.Fatal(err)
	}
	if err := o.pass(t.Context()); !lease.Lost(err) {
		t.Errorf("got %v, want to be fenced out", err)
	}
}

func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &worker{Sender: &Sender{}, name: "signer x", log: zerolog.Nop()}
		start, wake := time.Now(), make(chan struct{}, 1)
		var at []time.Duration
		woken := func() [2]<-chan struct{} { return [2]<-chan struct{}{wake} }
		err := w.loop(t.Context(), pass{name: "test", wake: woken, run: func(context.Context) error {
			at = append(at, time.Since(start))
			switch len(at) {
			case 1:
				return errors.New("away")
			case 2:
				if !w.notices.has("away") {
					t.Error("nobody is told why it does not work")
				}
				wake <- struct{}{} // during the pass: not to be missed
			case 4:
				return fmt.Errorf("writing: %w", &lease.LostError{Op: "test"})
			}
			return nil
		}})
		if !lease.Lost(err) || !slices.Equal(at, []time.Duration{0, again, again, again + idle}) {
			t.Errorf("passes at %v, then %v", at, err)
		}
		if w.notices.has("away") {
			t.Error("a reason outlives its loop")
		}
	})
}

func TestHorizonIsTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHorizon(time.Now)
		if _, age := h.newest(); age < time.Minute {
			t.Error("no head is as good as a very old one")
		}
		next := h.next()
		h.set(chain.BlockRef{Number: 1, TimeMs: nowMs}, time.Now())
		<-next
		<-time.After(2 * time.Second)
		if _, age := h.newest(); age != 2*time.Second {
			t.Errorf("the head came %s ago", age)
		}
		if got := h.age(nowMs - 1500); got != 1500*time.Millisecond {
			t.Errorf("age %s: when blocks stop, time stops", got)
		}
		if got := h.age(nowMs + 5); got != 0 {
			t.Errorf("age %s of what is yet to come", got)
		}
	})
}

func TestBroadcastRemembersWhatItSent(t *testing.T) {
	one, two := chain.Hash{1}, chain.Hash{2}
	b := &broadcast{last: map[chain.Hash]sent{}, horizon: horizonAt(nowMs, time.Now())} // at block 100
	if b.sending(one).Ever {
		t.Error("an adopted transaction was never broadcast by this tenure")
	}
	b.expect(one)
	b.horizon.set(chain.BlockRef{Number: 103}, time.Now())
	b.expect(one)
	if got := b.sending(one); got != (txm.Sending{Ever: true, First: 100, Last: 103}) {
		t.Errorf("broadcast at %+v", got)
	}
	for class, want := range map[evm.Class]txm.Answer{
		evm.Accepted: txm.Unclear, evm.Ambiguous: txm.Unclear, evm.ResolveByHash: txm.Unclear, evm.PauseSigner: txm.Unpaid, evm.RetryElsewhere: txm.Unclear,
		evm.BumpToMin: txm.TooCheap, evm.OtherTxAtNonce: txm.TooCheap, evm.FatalPayload: txm.Never,
	} {
		b.answered(one, class)
		if got := b.sending(one).Answer; got != want {
			t.Errorf("%s asks for %d, want %d", class, got, want)
		}
	}
	b.answered(one, evm.Accepted)
	if !b.answered(one, evm.PauseSigner) || b.answered(one, evm.PauseSigner) {
		t.Error("the first answer is news, its repetition is not")
	}
	b.answered(two, evm.Accepted)
	if b.held() == "" {
		t.Error("a signer without means must be known as one, also when another transaction of it was taken")
	}
	b.answered(one, evm.Accepted)
	if b.held() != "" {
		t.Error("an accepted transaction was paid for")
	}
	b.answered(two, evm.GapOrLimit)
	if b.held() == "" {
		t.Error("nodes that take no more must be heeded")
	}
	b.forget(map[chain.Hash]bool{one: true, two: false})
	if b.held() != "" || !b.sending(two).Ever {
		t.Error("what was answered to bytes that are broadcast no more holds the signer back, or when they were is forgotten")
	}
	b.answered(two, evm.GapOrLimit)
	b.forget(map[chain.Hash]bool{one: true})
	if b.held() != "" || b.sending(two).Ever || !b.sending(one).Ever {
		t.Error("what is no longer in flight is not forgotten, or what is, is")
	}
}

// A transaction that was broadcast before the first head came is as old as the first head that it is broadcast at: it is neither late nor to be raised at once.
func TestBroadcastBeforeTheFirstHead(t *testing.T) {
	h := newHorizon(time.Now)
	b := &broadcast{last: map[chain.Hash]sent{}, horizon: h, shared: true}
	flight := txm.Flight{Attempts: []txm.Attempt{{SignedTx: txm.SignedTx{Hash: chain.Hash{1}}}}}
	next := func(head uint64) txm.Step {
		return txm.DefaultPolicy().Next(flight, txm.Sight{Head: head, Sent: b.sending(chain.Hash{1})})
	}
	b.expect(chain.Hash{1})
	h.set(chain.BlockRef{Number: 100}, time.Now())
	if b.look([]txm.Flight{flight}); b.held() != "" || next(100) != txm.Broadcast {
		t.Errorf("held: %q, next: %s", b.held(), next(100))
	}
	b.expect(chain.Hash{1})
	if got := b.sending(chain.Hash{1}); got.First != 100 || next(101) != txm.Wait {
		t.Errorf("sent at %+v, next: %s", got, next(101))
	}
}

// An heir knows of an old nonce only what it has broadcast itself.
func TestHeirClaimsNothingBehindWhatDoesNotLand(t *testing.T) {
	h := horizonAt(nowMs, time.Now())
	b := &broadcast{last: map[chain.Hash]sent{}, horizon: h, shared: true}
	b.expect(chain.Hash{2})
	head, _ := h.newest()
	head.Number += stall
	h.set(head, time.Now())
	b.look([]txm.Flight{{Attempts: []txm.Attempt{{SignedTx: txm.SignedTx{Hash: chain.Hash{1}}}, {SignedTx: txm.SignedTx{Hash: chain.Hash{2}}}}}})
	if b.held() == "" {
		t.Error("not held, though the raised transaction that was adopted does not land")
	}
}

// TIER-8: among keepers, one whose transactions do not land claims no more until they do: others have the jobs done, and what comes late loses. A keeper that is
// alone claims on.
func TestClaimsNothingBehindWhatDoesNotLand(t *testing.T) {
	mined := &txm.Receipt{TxHash: chain.Hash{1}}
	for name, c := range map[string]struct {
		shared bool
		blocks uint64
		mined  *txm.Receipt
		held   bool
	}{
		"just sent":     {true, stall - 1, nil, false},
		"does not land": {true, stall, nil, true},
		"has landed":    {true, stall, mined, false},
		"alone":         {false, stall, nil, false},
	} {
		h := horizonAt(nowMs, time.Now())
		b := &broadcast{last: map[chain.Hash]sent{}, horizon: h, shared: c.shared}
		first, raised := txm.SignedTx{Hash: chain.Hash{1}}, txm.SignedTx{Hash: chain.Hash{2}}
		b.expect(first.Hash)
		head, _ := h.newest()
		head.Number += c.blocks
		h.set(head, time.Now())
		b.expect(raised.Hash) // a moment ago: the nonce is as old as its first transaction
		b.look([]txm.Flight{{Attempts: []txm.Attempt{{SignedTx: first}, {SignedTx: raised}}, Mined: c.mined}})
		if held := b.held() != ""; held != c.held {
			t.Errorf("%s: held %v (%s)", name, held, b.held())
		}
		if b.look(nil); b.held() != "" {
			t.Errorf("%s: held without anything in flight", name)
		}
	}
}

// No log names the job that brings the deleveraging state up to date.
func TestAnUpdateOfTheDeleveragingStateIsDone(t *testing.T) {
	o, _, err := judge{}.outcome(t.Context(), job.Job{Kind: job.AdlState}, evm.Receipt{Tx: chain.Tx{OK: true}})
	if o != job.Done || err != nil {
		t.Errorf("%s, %v", o, err)
	}
}

// talkative is a node and a block builder; the builder refuses everything.
type talkative struct {
	node
	public, private atomic.Int32
}

func (n *talkative) SendRaw(context.Context, []byte) error {
	n.public.Add(1)
	return nil
}

func (n *talkative) SendPrivate(context.Context, []byte) error {
	n.private.Add(1)
	return errors.New("no")
}

// Builders get the same bytes, and their answer decides nothing.
func TestBuildersAreToldToo(t *testing.T) {
	for _, builders := range []bool{false, true} {
		n := &talkative{}
		b := &broadcast{node: n, builders: builders, metrics: NewMetrics(prometheus.NewRegistry())}
		if err := b.transmit(t.Context(), []byte{1}); err != nil {
			t.Error(err)
		}
		b.close()
		if told := n.private.Load() == 1; n.public.Load() != 1 || told != builders {
			t.Errorf("builders %t: told %t", builders, told)
		}
	}
}

func TestResultOf(t *testing.T) {
	j := job.Job{ID: "order:x:1", Kind: job.Order, Key: chain.Hash{1}, Account: chain.Address{2}, BirthMs: 5}
	r := &txm.Receipt{TxHash: chain.Hash{3}, Block: chain.BlockRef{Number: 4, Hash: chain.Hash{4}}, GasUsed: 6, GasPrice: 7}
	e := txm.Ended{
		Intent:  txm.Intent{Job: j, Arm: 2, Signer: chain.Address{8}, Nonce: 9, Outcome: job.Done, Reason: "executed"},
		EndedAt: time.UnixMilli(10), Receipt: r,
	}
	want := job.Result{
		JobID: j.ID, Arm: 2, Kind: job.Order, Key: j.Key, Account: j.Account, Outcome: job.Done, Reason: "executed", TxHash: r.TxHash, Signer: chain.Address{8},
		Nonce: 9, Block: r.Block, GasUsed: 6, GasPrice: 7, BirthMs: 5, AtMs: 10,
	}
	if got := resultOf(e); got != want {
		t.Errorf("got %+v", got)
	}
	e.Receipt = nil
	if got := resultOf(e); !got.TxHash.IsZero() || got.GasUsed != 0 {
		t.Errorf("without a receipt: %+v", got)
	}
}

// A contract may give any bytes for a reason, and as many as it has gas for: what cannot be written would keep everything that ended later from being told.
func TestAnyReasonCanBeTold(t *testing.T) {
	for given, want := range map[string]string{
		"executed": "executed", "no \xff \xc3\x28": "no \uFFFD \uFFFD(", "nothing\x00": "nothing\x00", "größer": "größer",
		strings.Repeat("ü", 9999): strings.Repeat("ü", mostReason/2),
	} {
		e := txm.Ended{Intent: txm.Intent{Job: job.Job{ID: "order:x:1", Kind: job.Order}, Outcome: job.CancelledByVenue, Reason: given}}
		r, err := wire.Encode(nil, wire.Result{Result: resultOf(e)}, 0, 0)
		if err != nil {
			t.Errorf("%.20q: %v", given, err)
			continue
		}
		if m, _, err := wire.Decode(r); err != nil || m.(wire.Result).Reason != want {
			t.Errorf("%.20q: %+v, %v", given, m, err)
		}
		letter, err := deadLetter(e, wire.DefaultConfig())
		if err != nil || header(letter, "error") != want {
			t.Errorf("%.20q: the dead letter says %.20q, %v", given, header(letter, "error"), err)
		}
	}
}
