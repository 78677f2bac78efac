package preflight

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txmanager"
)

// sources is a node of which only the endpoints' names are asked.
type sources struct {
	names []evm.Source
}

func (s sources) Endpoints() (all []evm.EndpointStatus) {
	for _, name := range s.names {
		host, _, _ := strings.Cut(string(name), "/")
		all = append(all, evm.EndpointStatus{Source: name, Host: host})
	}
	return append(all, evm.EndpointStatus{Source: "a builder", Host: "a builder", Private: true})
}

func (s sources) Excluding(...evm.Source) evm.Reader { return evm.Reader{} }

// A matrix of what two endpoints say. A success of either is enough; what ends a job, both have to say.
func TestTwoHaveToSayIt(t *testing.T) {
	healthy, done := txmanager.End(job.DroppedRecovered, "healthy"), txmanager.End(job.LostRace, "done")
	strange, silence := odd("Panic(code 17)"), errors.New("no answer")
	for name, c := range map[string]struct {
		names  []evm.Source
		first  callResult
		second callResult
		err    error
		asks   bool
		want   txmanager.Verdict
		why    string // part of the reason, where that is not the first one's
		gas    uint64
	}{
		"a success": {[]evm.Source{"a", "b"}, callResult{from: "a", gas: 1}, callResult{}, nil, false,
			txmanager.Verdict{}, "", 1},
		"the only host": {[]evm.Source{"a/1", "a/2"}, callResult{verdict: healthy, from: "a/1"}, callResult{}, nil,
			false, healthy, "", 0},
		"the only endpoint": {[]evm.Source{"a"}, callResult{verdict: healthy, from: "a"}, callResult{}, nil, false,
			healthy, "", 0},
		"all have been asked": {[]evm.Source{"a", "b"}, callResult{verdict: strange}, callResult{}, nil, false,
			strange, "", 0},
		"both say so": {[]evm.Source{"a", "b"}, callResult{verdict: healthy, from: "a"},
			callResult{verdict: healthy}, nil, true, healthy, "", 0},
		"the other has success": {[]evm.Source{"a", "b"}, callResult{verdict: healthy, from: "a"}, callResult{gas: 7},
			nil, true, txmanager.Verdict{}, "", 7},
		"they differ": {[]evm.Source{"a", "b"}, callResult{verdict: healthy, from: "a"}, callResult{verdict: done},
			nil, true, odd(""), "as another: done", 0},
		"one is strange": {[]evm.Source{"a", "b"}, callResult{verdict: strange, from: "a"}, callResult{verdict: done},
			nil, true, odd(""), "as another: done", 0},
		"both are strange": {[]evm.Source{"a", "b"}, callResult{verdict: strange, from: "a"},
			callResult{verdict: strange}, nil, true, strange, "", 0},
		"the other is silent": {[]evm.Source{"a", "b"}, callResult{verdict: healthy, from: "a"}, callResult{}, silence,
			true, odd(""), "no other confirms it", 0},
	} {
		heard := make(chan struct{}, 1)
		o := newSecondCalls(sources{names: c.names}, time.Now, func() { heard <- struct{}{} })
		o.excluding = excluding(100, 100)
		var asked atomic.Int32
		ask, release := held(func(_ context.Context, of simulator) (callResult, error) {
			if of.(heightOf).first {
				return c.first, nil
			}
			asked.Add(1)
			return c.second, c.err
		})
		got := o.decide(1, 100, c.first, ask)
		release()
		if c.asks {
			if got.verdict.Kind != txmanager.Retry || got.verdict.Wake == nil || got.verdict.Heads != 1 {
				t.Fatalf("%s: not waited for the second: %+v", name, got.verdict)
			}
			<-heard
			<-got.verdict.Wake
			got = o.decide(1, 100, c.first, ask)
		}
		o.close()
		if n := asked.Load(); n > 1 || (n == 1) != c.asks {
			t.Errorf("%s: %d were asked besides", name, n)
		}
		if got.verdict.Kind != c.want.Kind || got.verdict.Outcome != c.want.Outcome ||
			got.verdict.Heads != c.want.Heads || got.gas != c.gas ||
			!strings.Contains(got.verdict.Reason, c.want.Reason) || !strings.Contains(got.verdict.Reason, c.why) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// held is a question that nobody answers before it is released: what asks it has its first verdict by then.
func held(ask simulation) (later simulation, release func()) {
	released := make(chan struct{})
	return func(ctx context.Context, of simulator) (callResult, error) {
		<-released
		return ask(ctx, of)
	}, func() { close(released) }
}

// heightOf is a reader of the first endpoint, or of others, that stands at a block.
type heightOf struct {
	simulator
	number uint64
	first  bool
}

func (h heightOf) Head(context.Context) (chain.BlockRef, error) {
	return chain.BlockRef{Number: h.number}, nil
}

// elsewhere has the first endpoint, or host, stand at one block and the others at another.
func excluding(first, others uint64) func(...evm.Source) reader {
	return func(than ...evm.Source) reader {
		if slices.ContainsFunc(than, func(s evm.Source) bool {
			return strings.HasPrefix(string(s), "a") &&
				s != "a builder"
		}) {
			return heightOf{number: others}
		}
		return heightOf{number: first, first: true}
	}
}

// A verdict on a state before the job was found ends nothing: the endpoint has not heard of it yet (TIER-5).
func TestVerdictsOnOlderStatesEndNothing(t *testing.T) {
	healthy := callResult{verdict: txmanager.End(job.DroppedRecovered, "healthy"), from: "a"}
	for _, c := range []struct{ first, others uint64 }{{99, 100}, {100, 99}, {99, 99}, {100, 100}} {
		heard := make(chan struct{}, 1)
		o := newSecondCalls(sources{names: []evm.Source{"a", "b"}}, time.Now, func() { heard <- struct{}{} })
		o.excluding = excluding(c.first, c.others)
		ask, release := held(func(context.Context, simulator) (callResult, error) { return healthy, nil })
		o.decide(1, 100, healthy, ask)
		release()
		<-heard
		got := o.decide(1, 100, healthy, ask).verdict
		if ends := c.first >= 100 && c.others >= 100; ends != (got.Kind == txmanager.Drop) || !ends &&
			!strings.Contains(got.Reason, "its head is block 99") {
			t.Errorf("heads %d and %d: %+v", c.first, c.others, got)
		}
		o.close()
	}
}

// What was said a while ago counts no more, and a question that nobody answers ends with the lease term.
func TestSecondWordsGrowOld(t *testing.T) {
	now, heard := time.Unix(1000, 0), make(chan struct{}, 1)
	o := newSecondCalls(sources{names: []evm.Source{"a", "b"}}, func() time.Time { return now },
		func() { heard <- struct{}{} })
	o.excluding = excluding(100, 100)
	first := callResult{verdict: txmanager.End(job.DroppedRecovered, "healthy"), from: "a"}
	var asked atomic.Int32
	ask := func(_ context.Context, of simulator) (callResult, error) {
		if !of.(heightOf).first {
			asked.Add(1)
		}
		return first, nil
	}
	once, release := held(ask)
	o.decide(1, 100, first, once)
	release()
	<-heard
	now = now.Add(secondCallFresh + time.Millisecond)
	again, release := held(ask)
	if got := o.decide(1, 100, first, again); got.verdict.Kind != txmanager.Retry {
		t.Errorf("an old word was taken: %+v", got)
	}
	release()
	<-heard
	if got := o.decide(1, 100, first, ask); got.verdict.Kind != txmanager.Drop || asked.Load() != 2 {
		t.Errorf("%+v after %d questions", got, asked.Load())
	}
	o.decide(2, 100, first, func(ctx context.Context, _ simulator) (callResult, error) {
		<-ctx.Done()
		return callResult{}, ctx.Err()
	})
	o.close()
	<-heard
}
