package scanner

import (
	"fmt"
	"slices"
	"testing"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
)

// settledWords are words of a running venue: an audit has passed, and everything it said is published.
func settledWords(key chain.Hash, value chain.Hash) *words {
	w := newWords(decidingSpan)
	w.decide([]perp.Word{{Key: key}})
	auditAt(w, 5, map[chain.Hash]chain.Hash{key: value})
	mineWords(w, 8)
	mineWords(w, 9)
	return w
}

// mineAt publishes a block of a time (ms) and returns what is said in it, and whether words are to be compared at it.
func mineAt(w *words, block chain.BlockRef, timeMs uint64) (params []wire.Param, turn bool) {
	c := content{block: block}
	c.block.TimeMs = timeMs
	c.params, c.audits = w.next(block)
	w.reached(c)
	select {
	case at := <-w.turn:
		return c.params, at.Hash == block.Hash
	default:
		return c.params, false
	}
}

// Words that decide are compared at the first block of every ten seconds of the chain's time, the same in every keeper;
// what differs is said in the next block, once, and no older reading takes it back.
func TestDecidingWordsTakeTurns(t *testing.T) {
	key, value, changed := chain.Hash{1}, chain.Hash{7}, chain.Hash{8}
	w := settledWords(key, value)
	words := w.whichDecide()
	for _, b := range []struct {
		number, timeMs uint64
		turn           bool
	}{{10, 50_000, true}, {11, 50_450, false}, {12, 59_999, false}, {13, 60_000, true}, {14, 60_000, false},
		{15, 95_000, true}} {
		if _, turn := mineAt(w, at(b.number), b.timeMs); turn != b.turn {
			t.Errorf("words are compared at block %d: %t", b.number, turn)
		}
	}
	w.offerDeciding(at(15), words, []chain.Hash{value})
	if params, _ := mineAt(w, at(16), 95_450); len(params) != 0 {
		t.Errorf("a word that is right is said: %+v", params)
	}
	mineAt(w, at(17), 101_000)
	w.offerDeciding(at(15), words, []chain.Hash{changed}) // an answer that came too late
	w.offerDeciding(at(17), words, []chain.Hash{changed})
	params, _ := mineAt(w, at(18), 101_450)
	if len(params) != 1 || params[0].Read != at(17) || params[0].Block != at(18) || params[0].Value != changed {
		t.Fatalf("said %+v", params)
	}
	if n := auditAt(w, 12, map[chain.Hash]chain.Hash{key: value}); n != 0 {
		t.Error("an audit of an older block takes back what was read later")
	}
	if n := auditAt(w, 17, map[chain.Hash]chain.Hash{key: changed}); n != 0 {
		t.Error("what is on the topic is said again")
	}
	// what was found and is not published yet outlives an audit that has read an older block
	mineAt(w, at(19), 111_000)
	w.offerDeciding(at(19), words, []chain.Hash{value})
	auditAt(w, 18, map[chain.Hash]chain.Hash{key: changed})
	if params, _ := mineAt(w, at(20), 111_450); len(params) != 1 || params[0].Value != value {
		t.Errorf("said %+v", params)
	}
}

// What was read at a block that a reorg takes back is not said on the other branch, whether it was already found or is
// still being read; and the first block of that branch is read.
func TestReorgForgetsDecidingWords(t *testing.T) {
	key, value, changed := chain.Hash{1}, chain.Hash{7}, chain.Hash{8}
	other := chain.BlockRef{Number: 12, Hash: chain.Hash{2, 12}}
	for name, late := range map[string]bool{"found": false, "being read": true} {
		t.Run(name, func(t *testing.T) {
			w := settledWords(key, value)
			mineAt(w, at(11), 50_000)
			mineAt(w, at(12), 60_000)
			if !late {
				w.offerDeciding(at(12), w.whichDecide(), []chain.Hash{changed})
			}
			w.forgetAbove(11)
			if late {
				w.offerDeciding(at(12), w.whichDecide(), []chain.Hash{changed})
			}
			params, turn := mineAt(w, other, 60_450)
			if len(params) != 0 || !turn {
				t.Errorf("on the other branch %+v is said, and words are compared: %t", params, turn)
			}
		})
	}
	w := settledWords(key, value)
	mineAt(w, at(12), 60_000)
	w.offerDeciding(at(12), w.whichDecide(), []chain.Hash{changed})
	mineAt(w, at(13), 60_450)
	w.forgetAbove(12) // the record is gone, what it said is not
	if _, turn := mineAt(w, chain.BlockRef{Number: 13, Hash: chain.Hash{2, 13}}, 60_450); !turn {
		t.Fatal("the words are not read again")
	}
	w.offerDeciding(chain.BlockRef{Number: 13, Hash: chain.Hash{2, 13}}, w.whichDecide(), []chain.Hash{changed})
	if params, _ := mineAt(w, at(14), 60_900); len(params) != 1 || params[0].Value != changed {
		t.Errorf("said %+v", params)
	}
}

// minCollateral is a word that decides, and is of no market.
var minCollateral = perp.DataStoreKey("MIN_COLLATERAL_USD")

// writeSilently changes a word of the DataStore, and no event says so.
func (d *devnet) writeSilently(key, value chain.Hash) {
	d.t.Helper()
	d.send(1, store, append(slices.Clone(key[:]), value[:]...))
	d.mine(1)
}

// saidOf is the last that the topic says of a word on its branch, and in which block.
func saidOf(t *testing.T, k *kafka, key chain.Hash) (p wire.Param, in uint64) {
	t.Helper()
	a, err := k.audit(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range a.blocks {
		for _, said := range slices.Concat(b.params, b.versions) {
			if said.Key == key {
				p, in = said, b.end.Block.Number
			}
		}
	}
	return p, in
}

// A word that decides and is written without an event is on the topic before anything of it is final, as read at a
// block right below; a reorg that takes the writing back takes what was read with it.
func TestSilentWriteOfADecidingWord(t *testing.T) {
	d, k := startDevnet(t), startKafka(t)
	start(t, testConfig(d, k.Addr()), k, func(s *Scanner) { s.decidingSpan = 20 })
	tr := newTruth(d)
	said := func(want chain.Hash) {
		t.Helper()
		eventually(t, "the topic says the word", func() error {
			d.mine(1)
			settle(t, k, tr)
			if p, _ := saidOf(t, k, minCollateral); p.Read.Number == 0 || p.Value != want {
				return fmt.Errorf("it says %+v", p)
			}
			return nil
		})
	}
	d.trade(1)
	said(chain.Hash{}) // by the first audit
	d.StallFinality()
	d.mine(1)
	before := d.Head().Number.Uint64()
	d.writeSilently(minCollateral, chain.Hash{31: 9})
	said(chain.Hash{31: 9})
	p, in := saidOf(t, k, minCollateral)
	if p.Read.Number <= before || p.Read.Number >= in || in-p.Read.Number > 3 {
		t.Errorf("said in block %d as read at block %d; it was written above block %d", in, p.Read.Number, before)
	}
	d.reorg(d.Head().Number.Uint64()-before, evmnode.Drop)
	d.mine(1)
	said(chain.Hash{})
}
