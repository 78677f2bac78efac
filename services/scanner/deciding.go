package scanner

import (
	"context"
	"fmt"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
)

// Of the words that rules read some decide whether an open position is liquidatable. They are compared more often than
// by audits, and at blocks that are not final: at the first block of every decidingSpan of the chain's time, so that
// every keeper reads them at the same block. What differs is published in the next block, as an audit's finding. Where
// a reorg takes the block away, what was read goes with it, and the first block of the new branch is read.

const (
	// decidingSpan is how old such a word may become, in milliseconds of the chain's time.
	decidingSpan = 10_000
	// decidingPatience is how long one comparison may take.
	decidingPatience = 10 * time.Second
	// decidingTries is how many comparisons in a row may fail before readiness shows it.
	decidingTries = 6
)

// compareDeciding compares the words that decide for as long as the epoch lasts. It never ends it, nor holds up
// publishing: what cannot be read is read at the next turn.
func (w *writer) compareDeciding(ctx context.Context) error {
	select {
	case <-w.caughtUp:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for failures := 0; ; {
		select {
		case block := <-w.words.turn:
			err := w.decidingOnce(ctx, block)
			switch {
			case ctx.Err() != nil:
			case err == nil && failures >= decidingTries:
				w.status.audited(nil)
				failures = 0
			case err == nil:
				failures = 0
			default:
				w.log.Debug().Err(err).Uint64("block", block.Number).Msg("the words that decide liquidations could " +
					"not be compared with the chain; they are again in a moment")
				if failures++; failures >= decidingTries {
					w.status.audited(fmt.Errorf("the words that decide liquidations could not be compared with the "+
						"chain %d times in a row (ask another node: chain.urls): %w", failures, err))
				}
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// decidingOnce reads the words that decide after a block of the topic, and offers what differs.
func (w *writer) decidingOnce(ctx context.Context, block chain.BlockRef) error {
	ctx, cancel := context.WithTimeout(ctx, decidingPatience)
	defer cancel()
	words := w.words.whichDecide()
	if len(words) == 0 {
		return nil // no audit has listed the markets yet
	}
	values, err := w.collector.store.all(ctx, words, block)
	if err != nil {
		return err
	}
	w.words.offerDeciding(block, words, values)
	return w.collector.handlers.look(ctx, w.collector.venue.Venue(), block)
}

// decide notes the words that decide, as the newest audit has listed them.
func (w *words) decide(words []perp.Word) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deciding = words
}

func (w *words) whichDecide() []perp.Word {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deciding
}

// takeTurn has the words that decide compared at a block if it is the first of its span. The mutex is held.
func (w *words) takeTurn(block chain.BlockRef) {
	span := block.TimeMs/w.every + 1
	if span == w.span {
		return
	}
	w.span, w.asked = span, block
	select {
	case <-w.turn: // nobody has begun to read at an earlier one
	default:
	}
	w.turn <- block // of two who fill it neither waits: both hold the mutex
}

// forgetTurn forgets what was read above a block that is taken back, and has the next one read. The mutex is held.
func (w *words) forgetTurn(ancestor uint64) {
	w.span = 0
	if w.asked.Number > ancestor {
		w.asked = chain.BlockRef{}
	}
	w.pending = keep(w.pending, func(p wire.Param) bool { return p.Read.Number <= ancestor })
}

// offerDeciding takes in what was read after a block, unless that has left the chain, or was overtaken.
func (w *words) offerDeciding(block chain.BlockRef, words []perp.Word, values []chain.Hash) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.asked.Hash != block.Hash {
		return
	}
	said := map[chain.Hash]bool{}
	var differing []wire.Param
	for i, value := range values { // as many as words
		word := words[i]
		said[word.Key] = true
		if w.differs(word.Key, value, block.Number) {
			differing = append(differing, wire.Param{Key: word.Key, Value: value, Read: block, Name: word.Name})
		}
	}
	w.pending = append(keep(w.pending, func(p wire.Param) bool { return !said[p.Key] }), differing...)
}
