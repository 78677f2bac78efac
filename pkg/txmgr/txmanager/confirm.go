package txmanager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/instrument/metric"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// confirm follows what is in flight. What it finds out it writes down before it goes on; what it remembers itself is
// only since when something has been missing.
type confirm struct {
	view
	judge   Judge
	rest    func(i txm.Intent, o job.Outcome) txm.Rest
	renewal renewal
	waiting *waiting // what gets no nonce for what is in flight
	ages    ages
	ended   func() // called when an intent has ended
	landing *landing
	// blocked tells readiness what nodes refuse, when that begins, goes on or ends; see worker.blocked.
	blocked func(reason string)
	refused bool // they refuse something
}

// pass looks at every pending transaction once. One that fails, or takes long, does not keep the others from being
// looked at.
func (c *confirm) pass(ctx context.Context) error {
	before := c.broadcast.rechecks.err()
	if lease.Lost(before) {
		return before
	}
	inFlight, err := c.store.InFlight(ctx, c.signer)
	if err != nil {
		return err
	}
	c.remember(inFlight)
	c.renewal.ability.note(ctx, func(a *ability) {
		if a.pays = ""; c.broadcast.penniless() {
			a.pays = c.broadcast.refusal()
		}
	})
	if len(inFlight) == 0 {
		return before
	}
	at, err := c.observe(ctx, inFlight)
	if err != nil {
		return err
	}
	problems := []error{before, at.waits}
	for some := range slices.Chunk(c.looks(inFlight), looksAtOnce) {
		err := errors.Join(c.see(ctx, some, at), c.record(ctx, some), c.finish(ctx, some))
		if problems = append(problems, err); lease.Lost(err) {
			return err
		}
		for _, l := range urgentFirst(some) {
			if c.heads.Number() != at.asked {
				if at, err = c.observe(ctx, inFlight); err != nil {
					return errors.Join(append(problems, err)...)
				}
			}
			if l.err == nil && !c.broadcast.rechecks.has(l.Intent.ID) {
				c.decide(l, at) // what was pressed before may have taken long
				l.err = c.act(ctx, l)
			}
			if lease.Lost(l.err) {
				return l.err
			}
			if l.err != nil && txm.Refused(l.err) == "" { // what moved meanwhile is seen by the next pass
				problems = append(problems, fmt.Errorf("nonce %d: %w", l.Intent.Nonce, l.err))
			}
		}
	}
	return errors.Join(problems...)
}

// observe asks where the chain stands, and has the slots given back of what is mined. It is asked anew at every head: a
// pass over a hundred pending transactions takes longer than a block, and what waits for a place is not to wait for the
// pass.
func (c *confirm) observe(ctx context.Context, inFlight []txm.PendingTx) (at tip, err error) {
	asked := c.heads.Number()
	mined, err := c.landing.look(ctx, inFlight)
	if err != nil {
		return at, err
	}
	if at, err = c.view.tip(ctx, mined); err != nil {
		return at, err
	}
	at.asked = asked
	for _, f := range inFlight {
		if c.turns.Ask(f.Intent.Job).Mine {
			at.ours = max(at.ours, f.Intent.Nonce)
		}
	}
	return at, nil
}

// remember forgets whatever is no longer in flight.
func (c *confirm) remember(inFlight []txm.PendingTx) {
	c.metrics.inFlight.WithLabelValues(c.signer.Hex()).Set(float64(len(inFlight)))
	flying, intents, liquidations := map[chain.Hash]bool{}, map[int64]bool{}, 0
	for _, f := range inFlight {
		intents[f.Intent.ID] = true
		c.ages.see(f.Intent.ID)
		if f.Intent.Job.Kind == job.Liquidation {
			liquidations++
		}
		for _, hash := range f.Hashes() {
			flying[hash] = false
		}
	}
	pressed := slices.DeleteFunc(slices.Clone(inFlight), c.abandoned)
	for _, f := range pressed {
		flying[f.Newest().Hash] = f.Mined == nil
	}
	c.broadcast.checkStall(pressed)
	if refused := c.broadcast.refusal() != ""; refused || c.refused {
		c.refused = refused
		c.blocked("")
	}
	c.metrics.unlanded.show(c.signer, pressed)
	c.metrics.held.WithLabelValues(c.signer.Hex()).Set(metric.Bool(c.broadcast.held() != ""))
	c.metrics.liquidations.WithLabelValues(c.signer.Hex()).Set(float64(liquidations))
	c.broadcast.forget(flying)
	c.broadcast.privacy.keep(intents)
	c.ages.keep(intents)
}

// act does what the policy decides about a pending transaction that is not mined, or not any more. After a reorg the
// job may look done because our own state still has the branch that was left: the same bytes are broadcast until it has
// not.
func (c *confirm) act(ctx context.Context, l *look) error {
	f, s, step := l.PendingTx, l.observed, l.step
	if (step == txm.Resume || step == txm.Replace) && c.ages.afterReorg(f.Intent.ID) {
		step = txm.Broadcast
	}
	switch step { //nolint:exhaustive // what is mined is recorded and finished together with others
	case txm.Unmine:
		return c.unmine(ctx, f, s)
	case txm.NonceLost:
		return c.nonceLost(ctx, f, s)
	case txm.Broadcast:
		return c.broadcast.send(ctx, f.Intent, f.Newest().SignedTx)
	case txm.Resume:
		return c.aside(ctx, l, c.renewal.resume)
	case txm.Replace:
		return c.aside(ctx, l, c.renewal.replace)
	case txm.Yield:
		return c.aside(ctx, l, c.renewal.yield)
	case txm.CancelNonce:
		return c.aside(ctx, l, c.renewal.cancelNonce)
	}
	return nil
}

// watch notifies people of what waits for its receipt for too long in this lease term. How long it was queued before,
// for its turn or its price, is no matter here.
func (c *confirm) watch(f txm.PendingTx, s txm.Observation) {
	if s.Receipt != nil || !c.ages.late(f.Intent.ID) {
		return
	}
	c.log.Warn().Str("job", f.Intent.Job.ID).Uint64("nonce", f.Intent.Nonce).Int("attempts", len(f.Txs)).
		Str("class", f.Newest().LastClass).
		Msg("no receipt yet; it is broadcast again until there is one")
}

func (c *confirm) unmine(ctx context.Context, f txm.PendingTx, s txm.Observation) error {
	if err := c.store.Unmine(ctx, c.term.Fence(), *f.Mined); err != nil {
		return err
	}
	c.logged("the block left the chain", f, *f.Mined)
	c.ages.see(f.Intent.ID).lost = c.ages.clock()
	c.broadcast.restart(f.Newest().Hash)
	if s.Over && !f.Leaving() {
		return nil // whoever has the turn now executes it on the new branch
	}
	return c.broadcast.send(ctx, f.Intent, f.Newest().SignedTx)
}

// nonceLost believes that somebody else has the key, if enough hosts say so, each for itself. While they do not,
// whoever says it may be wrong, and the transaction is broadcast as ever.
func (c *confirm) nonceLost(ctx context.Context, f txm.PendingTx, s txm.Observation) error {
	foreign := func(one evm.Reader) bool { return c.view.foreign(ctx, one, f) }
	if agree, need := agreement(c.node, foreign); agree < need {
		err := fmt.Errorf("%d of %d hosts say that it was spent, and have no receipt of ours", agree, need)
		if !s.Sent.Ever || c.limits.Fee().Due(s) {
			err = errors.Join(err, c.broadcast.send(ctx, f.Intent, f.Newest().SignedTx))
		}
		return err
	}
	reason := fmt.Sprintf("nonce %d was spent in a final block by a transaction that is not ours", f.Intent.Nonce)
	end := txm.Ending{Verdict: txm.Verdict{Outcome: job.Foreign, Reason: reason}, Rest: c.rest(f.Intent, job.Foreign)}
	if err := c.store.NonceLost(ctx, c.term.Fence(), f.Intent.ID, end); err != nil {
		return err
	}
	c.metrics.foreign.WithLabelValues(c.signer.Hex()).Inc()
	c.logNonceLost(ctx, f)
	c.ended()
	return nil
}

// logNonceLost logs that a nonce is somebody else's: an alarm where it has paused the signer, and no more where the
// last resync has found that it may come.
func (c *confirm) logNonceLost(ctx context.Context, f txm.PendingTx) {
	level, text := zerolog.ErrorLevel, "somebody else uses this signer's key: the signer is paused until "+
		"`keeperctl signer resync`"
	if paused, err := c.store.Paused(ctx, c.signer); err == nil && paused == "" {
		level, text = zerolog.WarnLevel, "a number from before the last resync was spent by somebody else; the signer "+
			"is not paused"
	}
	c.log.WithLevel(level).Bool("critical", level == zerolog.ErrorLevel).Str("job", f.Intent.Job.ID).
		Uint64("nonce", f.Intent.Nonce).Str("signer", c.signer.Hex()).Msg(text)
}

// logged logs what became of a mined transaction. What went wrong is louder.
func (c *confirm) logged(what string, f txm.PendingTx, r txm.Receipt) {
	level := zerolog.InfoLevel
	if r.Outcome == job.Reverted {
		level = zerolog.WarnLevel
	}
	c.log.WithLevel(level).Str("job", f.Intent.Job.ID).Uint32("attempt", f.Intent.Attempt).
		Uint64("nonce", f.Intent.Nonce).
		Str("hash", r.TxHash.Hex()).
		Uint64("block", r.Block.Number).Str("outcome", string(r.Outcome)).Str("reason", r.Reason).
		Dur("age_ms", c.heads.Age(f.Intent.Job.DueSinceMs)).Msg(what)
}
