package shadow

import (
	"maps"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
)

// Blocks are a second apart; what is judged are those from 100 to 200, with a grace of 10.
var rules = Rules{BeginMs: 100_000, EndMs: 200_000, Grace: 10_000}

func found(n byte, heard, sent uint64) Trial {
	key := chain.Hash{n}
	t := Trial{JobID: job.OrderID(key, 1), Kind: job.Order, Key: key, DueSinceMs: heard * 1000,
		ObservedMs: heard * 1000}
	if sent > 0 {
		t.SentBlock, t.SentMs = sent, sent*1000
	}
	return t
}

func done(n byte, block uint64) Fate {
	return Fate{Kind: job.Order, Key: chain.Hash{n}, Block: block, TimeMs: block * 1000, By: chain.Address{1},
		Fee: chain.U64(10), Gas: chain.U64(3)}
}

func withdrawn(n byte, block uint64) Fate {
	f := done(n, block)
	f.ByOwner = true
	return f
}

func reverted(t Trial, times int) Trial {
	t.Reverts, t.Outcome, t.Reason = times, job.DroppedRecovered, "LiquidatePosition"
	return t
}

// Every way a job can go, and what it counts as.
func TestJudge(t *testing.T) {
	won := func(s Score) Score { s.Fees, s.Gas = chain.U64(10), chain.U64(3); return s }
	for name, c := range map[string]struct {
		trials    []Trial
		fates     []Fate
		want      Score
		distances map[int64]int
		faults    int
	}{
		"before": {[]Trial{found(1, 110, 110)}, []Fate{done(1, 113)}, won(Score{Before: 1}),
			map[int64]int{2: 1}, 0},
		"in the same block": {[]Trial{found(1, 110, 110)}, []Fate{done(1, 111)}, won(Score{Same: 1}),
			map[int64]int{0: 1}, 0},
		"a block late": {[]Trial{found(1, 110, 111)}, []Fate{done(1, 111)}, Score{After: 1},
			map[int64]int{-1: 1}, 0},
		"found and never simulated": {[]Trial{found(1, 110, 0)}, []Fate{done(1, 111)}, Score{After: 1}, nil, 0},
		"never found":               {nil, []Fate{done(1, 111)}, Score{Never: 1}, nil, 1},
		"never found, out of range": {nil, []Fate{done(1, 99), done(2, 195)}, Score{}, nil, 0},
		"nobody executed it":        {[]Trial{found(1, 110, 110)}, nil, Score{Wrong: 1}, nil, 1},
		"nobody has yet":            {[]Trial{found(1, 195, 195)}, nil, Score{Open: 1}, nil, 0},
		"withdrawn by its owner": {[]Trial{found(1, 110, 110)}, []Fate{withdrawn(1, 112)}, Score{Overtaken: 1}, nil,
			0},
		"recovered": {[]Trial{reverted(found(1, 110, 0), 1)}, nil, Score{WouldRevert: 1, Overtaken: 1},
			nil, 0},
		"not due, and insisted upon": {[]Trial{reverted(found(1, 110, 0), 2)}, nil, Score{WouldRevert: 1, Wrong: 1},
			nil, 1},
		"due in the end": {[]Trial{{JobID: "x", Kind: job.Order, Key: chain.Hash{1}, ObservedMs: 110_000,
			DueSinceMs: 110_000,
			SentBlock:  115, SentMs: 115_000, Reverts: 2}}, []Fate{done(1, 117)},
			won(Score{WouldRevert: 1, Before: 1}), map[int64]int{1: 1}, 0},
		"still waiting": {[]Trial{found(1, 110, 0)}, nil, Score{Open: 1}, nil, 0},
	} {
		r := Judge(rules, c.trials, c.fates)
		got := r.Total()
		if got.Kind = ""; got != c.want || !maps.Equal(r.Distances, c.distances) || len(r.Faults) != c.faults {
			t.Errorf("%s: %+v, distances %v, faults %v; want %+v, %v, %d", name, got, r.Distances, r.Faults, c.want,
				c.distances, c.faults)
		}
	}
}

// A job that was renewed is the same job to the one execution that ends it; another job of the same key is not.
func TestWhichTrialAnExecutionIsOf(t *testing.T) {
	again := found(1, 150, 150)
	again.DueSinceMs, again.ObservedMs = 150_000, 150_000
	r := Judge(rules, []Trial{found(1, 110, 110), again}, []Fate{done(1, 151)})
	if got := r.Total(); got.Before != 1 || r.Distances[40] != 1 {
		t.Errorf("%+v, %v", got, r.Distances)
	}
	again.JobID = "order:another change of the same order"
	r = Judge(rules, []Trial{found(1, 110, 110), again}, []Fate{done(1, 151)})
	if got := r.Total(); got.Same != 1 {
		t.Errorf("%+v, %v", got, r.Distances)
	}
}

// Of deleveragings sides are compared: which position is chosen changes with every block.
func TestAdlIsOfASide(t *testing.T) {
	trial := found(1, 110, 110)
	trial.Kind, trial.Market = job.Adl, chain.Address{5}
	other := trial
	other.JobID, other.Key = "adl:another", chain.Hash{2}
	fate := done(9, 111)
	fate.Kind, fate.Market = job.Adl, chain.Address{5}
	r := Judge(rules, []Trial{trial, other}, []Fate{fate})
	if got := r.Total(); got.Same != 1 || got.Wrong > 0 || got.Never > 0 {
		t.Errorf("%+v", got)
	}
	fate.IsLong = true
	if got := Judge(rules, []Trial{trial}, []Fate{fate}).Total(); got.Never != 1 {
		t.Errorf("the other side: %+v", got)
	}
}
