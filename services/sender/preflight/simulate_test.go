package preflight

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	"perpkeeper/pkg/txmgr/txm"
	"perpkeeper/pkg/txmgr/txmanager"
)

// words is a state with some of the exchange's words on gas.
type words struct {
	known   map[string]uint64
	markets []perp.MarketValue
	reads   int
	err     error
}

func (w *words) Parameters(_ context.Context, keys []chain.Hash) (known []perp.Parameter, err error) {
	w.reads++
	for name, value := range w.known {
		if key := perp.DataStoreKey(name); slices.Contains(keys, key) {
			known = append(known, perp.Parameter{Key: key, Value: chain.U64(value).Bytes32()})
		}
	}
	return known, w.err
}

func (w *words) GlvMarkets(context.Context) ([]perp.MarketValue, error) { return w.markets, nil }

func reckoned() *gasLimits { return newGasLimits(&words{}, time.Now) }

func TestGasLimitFollowsTheWords(t *testing.T) {
	now := time.Unix(1000, 0)
	said := &words{known: map[string]uint64{"INCREASE_ORDER_GAS_LIMIT": 5_000_000}}
	g := newGasLimits(said, func() time.Time { return now })
	order := job.Job{Kind: job.Order, Tokens: make([]chain.Address, 2)}
	work := gmx.Work{Kind: job.Order, OrderType: perp.MarketIncrease}
	before := g.limit(order, work, 0)
	for range 3 {
		if err := g.refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if after := g.limit(order, work, 0); after < before+1_000_000 || said.reads != 1 {
		t.Errorf("before %d, after %d, read %d times", before, after, said.reads)
	}
	glv := chain.Address{7}
	said.known["INCREASE_ORDER_GAS_LIMIT"] = 6_000_000
	said.markets = []perp.MarketValue{
		{Measure: perp.GlvMarket, Scope: glv.Hash(), Token: chain.Address{1}, Value: chain.I64(1)},
		{Measure: perp.GlvMarket, Scope: glv.Hash(), Token: chain.Address{2}, Value: chain.I64(1)},
		{Measure: perp.GlvMarket, Scope: glv.Hash(), Token: chain.Address{3}}, // no longer
	}
	now = now.Add(wordsFresh)
	if err := g.refresh(t.Context()); err != nil || g.markets(glv) != 2 || g.markets(chain.Address{8}) != 0 {
		t.Errorf("%v, %d markets", err, g.markets(glv))
	}
	if after := g.limit(order, work, 0); after < before+2_000_000 {
		t.Errorf("before %d, after %d", before, after)
	}
	deposit, of := job.Job{Kind: job.Deposit}, gmx.Work{Kind: job.Deposit}
	first, once, often := g.limit(deposit, of, 0), g.limit(deposit, of, 1), g.limit(deposit, of, 1000)
	if once != first+first/2 || often != gmx.MaxGas {
		t.Errorf("after failed attempts: %d, %d", once, often)
	}
	now, said.err = now.Add(wordsFresh), errors.New("no connection")
	if err := g.refresh(t.Context()); !errors.Is(err, said.err) || g.markets(glv) != 2 {
		t.Errorf("a state that does not answer: %v", err)
	}
}

// replies is a node that answers simulated calls in their order, the last answer for ever.
type replies struct {
	answers []error
	gas     []uint64 // of the calls
}

func (r *replies) Simulate(_ context.Context, _, _ chain.Address, _ []byte, gas uint64,
	_ chain.Uint) (evm.Source, error) {
	r.gas = append(r.gas, gas)
	answer := r.answers[0]
	r.answers = r.answers[min(1, len(r.answers)-1):]
	return "", answer
}

// nodeError is an error of a node's own, as the JSON-RPC client gives it.
type nodeError struct {
	code int
	text string
	data string
}

func (e nodeError) Error() string  { return e.text }
func (e nodeError) ErrorCode() int { return e.code }
func (e nodeError) ErrorData() any { return e.data }

func revertWith(signature string, args ...uint64) nodeError {
	hash := chain.Keccak256([]byte(signature))
	data := fmt.Sprintf("0x%x", hash[:4])
	for _, a := range args {
		data += fmt.Sprintf("%064x", a)
	}
	return nodeError{3, "execution reverted", data}
}

// A call that wants more gas is made again at once with more, at most twice; what it wants beyond that it wants at the
// next head.
func TestSimulateRaisesTheGasLimit(t *testing.T) {
	entry := revertWith("InsufficientExecutionGas(uint256,uint256,uint256)", 5_000_000, 5_500_000, 1_000_000)
	cancels := revertWith("InsufficientGasForAutoCancellation(uint256,uint256)", 301_087, 1_200_000)
	empty, panics := nodeError{3, "execution reverted", "0x"}, revertWith("Panic(uint256)", 17)
	exhausted := nodeError{-32000, "err: out of gas (supplied gas 6000000)", ""}
	const reckoned, most = 6_000_000, gmx.MaxGas
	missing := gmx.RaisedLimit(reckoned, gmx.DecodeRevert(gasRevert(entry)))
	if missing <= reckoned+1_500_000 || missing > reckoned+2_000_000 {
		t.Fatalf("what is missing is told, and %d is tried", missing)
	}
	for name, c := range map[string]struct {
		answers []error
		gas     []uint64
		want    txmanager.Decision
		heads   uint64
		short   bool
	}{
		"enough":                  {[]error{nil}, []uint64{reckoned}, txmanager.Proceed, 0, false},
		"what is missing is told": {[]error{entry, nil}, []uint64{reckoned, missing}, txmanager.Proceed, 0, false},
		"more is missing further on": {[]error{entry, cancels, nil}, []uint64{reckoned, missing, most},
			txmanager.Proceed,
			0, false},
		"a revert without a reason": {[]error{empty, nil}, []uint64{reckoned, most}, txmanager.Proceed, 0,
			false},
		"one whatever the limit": {[]error{empty}, []uint64{reckoned, most}, txmanager.Retry, 1, false},
		"the call itself runs out of gas": {[]error{exhausted, nil}, []uint64{reckoned, most}, txmanager.Proceed, 0,
			false},
		"the most is not enough":              {[]error{cancels}, []uint64{reckoned, most}, txmanager.Retry, 1, true},
		"an arithmetic error of the contract": {[]error{panics}, []uint64{reckoned}, txmanager.Retry, 1, false},
		"a text": {[]error{revertWith("Error(string)")}, []uint64{reckoned}, txmanager.Retry, 1,
			false},
		"a cause that stands": {[]error{revertWith("EmptySizeDeltaInTokens()")}, []uint64{reckoned},
			txmanager.Drop, 0,
			false},
	} {
		node := &replies{answers: c.answers}
		r := &Checker{Parts: Parts{Metrics: NewMetrics(prometheus.NewRegistry()), Log: zerolog.Nop()}}
		o, err := r.simulate(t.Context(), node, job.Job{Kind: job.Order}, txmanager.Call{Gas: reckoned})
		if err != nil || o.verdict.Kind != c.want || o.verdict.Heads != c.heads || o.short != c.short ||
			!slices.Equal(node.gas, c.gas) ||
			o.gas != node.gas[len(node.gas)-1] {
			t.Errorf("%s: %+v, %v, tried with %v", name, o, err, node.gas)
		}
	}
}

func gasRevert(e nodeError) (data []byte) {
	_, _ = fmt.Sscanf(strings.TrimPrefix(e.data, "0x"), "%x", &data)
	return data
}

// LIQ-10: what is asked again is asked at every head if it is urgent, and less and less often if it is not.
func TestHeadsToWait(t *testing.T) {
	for waited, want := range map[time.Duration]uint64{0: 1, 4 * time.Second: 1, 5 * time.Second: 2, time.Minute: 8,
		time.Hour: 8} {
		if got := headsToWait(job.Job{Kind: job.Order}, waited); got != want {
			t.Errorf("an order after %s: %d heads, want %d", waited, got, want)
		}
		for _, urgent := range []job.Kind{job.Liquidation, job.Adl, job.AdlState} {
			if got := headsToWait(job.Job{Kind: urgent}, waited); got != 1 {
				t.Errorf("a %s after %s: %d heads", urgent, waited, got)
			}
		}
	}
}

// A token that refuses to be moved is asked again after a pause that grows with the time the job has waited; what the
// venue has switched off, at the next heads. Neither ends an attempt, however long it lasts, and both are told.
func TestNotNowIsAskedAgain(t *testing.T) {
	parts := Parts{Head: horizonAt(90_000, time.Now()), Metrics: NewMetrics(prometheus.NewRegistry()),
		Clock: time.Now, Log: zerolog.Nop()}
	paused, off := revertWith("TokenTransferError(address,address,uint256)", 1, 2, 3),
		revertWith("DisabledFeature(bytes32)", 4)
	for _, c := range []struct {
		answer error
		kind   job.Kind
		waited time.Duration
		pause  time.Duration
		heads  uint64
	}{
		{paused, job.Order, 0, time.Second, 0},
		{paused, job.Order, 10 * time.Second, 10 * time.Second, 0},
		{paused, job.Liquidation, 24 * time.Hour, 30 * time.Second, 0},
		{revertWith("ContractPaused(uint8)", 0), job.Order, 0, time.Second, 0},
		{revertWith("PolicyForbids(bytes32,uint64)", 1, 2), job.Order, 0, time.Second, 0},
		{off, job.Order, 0, 0, 1},
		{off, job.Order, time.Hour, 0, 8},
		{off, job.Liquidation, time.Hour, 0, 1},
		{revertWith("DisabledMarket(address)", 4), job.Adl, time.Hour, 0, 1},
		{revertWith("InvalidMinMaxForPrice(address,uint256,uint256)", 4, 5, 6), job.Liquidation, 0, 0, 1},
	} {
		node := struct {
			*replies
			sources
		}{&replies{answers: []error{c.answer}}, sources{}}
		parts.Node = node
		r := &Checker{Parts: parts, second: newSecondCalls(node, time.Now, func() {})}
		task := &txmanager.Task{Intent: txm.Intent{Job: job.Job{ID: "x", Kind: c.kind}, Waited: c.waited}}
		_, v, err := r.call(t.Context(), task)
		if err != nil || v.Kind != txmanager.Defer || v.Pause != c.pause || v.Heads != c.heads || !v.Shown {
			t.Errorf("%v to a %s after %s: %+v, %v", gmx.DecodeRevert(gasRevert(c.answer.(nodeError))), c.kind,
				c.waited,
				v, err)
		}
		r.Close()
	}
}
