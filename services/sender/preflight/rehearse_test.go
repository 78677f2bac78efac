package preflight

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/txmgr/txmanager"
)

// rehearsing is a node on which the execution of an order succeeds, and its rehearsal ends as it may.
type rehearsing struct {
	ends error
	made int
}

func (n *rehearsing) Simulate(_ context.Context, _, _ chain.Address, data []byte, _ uint64,
	_ chain.Uint) (evm.Source, error) {
	if !bytes.HasPrefix(data, gmx.SimulateExecuteOrder(chain.Hash{}, gmx.SimulatedPrices{})[:4]) {
		return "", nil
	}
	n.made++
	return "", n.ends
}

// TIER-14: an order that may wait is not sent while the venue would freeze it, although its simulated execution
// succeeds; one that may not wait is.
func TestOrdersThatWouldBeFrozenWait(t *testing.T) {
	venue := venueOf(job.Order)
	r := &Checker{
		venue: venue, gas: reckoned(), lags: new(lags), Parts: Parts{
			Head:    horizonAt(90_000, time.Now()),
			Quotes:  quotesOf(reportAt(weth, 60_100), reportAt(weth, 90_000)),
			Metrics: NewMetrics(prometheus.NewRegistry()), Log: zerolog.Nop()},
	}
	order := job.Job{ID: "order:x:1", Kind: job.Order, Key: chain.Hash{1}, Tokens: []chain.Address{weth}}
	waits, market := terms{window: perp.Window{From: 60}}, terms{window: perp.Window{From: 60, To: 360}, first: true}
	for name, c := range map[string]struct {
		terms terms
		ends  error
		want  txmanager.Decision
		fails bool
	}{
		"it would be executed": {waits, revertWith("EndOfOracleSimulation()"), txmanager.Proceed, false},
		"its output is too little": {waits, revertWith("InsufficientSwapOutputAmount(uint256,uint256)", 5, 6),
			txmanager.Retry, false},
		"at too bad a price": {waits, revertWith("OrderNotFulfillableAtAcceptablePrice(uint256,uint256)",
			5, 6), txmanager.Retry, false},
		"a market of its path is disabled": {waits, revertWith("DisabledMarket(address)", 5), txmanager.Defer, false},
		"a token does not pay out": {waits, revertWith("TokenTransferError(address,address,uint256)", 1, 2, 3),
			txmanager.Defer, false},
		"the contract cannot rehearse": {waits, nodeError{3, "execution reverted", "0x"}, txmanager.Proceed, false},
		"nothing is said":              {waits, nil, txmanager.Proceed, false},
		"nobody answers":               {waits, errors.New("connection refused"), txmanager.Proceed, true},
		"a market order": {market, revertWith("InsufficientSwapOutputAmount(uint256,uint256)", 5, 6),
			txmanager.Proceed, false},
	} {
		made, _, v := r.prepare(order, c.terms, 0)
		if v.Kind != txmanager.Proceed {
			t.Fatalf("%s: %+v", name, v)
		}
		node := &rehearsing{ends: c.ends}
		o, err := r.simulate(t.Context(), node, order, made)
		if o.verdict.Kind != c.want || (err != nil) != c.fails || (node.made > 0) == c.terms.first {
			t.Errorf("%s: %+v, %v, rehearsed %d times", name, o, err, node.made)
		}
		if c.want != txmanager.Proceed && (o.verdict.Heads == 0 && o.verdict.Pause == 0 ||
			!strings.Contains(o.verdict.Reason, "the venue would freeze the order")) {
			t.Errorf("%s: %+v", name, o.verdict)
		}
	}
	if made, _, _ := r.prepare(job.Job{Kind: job.Order, Key: chain.Hash{1}, Tokens: []chain.Address{weth}}, waits,
		0); !bytes.Equal(made.Rehearsal,
		gmx.SimulateExecuteOrder(chain.Hash{1}, gmx.SimulatedPrices{
			Tokens: []chain.Address{weth}, From: 90, To: 90,
			Prices: []perp.Price{{Min: reportAt(weth, 90_000).Min, Max: reportAt(weth, 90_000).Max}},
		})) {
		t.Errorf("the rehearsal is %x", made.Rehearsal)
	}
}
