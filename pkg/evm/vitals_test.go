package evm

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
)

var someTime = time.Unix(1_700_000_000, 0)

func TestVitalsScore(t *testing.T) {
	const timeout = 5 * time.Second
	fast, slow, flaky, late := vitals{}, vitals{}, vitals{}, vitals{}
	for range 50 {
		fast.answered("m", 10*time.Millisecond)
		slow.answered("m", 400*time.Millisecond)
		flaky.answered("m", 10*time.Millisecond)
		late.answered("m", 10*time.Millisecond)
		late.sawHead(chain.BlockRef{Number: 1, Hash: chain.Hash{1}}, 900*time.Millisecond)
	}
	flaky.failed()
	if s := fast.score(timeout); math.Abs(s-10) > 0.1 {
		t.Errorf("an endpoint that always takes 10 ms scores %f", s)
	}
	if s := flaky.score(timeout); math.Abs(s-510) > 1 { // 10 % of 5 s
		t.Errorf("one that has just failed scores %f", s)
	}
	if s := late.score(timeout); math.Abs(s-910) > 1 {
		t.Errorf("one that is two blocks behind scores %f", s)
	}
	if fast.score(timeout) >= slow.score(timeout) {
		t.Error("the slow one is not worse")
	}
	before := slow.score(timeout)
	slow.overtaken(100 * time.Millisecond)
	if slow.score(timeout) != before {
		t.Error("losing a race earlier than usual says nothing")
	}
	if slow.overtaken(time.Second); slow.score(timeout) <= before {
		t.Error("losing a race later than usual says something")
	}
}

func TestPatience(t *testing.T) {
	const bound = 300 * time.Millisecond
	var v vitals
	for range enoughSamples - 1 {
		v.answered("m", 20*time.Millisecond)
	}
	if got := v.patience("m", bound); got != bound {
		t.Errorf("with few samples %s", got)
	}
	v.answered("m", 20*time.Millisecond)
	if got := v.patience("m", bound); got != 20*time.Millisecond {
		t.Errorf("with enough %s", got)
	}
	if got := v.patience("another", bound); got != bound {
		t.Errorf("of another method %s", got)
	}
	for range 10 {
		v.answered("m", 10*time.Second)
	}
	if got := v.patience("m", bound); got != bound {
		t.Errorf("of a slow one %s", got)
	}
}

// At least 95 % of the last answers took no longer than p95, and it is one of them.
func TestP95(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOfN(rapid.Int64Range(1, 1000), 1, 200).Draw(t, "times")
		var w window
		for _, ns := range times {
			w.add(time.Duration(ns))
		}
		kept := times[max(0, len(times)-len(w.times)):]
		p, atMost, below := int64(w.p95()), 0, 0
		for _, ns := range kept {
			if ns <= p {
				atMost++
			}
			if ns < p {
				below++
			}
		}
		if 100*atMost < 95*len(kept) || 100*below >= 95*len(kept) {
			t.Fatalf("%d of %d took at most %d, %d less", atMost, len(kept), p, below)
		}
	})
}
