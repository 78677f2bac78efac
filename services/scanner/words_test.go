package scanner

import (
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
)

// at is a block of the tests.
func at(number uint64) chain.BlockRef {
	return chain.BlockRef{Number: number, Hash: chain.Hash{1, byte(number)}}
}

// an audit as far as words are concerned: what differs at a final block is offered, with the markets it concerns.
func auditAt(w *words, final uint64, read map[chain.Hash]chain.Hash) (differing int) {
	var params []wire.Param
	for key, value := range read {
		if w.differ(key, value, final) {
			params = append(params, wire.Param{Key: key, Value: value, Read: at(final)})
		}
	}
	w.offer(final, params, []wire.Audit{{Market: marketOf(1), Read: at(final)}})
	return len(params)
}

// mine publishes what is to be said in a block, and the logs in it.
func mineWords(w *words, number uint64, logs ...chain.Log) (params []wire.Param, audits []wire.Audit) {
	c := content{block: at(number)}
	c.params, c.audits = w.next(c.block)
	for _, l := range logs {
		l.Block = number
		c.logs = append(c.logs, routedLog{Log: l})
	}
	w.reached(c)
	return c.params, c.audits
}

// What differs is said once, its market is called audited in a later block, an unchanged word is not said again, and
// what a reorg takes back is.
func TestWordsAreSaidWhenTheyDiffer(t *testing.T) {
	w := newWords(decidingSpan)
	key, other := chain.Hash{1}, chain.Hash{2}
	if n := auditAt(w, 5, map[chain.Hash]chain.Hash{key: {}, other: {9}}); n != 2 {
		t.Fatalf("%d words of which nothing is known are said", n)
	}
	params, audits := mineWords(w, 8)
	if len(params) != 2 || len(audits) != 0 || params[0].Block != at(8) || params[0].Read != at(5) {
		t.Fatalf("said %+v, audited %+v", params, audits)
	}
	if params, audits = mineWords(w, 9); len(params) != 0 || len(audits) != 1 || audits[0].Block != at(9) ||
		audits[0].Read != at(5) {
		t.Fatalf("after the words: said %+v, audited %+v", params, audits)
	}
	if params, audits = mineWords(w, 10); len(params)+len(audits) != 0 {
		t.Fatalf("said again: %+v %+v", params, audits)
	}
	if n := auditAt(w, 10, map[chain.Hash]chain.Hash{key: {}, other: {9}}); n != 0 {
		t.Errorf("%d unchanged words are said again", n)
	}
	if n := auditAt(w, 11, map[chain.Hash]chain.Hash{key: {7}, other: {9}}); n != 1 {
		t.Errorf("%d of one changed word are said", n)
	}
	mineWords(w, 12)
	w.forgetAbove(11)
	if n := auditAt(w, 11, map[chain.Hash]chain.Hash{key: {7}, other: {9}}); n != 1 {
		t.Errorf("%d of one word that was taken back are said again", n)
	}
	select {
	case <-w.wake:
	default:
		t.Error("a reorg asks for no audit")
	}
}

// An event of the block that was read, or of a later one, is the better witness; one of before is checked against the
// chain.
func TestEventsAndAudits(t *testing.T) {
	w := newWords(decidingSpan)
	key, value := chain.Hash{4}, chain.U64(42).Bytes32()
	set := func(n uint64) chain.Log {
		return gmxtest.Event(emitter, "SetUint",
			perp.Fields{"baseKey": key, "data": perp.Bytes{}, "value": chain.U64(n)})
	}
	mineWords(w, 20, set(42))
	for _, tt := range []struct {
		read  uint64
		value chain.Hash
		want  bool
	}{{19, chain.Hash{1}, false}, {20, chain.Hash{1}, false}, {21, chain.Hash{1}, true}, {21, value, false}} {
		if got := w.differ(key, tt.value, tt.read); got != tt.want {
			t.Errorf("%x read at block %d differs: %t", tt.value, tt.read, got)
		}
	}
	// An event that overtakes what an audit has found is what counts, and the finding is said once all the same:
	// readers tell which is the later.
	auditAt(w, 21, map[chain.Hash]chain.Hash{key: {5}})
	if params, _ := mineWords(w, 24, set(43)); len(params) != 1 {
		t.Fatalf("said %+v", params)
	}
	if w.differ(key, chain.U64(43).Bytes32(), 25) {
		t.Error("what the event said is taken for different")
	}
	if params, _ := mineWords(w, 25); len(params) != 0 {
		t.Errorf("said again: %+v", params)
	}
}

// An audit reads a final block that was published, from the topic's first on, and not below the market that asked for
// it.
func TestAuditWaitsForAFinalBlock(t *testing.T) {
	w := newWords(decidingSpan)
	if _, may := w.begin(1); may {
		t.Error("an audit begins before anything is final")
	}
	w.finalize(at(7), 9)
	if _, may := w.begin(8); may {
		t.Error("an audit reads below the topic's first block")
	}
	if final, may := w.begin(3); !may || final != at(7) {
		t.Errorf("block %+v may be read: %t", final, may)
	}
	mineWords(w, 10, marketListed(3))
	w.finalize(at(9), 10)
	if _, may := w.begin(3); may {
		t.Error("an audit reads a block from before the market was there")
	}
	w.finalize(at(10), 12)
	select {
	case <-w.wake:
	default:
		t.Error("a new market asks for no audit")
	}
	if _, may := w.begin(3); !may {
		t.Error("the block of the market may not be read although it is final")
	}
}

// More words than one block is to hold are said in several, and only then are the markets called audited.
func TestManyWords(t *testing.T) {
	w := newWords(decidingSpan)
	read := map[chain.Hash]chain.Hash{}
	for i := range 2*mostPerBlock + 1 {
		read[chain.Hash(chain.U64(uint64(i)).Bytes32())] = chain.Hash{1}
	}
	auditAt(w, 5, read)
	for i, want := range []int{mostPerBlock, mostPerBlock, 1, 0} {
		params, audits := mineWords(w, uint64(6+i))
		if len(params) != want || (len(audits) > 0) != (want == 0) {
			t.Errorf("block %d says %d words and audits %d markets, want %d words", i, len(params), len(audits), want)
		}
	}
}
