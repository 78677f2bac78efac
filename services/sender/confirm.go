package sender

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/txm"
)

// confirm follows what is in flight. What it finds out it writes down before it goes on; what it remembers itself is only since when something has
// been missing.
type confirm struct {
	tenure    *lease.Tenure
	signer    chain.Address
	policy    txm.Policy
	settled   time.Duration
	node      watcher
	store     txm.Flights
	judge     judge
	broadcast *broadcast
	horizon   *horizon
	metrics   *Metrics
	log       zerolog.Logger
	ended     func() // called when an intent has ended

	missing map[int64]time.Time // since when a nonce is known to be spent without a receipt of ours
}

// watcher tells what became of transactions.
type watcher interface {
	counter
	Receipt(ctx context.Context, tx chain.Hash) (*evm.Receipt, error)
	Head(ctx context.Context) (chain.BlockRef, error)
	Finalized(ctx context.Context) (chain.BlockRef, error)
}

// pass looks at every flight once. One that fails does not keep the others from being looked at.
func (c *confirm) pass(ctx context.Context) error {
	flights, err := c.store.InFlight(ctx, c.signer)
	if err != nil {
		return err
	}
	c.remember(flights)
	if len(flights) == 0 {
		return nil
	}
	tip, err := c.tip(ctx)
	if err != nil {
		return err
	}
	var problems []error
	for _, f := range flights {
		err := c.follow(ctx, f, tip)
		if lease.Lost(err) {
			return err
		}
		if err != nil && txm.Refused(err) == "" { // what moved meanwhile is seen by the next pass
			problems = append(problems, fmt.Errorf("nonce %d: %w", f.Intent.Nonce, err))
		}
	}
	return errors.Join(problems...)
}

// remember forgets whatever is no longer in flight.
func (c *confirm) remember(flights []txm.Flight) {
	c.metrics.inFlight.WithLabelValues(c.signer.Hex()).Set(float64(len(flights)))
	flying, intents := map[chain.Hash]bool{}, map[int64]bool{}
	for _, f := range flights {
		intents[f.Intent.ID] = true
		for _, hash := range f.Hashes() {
			flying[hash] = true
		}
	}
	c.broadcast.forget(flying)
	for id := range c.missing {
		if !intents[id] {
			delete(c.missing, id)
		}
	}
}

// tip is where the chain stands, asked before the receipts: a nonce that was spent in a final block then has its receipt. A node may forget what was
// final; that only makes us wait, since what we have finished is written down.
func (c *confirm) tip(ctx context.Context) (s txm.Sight, err error) {
	final, err := c.node.Finalized(ctx)
	if err != nil {
		return s, err
	}
	s.Final = final.Number
	if s.FinalNonce, err = c.node.NonceAt(ctx, c.signer, evm.Finalized); err != nil {
		return s, err
	}
	head, err := c.node.Head(ctx)
	s.Head = head.Number
	return s, err
}

// follow does the one thing that a flight needs now.
func (c *confirm) follow(ctx context.Context, f txm.Flight, s txm.Sight) error {
	found, err := c.receipt(ctx, f)
	if err != nil {
		return err
	}
	if found != nil {
		s.Receipt = &txm.Receipt{
			TxHash: found.Hash, Block: chain.BlockRef{Number: found.Block, Hash: found.BlockHash}, OK: found.OK, GasUsed: found.GasUsed, GasPrice: found.GasPrice,
		}
	}
	s.SinceSend, s.Missing = c.broadcast.since(f.Newest().Hash), c.missingFor(f, s)
	switch c.policy.Next(f, s) {
	case txm.Record:
		return c.record(ctx, f, *found, *s.Receipt)
	case txm.TakeBack:
		return c.takeBack(ctx, f)
	case txm.Finish:
		return c.finish(ctx, f)
	case txm.Disown:
		return c.disown(ctx, f)
	case txm.Broadcast:
		return c.broadcast.send(ctx, f.Intent, f.Newest().SignedTx)
	default:
		return nil
	}
}

// receipt finds the one transaction of the nonce that was mined, if any.
func (c *confirm) receipt(ctx context.Context, f txm.Flight) (*evm.Receipt, error) {
	for _, hash := range f.Hashes() {
		r, err := c.node.Receipt(ctx, hash)
		if err != nil || r != nil {
			return r, err
		}
	}
	return nil, nil //nolint:nilnil // as of the node's own answer: what is not mined is no error
}

// missingFor is how long a spent nonce has been without a receipt of ours.
func (c *confirm) missingFor(f txm.Flight, s txm.Sight) time.Duration {
	if s.Receipt != nil || s.FinalNonce <= f.Intent.Nonce {
		delete(c.missing, f.Intent.ID)
		return 0
	}
	since, known := c.missing[f.Intent.ID]
	if !known {
		since = time.Now()
		c.missing[f.Intent.ID] = since
	}
	return time.Since(since)
}

func (c *confirm) record(ctx context.Context, f txm.Flight, found evm.Receipt, r txm.Receipt) (err error) {
	if r.Outcome, r.Reason, err = c.judge.outcome(ctx, f.Intent.Job, found); err != nil {
		return err
	}
	if err := c.store.Record(ctx, c.tenure.Fence(), r); err != nil {
		return err
	}
	c.tell("mined", f, r)
	return nil
}

func (c *confirm) takeBack(ctx context.Context, f txm.Flight) error {
	if err := c.store.TakeBack(ctx, c.tenure.Fence(), *f.Mined); err != nil {
		return err
	}
	c.metrics.reorgs.Inc()
	c.tell("the block left the chain", f, *f.Mined)
	return c.broadcast.send(ctx, f.Intent, f.Newest().SignedTx)
}

func (c *confirm) finish(ctx context.Context, f txm.Flight) error {
	r := *f.Mined
	if err := c.store.Finish(ctx, c.tenure.Fence(), r, txm.CoolDown(r.Outcome, f.Intent.Arm, c.settled)); err != nil {
		return err
	}
	c.metrics.delay.WithLabelValues(string(f.Intent.Job.Kind)).Observe(c.horizon.age(f.Intent.Job.BirthMs).Seconds())
	c.tell("final", f, r)
	c.ended()
	return nil
}

func (c *confirm) disown(ctx context.Context, f txm.Flight) error {
	reason := fmt.Sprintf("nonce %d was spent in a final block by a transaction that is not ours", f.Intent.Nonce)
	end := txm.Ending{Outcome: txm.Usurped, Reason: reason, CoolDown: txm.CoolDown(txm.Usurped, f.Intent.Arm, c.settled)}
	if err := c.store.Disown(ctx, c.tenure.Fence(), f.Intent.ID, end); err != nil {
		return err
	}
	c.log.Error().Str("job", f.Intent.Job.ID).Uint64("nonce", f.Intent.Nonce).Str("signer", c.signer.Hex()).
		Msg("somebody else uses this signer's key: the signer is paused")
	c.ended()
	return nil
}

// tell logs what became of a mined transaction. What went wrong is louder.
func (c *confirm) tell(what string, f txm.Flight, r txm.Receipt) {
	level := zerolog.InfoLevel
	if r.Outcome == job.Reverted {
		level = zerolog.WarnLevel
	}
	c.log.WithLevel(level).Str("job", f.Intent.Job.ID).Uint32("arm", f.Intent.Arm).Uint64("nonce", f.Intent.Nonce).Str("hash", r.TxHash.Hex()).
		Uint64("block", r.Block.Number).Str("outcome", string(r.Outcome)).Str("reason", r.Reason).Dur("age_ms", c.horizon.age(f.Intent.Job.BirthMs)).Msg(what)
}
