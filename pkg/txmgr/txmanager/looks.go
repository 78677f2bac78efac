package txmanager

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/instrument/metric"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

const (
	// looksAtOnce is of how many pending transactions what the chain shows is stored in one statement.
	looksAtOnce = 64
	// sideBySide is about how many pending transactions the nodes are asked at a time.
	sideBySide = 16
)

// look is what a pass sees of a pending transaction.
type look struct {
	txm.PendingTx
	observed txm.Observation
	found    *evm.Receipt // of the one of its transactions that was mined; nil for none
	step     txm.Step     // what it needs
	// unsettled is why it is not known whether its nonce was spent for good, and err why nothing can be done about it
	// now.
	unsettled, err error
}

func (c *confirm) looks(inFlight []txm.PendingTx) []*look {
	lanes := txm.Inherit(inFlight, c.waiting.most(),
		func(f txm.PendingTx) bool { return c.turns.Ask(f.Intent.Job).Mine })
	looks := make([]*look, len(inFlight))
	for i, f := range inFlight {
		looks[i] = &look{PendingTx: f, observed: txm.Observation{Lane: lanes[i]}}
	}
	return looks
}

// each does something about several pending transactions at a time.
func each(looks []*look, do func(*look)) {
	group := errgroup.Group{}
	group.SetLimit(sideBySide)
	for _, l := range looks {
		group.Go(func() error {
			do(l)
			return nil
		})
	}
	_ = group.Wait() // no look returns its error this way
}

// that returns the looks that need a step, and of which all is known.
func that(looks []*look, need txm.Step) []*look {
	return slices.DeleteFunc(slices.Clone(looks), func(l *look) bool { return l.err != nil || l.step != need })
}

// see finds out what pending transactions need now. While no two endpoints agree on how many nonces were spent for
// good, a pending transaction's own is not: it is broadcast and replaced as ever, which costs nothing if it was, and
// that is reported.
func (c *confirm) see(ctx context.Context, looks []*look, at tip) error {
	each(looks, func(l *look) { c.view.see(ctx, l, at) })
	var unsettled []error
	for _, l := range looks {
		if l.err != nil {
			continue
		}
		if unsettled = append(unsettled, l.unsettled); l.unsettled == nil {
			l.observed.Missing = c.ages.missingFor(l.PendingTx, l.observed)
		}
		c.watch(l.PendingTx, l.observed)
		c.decide(l, at)
	}
	return errors.Join(unsettled...)
}

// decide reports what a pending transaction needs by whose turn it is at this moment: the chain was asked for all
// pending transactions of a statement, and nothing is sent in another keeper's window for what it has shown in ours.
// What nodes answered to another pending transaction meanwhile may hold for this one.
func (c *confirm) decide(l *look, at tip) {
	l.observed.Sent = c.broadcast.sending(l.Newest().Hash)
	l.observed.Enough = c.renewal.market.enough(l.observed.For(l.PendingTx), l.Newest().Price())
	turn := c.turns.Ask(l.Intent.Job)
	l.observed.Over, l.observed.InTheWay = !turn.Mine, turn.Passed && at.ours > l.Intent.Nonce
	l.step = c.limits.Fee().Next(l.PendingTx, l.observed)
}

// together stores something of several pending transactions in one statement. Where one of them has moved on, which the
// next pass sees, each is stored by itself.
func together(looks []*look, store func([]*look) error) (stored []*look, err error) {
	if len(looks) == 0 {
		return nil, nil
	}
	err = store(looks)
	switch {
	case err == nil:
		return looks, nil
	case txm.Refused(err) == "":
		return nil, err
	case len(looks) == 1:
		return nil, nil
	}
	var problems []error
	for _, l := range looks {
		one, err := together([]*look{l}, store)
		if stored = append(stored, one...); lease.Lost(err) {
			return stored, err
		}
		problems = append(problems, err)
	}
	return stored, errors.Join(problems...)
}

// record writes the receipts down that were found. One whose block is final by now, because this lease term or its node
// was late, is then to be finished in the same pass.
func (c *confirm) record(ctx context.Context, looks []*look) error {
	mined := that(looks, txm.Record)
	each(mined, func(l *look) { l.observed.Receipt, l.err = c.judged(ctx, l) })
	recorded, err := together(that(mined, txm.Record), func(some []*look) error {
		receipts := make([]txm.Receipt, len(some))
		for i, l := range some {
			receipts[i] = *l.observed.Receipt
		}
		return c.store.Record(ctx, c.term.Fence(), receipts...)
	})
	if len(recorded) > 0 {
		c.broadcast.roomMade()
	}
	for _, l := range recorded {
		age := c.heads.Age(l.Intent.Job.DueSinceMs)
		metric.OfJob(c.metrics.landed.WithLabelValues(string(l.Intent.Job.Kind)), age.Seconds(), l.Intent.Job.ID)
		c.logged("mined", l.PendingTx, *l.observed.Receipt)
		// what frees a nonce fits where an execution does not
		if mined, _ := l.Of(l.observed.Receipt.TxHash); mined.Kind == txm.Exec {
			c.renewal.market.took(mined.Price(), l.observed.Receipt.Block.Number)
		}
		l.Mined = l.observed.Receipt
		l.step = c.limits.Fee().Next(l.PendingTx, l.observed)
	}
	return err
}

func (c *confirm) judged(ctx context.Context, l *look) (*txm.Receipt, error) {
	r := *l.observed.Receipt
	var err error
	if r.Outcome, r.Reason, err = c.outcome(ctx, l.PendingTx, *l.found); err != nil {
		return &r, err
	}
	// the job is done all the same, and whoever reads the result sees that this is missing
	if r.Settlement, err = c.settlement(l.PendingTx, *l.found); err != nil {
		c.log.Error().Err(err).Str("job", l.Intent.Job.ID).Str("hash", l.found.Hash.Hex()).
			Msg("what the transaction came to is left out of its result")
	}
	return &r, nil
}

func (c *confirm) outcome(ctx context.Context, f txm.PendingTx, found evm.Receipt) (job.Outcome, string, error) {
	mined, _ := f.Of(found.Hash)
	switch mined.Kind {
	case txm.Cancel:
		return f.Intent.Cancel.Outcome, f.Intent.Cancel.Reason, nil
	case txm.Fill:
		return job.SkippedDone, "the number was nobody's", nil
	default:
		return c.judge.Outcome(ctx, f.Intent.Job, found)
	}
}

// settlement is what the mined one of a nonce's transactions came to for the owner of a position
// (LIQ-11).
func (c *confirm) settlement(f txm.PendingTx, found evm.Receipt) (*job.Settlement, error) {
	if mined, _ := f.Of(found.Hash); !found.OK || mined.Kind == txm.Cancel || mined.Kind == txm.Fill {
		return nil, nil //nolint:nilnil // it did nothing to a position, which is no error
	}
	return c.judge.Settlement(f.Intent.Job, found)
}

// finish ends intents. That their blocks are final and stand two endpoints have said already; that these hold the
// transactions they have to say as well: a block's receipts prove what was done, and not by which transaction.
func (c *confirm) finish(ctx context.Context, looks []*look) error {
	final := that(looks, txm.Finish)
	each(final, func(l *look) { l.err = c.view.borneOut(ctx, *l.Mined) })
	finished, err := together(that(final, txm.Finish), func(some []*look) error {
		finals := make([]txm.FinalReceipt, len(some))
		for i, l := range some {
			finals[i] = txm.FinalReceipt{Receipt: *l.Mined, Rest: c.rest(l.Intent, l.Mined.Outcome)}
		}
		return c.store.Finish(ctx, c.term.Fence(), finals...)
	})
	for _, l := range finished {
		c.logged("final", l.PendingTx, *l.Mined)
		c.turns.Ended(l.Intent.Job.ID, l.Mined.Outcome)
	}
	if len(finished) > 0 {
		c.ended()
	}
	return err
}

// borneOut asks two endpoints for the block of a receipt.
func (v view) borneOut(ctx context.Context, r txm.Receipt) error {
	switch block, ok, err := v.node.SettledReceipt(ctx, r.TxHash); {
	case err != nil:
		return err
	case block != r.Block.Hash || ok != r.OK:
		return fmt.Errorf("its receipt is of block %s, success %t; two endpoints have it in block %s, success %t",
			r.Block.Hash, r.OK, block, ok)
	}
	return nil
}

func (v view) see(ctx context.Context, l *look, at tip) {
	lane := l.observed.Lane
	l.observed = at.Observation
	l.observed.Lane = lane
	if l.found, l.err = v.receipt(ctx, l.PendingTx, at); l.err != nil {
		return
	}
	if r := l.found; r != nil {
		// what was burnt is one endpoint's word, and no transaction burns more than was signed
		signed, _ := l.Of(r.Hash)
		l.observed.Receipt = &txm.Receipt{TxHash: r.Hash, Block: chain.BlockRef{Number: r.Block, Hash: r.BlockHash},
			OK: r.OK, GasUsed: min(r.GasUsed, signed.Gas), GasPrice: min(r.GasPrice, signed.Cap)}
	} else if l.observed.FinalNonce, l.unsettled = v.finalNonce(ctx, l.PendingTx, at); !evm.Undecided(l.unsettled) {
		l.err, l.unsettled = l.unsettled, nil
	}
}
