package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/risk/checklog"
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/pkg/txmgr/txmanager"
)

// noted are the entries of a log, as a store gets them.
type noted struct{ lines []string }

func (n *noted) Save(_ context.Context, entries []checklog.Entry) error {
	for _, e := range entries {
		n.lines = append(n.lines, fmt.Sprintf("%d %s %s %q by %s at %d", e.Intent, e.Check, e.Verdict, e.Detail,
			e.By, e.Block))
	}
	return nil
}

func (n *noted) Prune(context.Context, time.Time) error { return nil }

// lone is a node of one endpoint, beside which nobody is asked.
type lone struct{ simulator }

func (lone) Endpoints() []evm.EndpointStatus    { return nil }
func (lone) Excluding(...evm.Source) evm.Reader { return evm.Reader{} }

// namedNode is a node that lets every call pass, under a name.
type namedNode evm.Source

func (n namedNode) Simulate(context.Context, chain.Address, chain.Address, []byte, uint64, chain.Uint) (evm.Source,
	error) {
	return evm.Source(n), nil
}

// LIQ-7: each check of a job that goes on is kept with what it said, who said it and as of which block; and so is why
// one waits, and that nobody could be asked.
func TestChecksAreNoted(t *testing.T) {
	order := perp.Order{Key: chain.Hash{1}, Status: perp.Created, OrderType: perp.LimitSwap, Changes: 1}
	state := written{orders: map[chain.Hash]perp.Order{order.Key: order}}
	j := job.Job{ID: job.OrderID(order.Key, 1), Kind: job.Order, Key: order.Key, Tokens: []chain.Address{weth}}
	report := reportAt(weth, nowMs)
	report.Source = "streams"
	store := &noted{}
	synctest.Test(t, func(t *testing.T) {
		log := checklog.New(store, time.Now, zerolog.Nop())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- log.Run(ctx) }()
		r := &Checker{pending: pending{state: state}, audits: &audits{state: state}, gas: reckoned(),
			lags: new(lags), second: &secondCalls{node: lone{}},
			venue: venueOf(job.Order), Parts: Parts{Head: horizonAt(nowMs, time.Now()),
				Quotes: quotesOf(report), Node: lone{namedNode("https://a/")},
				Metrics: NewMetrics(prometheus.NewRegistry()), Notes: log, Log: zerolog.Nop()}}
		read, err := state.Look(t.Context(), keysOf(j))
		if err != nil {
			t.Fatal(err)
		}
		read.Progress.Watermark.Number = 98
		run := func(intent int64, want txmanager.Decision) {
			t.Helper()
			task := &txmanager.Task{Intent: txm.Intent{ID: intent, Attempt: 1, Job: j}, Read: read}
			if v, err := r.Run(t.Context(), task); err == nil && v.Kind != want {
				t.Errorf("intent %d: %+v", intent, v)
			}
		}
		gate := r.Noted(checklog.Gate, txmanager.Stage{
			Run: func(context.Context, *txmanager.Task) (txmanager.Verdict, error) {
				return txmanager.Verdict{Reason: "the head is 20 ms old"}, nil
			}})
		before := &txmanager.Task{Intent: txm.Intent{ID: 1, Attempt: 1, Job: j}, Read: read}
		if v, err := gate.Run(t.Context(), before); err != nil || v.Kind != txmanager.Proceed {
			t.Errorf("the gate: %+v, %v", v, err)
		}
		run(1, txmanager.Proceed)
		run(1, txmanager.Proceed) // says nothing new
		r.Quotes = quotesOf()
		run(2, txmanager.Retry)
		r.Quotes, r.Node = quotesOf(report), lone{errNode{errors.New("connection refused")}}
		run(3, txmanager.Proceed)
		cancel()
		<-ended
	})
	passes := fmt.Sprintf("price proceed %q by streams at 100", "reports "+report.ID())
	want := []string{
		`1 gate proceed "the head is 20 ms old" by this keeper at 98`,
		`1 pending proceed "" by this keeper at 98`, "1 " + passes,
		`1 call proceed "the simulated call succeeds with %d gas" by https://a/ at 100`,
		`2 pending proceed "" by this keeper at 98`,
		`2 price waiting "no price report of ` + weth.Hex() + `" by this keeper at 100`,
		`3 pending proceed "" by this keeper at 98`, "3 " + passes,
		`3 call unknown "connection refused" by  at 100`,
	}
	want[3] = fmt.Sprintf(want[3], reckoned().limit(j, gmx.OrderWork(order, nil), 0))
	if !slices.Equal(store.lines, want) {
		t.Errorf("noted\n%q, want\n%q", store.lines, want)
	}
}
