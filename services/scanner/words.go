package scanner

import (
	"slices"
	"sync"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
)

// words is what this writer knows of the DataStore: every word that events or PARAMs of the topic have set, and what
// an audit has found that is not on the topic yet. A word of which nothing is known is published by the first audit,
// whatever it is: the fold knows whether it differs. It is safe for concurrent use.
type words struct {
	decoder *gmx.Decoder
	wake    chan struct{}       // holds a token if something asks for an audit
	turn    chan chain.BlockRef // holds a block at which the words that decide are to be compared
	every   uint64              // ms of the chain's time from one such block to the next

	mu      sync.Mutex
	inTopic map[chain.Hash]topicWord // by key
	pending []wire.Param             // differences that wait for a block
	passed  []wire.Audit             // markets that are audited once those are on the topic
	least   uint64                   // the next audit is to read this block or a later one
	tip     uint64                   // the newest block that was published
	final   chain.BlockRef           // the newest block of the topic that is final

	deciding []perp.Word
	span     uint64         // of the chain's time; the first block in it was read, or is being
	asked    chain.BlockRef // that block; none once a reorg has taken it back
}

// topicWord is the last value that the topic has of a word.
type topicWord struct {
	value chain.Hash
	block uint64 // at which it had this value
	in    uint64 // whose records say so
	event bool
}

func newWords(every uint64) *words {
	return &words{decoder: gmx.NewDecoder(), wake: make(chan struct{}, 1), every: every,
		turn: make(chan chain.BlockRef, 1), inTopic: map[chain.Hash]topicWord{}}
}

// observe notes a message of the topic, of what was there before this epoch.
func (w *words) observe(m wire.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m := m.(type) {
	case wire.Log:
		w.note(m.Log)
	case wire.Reorg:
		w.drop(m.Ancestor.Number)
	}
}

// note notes a log that sets a parameter, or lists a market. The mutex is held.
func (w *words) note(l chain.Log) {
	if !gmx.IsParameter(l) && !gmx.IsMarketListing(l) {
		return
	}
	events, err := w.decoder.Transaction([]chain.Log{l}, 0)
	if err != nil {
		return // whoever folds it says what is wrong with it
	}
	for _, e := range events {
		switch e := e.(type) {
		case perp.ParameterSet:
			w.inTopic[e.Parameter.Key] = topicWord{e.Parameter.Value, l.Block, l.Block, true}
		case perp.MarketListed:
			w.ask(l.Block)
		}
	}
}

// said is what the topic has of a word.
func (w *words) said(key chain.Hash) (value chain.Hash, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, known := w.inTopic[key]
	return s.value, known
}

// ask asks for an audit of a block or a later one. The mutex is held.
func (w *words) ask(block uint64) {
	w.least = max(w.least, block)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// drop forgets what was published, or read, above a block. The mutex is held.
func (w *words) drop(ancestor uint64) {
	w.forgetTurn(ancestor)
	for key, s := range w.inTopic {
		if s.in > ancestor {
			delete(w.inTopic, key)
		}
	}
}

// forgetAbove forgets what was published above a block, which is taken back: an audit publishes it again.
func (w *words) forgetAbove(ancestor uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop(ancestor)
	w.ask(0)
}

// reached notes a block that stands in all partitions, with what was published in it.
func (w *words) reached(c content) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tip = c.block.Number
	for _, p := range c.params {
		read := p.Read.Number
		if !p.Audited() {
			read = p.Block.Number
		}
		if known := w.inTopic[p.Key]; known.block < read || known.block == read && !known.event {
			w.inTopic[p.Key] = topicWord{p.Value, read, c.block.Number, false}
		}
	}
	for _, l := range c.logs {
		w.note(l.Log)
	}
	w.settle(c)
	w.takeTurn(c.block)
}

// settle takes out of what waits what a block has published. The mutex is held.
func (w *words) settle(c content) {
	type reading struct{ key, at chain.Hash }
	inTopic := map[reading]bool{}
	for _, p := range c.params {
		inTopic[reading{p.Key, p.Read.Hash}] = true
	}
	w.pending = slices.DeleteFunc(w.pending, func(p wire.Param) bool { return inTopic[reading{p.Key, p.Read.Hash}] })
	w.passed = slices.DeleteFunc(w.passed, func(a wire.Audit) bool {
		return slices.ContainsFunc(c.audits, func(published wire.Audit) bool {
			return published.Market == a.Market &&
				published.Read == a.Read
		})
	})
}

// finalize notes the newest block of the topic that is final, and the newest there is.
func (w *words) finalize(final chain.BlockRef, tip uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.final, w.tip = final, tip
}

// mostPerBlock is how many words an audit publishes in one block: about a quarter of a megabyte in each partition.
const mostPerBlock = 1000

// next returns what is to be published in a block: words that differ, or, once all of them stand in earlier blocks,
// which markets are audited.
func (w *words) next(block chain.BlockRef) ([]wire.Param, []wire.Audit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := min(len(w.pending), mostPerBlock); n > 0 {
		params := make([]wire.Param, n)
		for i, p := range w.pending[:n] {
			p.Block = block
			params[i] = p
		}
		return params, nil
	}
	audits := make([]wire.Audit, len(w.passed))
	for i, a := range w.passed {
		a.Block = block
		audits[i] = a
	}
	return nil, audits
}

// differ reports whether a word as it was read at a block is not what was published. An event of that block, or what
// is known of a later one, is the better witness.
func (w *words) differ(key, value chain.Hash, read uint64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.differs(key, value, read)
}

// differs is differ with the mutex held.
func (w *words) differs(key, value chain.Hash, read uint64) bool {
	known, is := w.inTopic[key]
	if is && (known.block > read || known.block == read && known.event) {
		return false
	}
	return !is || known.value != value
}

// offer takes in what an audit has found at a block, in place of what was found there or before and has not been
// published yet.
func (w *words) offer(read uint64, differing []wire.Param, passed []wire.Audit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	newer := map[chain.Hash]bool{}
	w.pending = keep(w.pending, func(p wire.Param) bool {
		newer[p.Key] = newer[p.Key] || p.Read.Number > read
		return p.Read.Number > read
	})
	w.pending = append(keep(differing, func(p wire.Param) bool { return !newer[p.Key] }), w.pending...)
	w.passed = passed
}

func keep(list []wire.Param, which func(wire.Param) bool) []wire.Param {
	return slices.DeleteFunc(list, func(p wire.Param) bool { return !which(p) })
}

// begin returns the final block that an audit may read: one that was published, from the topic's first block on, and
// not below what asked for the audit.
func (w *words) begin(first uint64) (final chain.BlockRef, may bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.final.Hash.IsZero() || w.final.Number < max(w.least, first) || w.final.Number > w.tip {
		return w.final, false
	}
	select {
	case <-w.wake:
	default:
	}
	return w.final, true
}
