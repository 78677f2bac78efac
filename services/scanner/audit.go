package scanner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/retry"
)

// errNotFinal means that the chain is not as far as an audit wants to look.
var errNotFinal = errors.New("no block to audit is final yet")

// auditWords compares the words that rules read with the chain: when this writer has caught up with the head, when a
// market appears, after a reorg has taken back what was published, and every interval. It never holds up publishing,
// and never ends the writer: what cannot be read is tried again, ever more rarely.
func (w *writer) auditWords(ctx context.Context) error {
	select {
	case <-w.caughtUp:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	tries := retry.New(retry.Policy{Initial: time.Second, Max: time.Minute})
	waited := time.Duration(0)
	for tries.Next(ctx) {
		err := w.auditOnce(ctx)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errNotFinal):
			if waited += notFinalPause; waited > notFinalPatience {
				w.status.audited(fmt.Errorf("%w (a node of chain.urls must say what is final)", err))
			}
			if !w.rests(ctx, notFinalPause) {
				return context.Cause(ctx)
			}
			tries.Reset()
		case err != nil:
			w.status.audited(err)
			w.log.Warn().Err(err).Msg("the words of the exchange's DataStore could not all be compared with the " +
				"chain; trying again")
			tries.Failed(err)
		default:
			waited = 0
			w.status.audited(nil)
			if !w.rests(ctx, w.cfg.Scanner.AuditInterval) {
				return context.Cause(ctx)
			}
			tries.Reset()
		}
	}
	return context.Cause(ctx)
}

// notFinalPause is how often the final block is asked for while an audit waits for it.
const notFinalPause = 250 * time.Millisecond

// notFinalPatience is after which time readiness shows that an audit waits for a final block.
const notFinalPatience = time.Minute

// rests waits for a time, or less if an audit is asked for meanwhile. It is false when ctx has ended.
func (w *writer) rests(ctx context.Context, how time.Duration) bool {
	wake := w.words.wake
	if how == notFinalPause {
		wake = nil // what asks for an audit cannot make a block final
	}
	select {
	case <-time.After(how):
	case <-wake:
	case <-ctx.Done():
		return false
	}
	return true
}

// auditOnce reads every word at the final block and offers what differs.
func (w *writer) auditOnce(ctx context.Context) error {
	final, may := w.words.begin(w.first)
	if !may {
		return errNotFinal
	}
	if err := w.collector.handlers.look(ctx, w.collector.venue.Venue(), final); err != nil {
		return auditError(err, final)
	}
	a, err := w.collector.store.audit(ctx, final)
	if err != nil {
		return auditError(err, final)
	}
	var differing []wire.Param
	for i, p := range a.words {
		if w.words.differ(p.Key, a.values[i], final.Number) {
			differing = append(differing, wire.Param{Key: p.Key, Value: a.values[i], Read: final, Name: p.Name})
		}
	}
	passed := a.passed()
	w.words.offer(final.Number, differing, passed)
	w.words.decide(perp.DecidingWords(a.markets))
	w.metrics.auditTime.SetToCurrentTime()
	w.log.Info().Uint64("block", final.Number).Int("words", len(a.words)).Int("said", len(differing)).
		Int("markets", len(passed)).
		Msg("the words of the exchange's DataStore were compared with the chain")
	return nil
}

// auditError adds what to do about words that cannot be read at all.
func auditError(err error, final chain.BlockRef) error {
	if evm.NoState(err) {
		return fmt.Errorf("no endpoint has the state of the final block %d (name one in chain.urls that keeps the "+
			"states of the last minutes): %w", final.Number, err)
	}
	return fmt.Errorf("reading the words at the final block %d (ask another node: chain.urls): %w", final.Number, err)
}

// audit is what the DataStore holds at a final block.
type audit struct {
	read    chain.BlockRef
	markets []perp.Market
	words   []perp.Word
	values  []chain.Hash // of each word
}

// audit reads every word of the catalogue.
func (d dataStore) audit(ctx context.Context, block chain.BlockRef) (a audit, err error) {
	a.read = block
	if a.markets, err = d.markets(ctx, block); err != nil {
		return a, err
	}
	a.words = perp.Words(a.markets)
	a.values, err = d.all(ctx, a.words, block)
	return a, err
}

// passed returns what there is to say of each market.
func (a audit) passed() (passed []wire.Audit) {
	for _, m := range a.markets {
		count := uint32(0)
		for _, p := range a.words {
			if p.Concerns(m) {
				count++
			}
		}
		passed = append(passed, wire.Audit{Market: m.MarketToken, Read: a.read, Words: count})
	}
	return passed
}
