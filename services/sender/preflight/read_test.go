package preflight

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/pkg/txmgr/txmanager"
)

// lookedUp answers one look with the rows of a state, and notes what it was asked for.
type lookedUp struct {
	gasState
	written
	asked []pg.Keys
}

func (l *lookedUp) Look(ctx context.Context, k pg.Keys) (pg.Rows, error) {
	l.asked = append(l.asked, k)
	return l.written.Look(ctx, k)
}

// What a job of any kind is checked by is read once for a batch, and nothing else is asked for a job that is pending.
func TestReadIsEnoughForEveryKind(t *testing.T) {
	key := chain.Hash{5}
	of := perp.Order{Key: key, Account: chain.Address{1}, Market: chain.Address{2},
		InitialCollateralToken: chain.Address{3}, IsLong: true, OrderType: perp.MarketDecrease, Status: perp.Created,
		Changes: 1}
	enabled := perp.MarketValue{Measure: perp.AdlEnabled, Scope: of.Market.Hash(), IsLong: true, Value: chain.I64(1)}
	l := &lookedUp{written: written{
		positions: map[chain.Hash]perp.Position{key: {PositionKey: key, Status: perp.Active, Changes: 1}},
		orders:    map[chain.Hash]perp.Order{key: of},
		requests:  map[chain.Hash]perp.Request{key: {Key: key, Status: perp.Created}},
		values:    map[chain.Hash]perp.MarketValue{enabled.RowKey().Key: enabled},
	}}
	ids := map[job.Kind]string{
		job.Liquidation: job.LiquidationID(key, 1), job.Adl: job.AdlID(key, 1), job.Order: job.OrderID(key, 1),
		job.AdlState: job.AdlStateID(of.Market, true, 0),
	}
	var tasks []*txmanager.Task
	for _, kind := range job.Kinds() {
		tasks = append(tasks, &txmanager.Task{Intent: txm.Intent{Job: job.Job{ID: ids[kind], Kind: kind, Key: key,
			Account: of.Account, Market: of.Market, Collateral: of.InitialCollateralToken, IsLong: true}}})
	}
	p := readerOf(l)
	if err := p.Read(t.Context(), tasks); err != nil || len(l.asked) != 1 {
		t.Fatalf("%d questions for %d tasks, %v", len(l.asked), len(tasks), err)
	}
	again := written{err: errors.New("asked again")}
	for _, task := range tasks {
		read, is := readFor(task)
		_, v, err := pending{again, false, noGlv}.askRead(t.Context(), read, task.Job())
		if !is || err != nil || v.Kind != txmanager.Proceed {
			t.Errorf("%s: %+v, %v", task.Job().Kind, v, err)
		}
	}
}

// TIER-5: a row that was not there when it was read ends no job before the state was asked again.
func TestReadOfNothingEndsNothing(t *testing.T) {
	key := chain.Hash{5}
	j := job.Job{ID: job.OrderID(key, 1), Kind: job.Order, Key: key}
	task := &txmanager.Task{Intent: txm.Intent{Job: j}}
	if err := readerOf(&lookedUp{}).Read(t.Context(), []*txmanager.Task{task}); err != nil {
		t.Fatal(err)
	}
	read, _ := readFor(task)
	there := written{final: 1, orders: map[chain.Hash]perp.Order{key: {Key: key, Status: perp.Created, Changes: 1}}}
	if _, v, err := (pending{there, false, noGlv}).askRead(t.Context(), read, j); err != nil ||
		v.Kind != txmanager.Proceed {
		t.Errorf("it is there now: %+v, %v", v, err)
	}
	gone := written{final: 1}
	if _, v, err := (pending{gone, false, noGlv}).askRead(t.Context(), read, j); err != nil ||
		v.Outcome != job.SkippedDone {
		t.Errorf("it is gone: %+v, %v", v, err)
	}
}

// TIER-8: the gate judges by what was read, and asks nothing more; where nothing was read it asks.
func TestGateJudgesWhatWasRead(t *testing.T) {
	g := Gate{
		Head: horizonAt(nowMs, time.Now()), Quotes: quotesOf(reportAt(weth, nowMs)), State: away{},
		EvidenceMs: func(headMs uint64) uint64 { return headMs },
		Endpoints:  func() []evm.EndpointStatus { return nil }, Bounds: tier.DefaultBounds(),
	}
	stage := g.Stage(func() string { return "" }, func() bool { return true })
	fresh, _ := progressAt(nowMs).Progress(t.Context())
	late, _ := progressAt(nowMs - 60_000).Progress(t.Context())
	for _, c := range []struct {
		read any
		want txmanager.Decision
		errs bool
	}{
		{pg.Rows{Progress: fresh}, txmanager.Proceed, false},
		{pg.Rows{Progress: late}, txmanager.PauseAll, false},
		{nil, txmanager.Proceed, true},
	} {
		v, err := stage.Run(t.Context(), &txmanager.Task{Read: c.read})
		if v.Kind != c.want || (err != nil) != c.errs {
			t.Errorf("%+v: %+v, %v", c.read, v, err)
		}
	}
}

// readerOf is a checker of which only reading is asked.
func readerOf(s State) *Checker {
	return New(Config{}, Parts{State: s, Metrics: NewMetrics(prometheus.NewRegistry())}).
		Checker(chain.Address{}, func() {})
}
