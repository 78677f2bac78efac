package txmanager

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/nonce"
	"perpkeeper/pkg/txmgr/signer"
	"perpkeeper/pkg/txmgr/txm"
)

// claim gives tasks their nonces: it signs with the numbers the cursor promises and stores numbers and bytes in one
// fenced statement. Bytes that were not stored are thrown away. It is used by one goroutine.
type claim struct {
	signing
	cursor *cursor
	// expect announces that a transaction is about to be broadcast, so that nobody else does it as soon as it is
	// stored.
	expect func(chain.Hash)
	// patience bounds the statement, which is not cut short when the process is asked to stop.
	patience time.Duration
}

// run claims tasks in one statement, or none of them. The verdict is about all.
func (c claim) run(ctx context.Context, tasks []*Task) (v Verdict, err error) {
	next, err := c.cursor.get(ctx)
	if err != nil {
		return Verdict{}, err
	}
	paid, err := c.market.now(ctx)
	if err != nil {
		return Verdict{}, err
	}
	fee := c.limits.Fee()
	b, aside := txm.Batch{Cursor: next.Next, Limits: c.limits.InFlight()}, txm.ByLane{}
	defer func() { // after an error the claim may be there: what it takes is counted from the store
		if err == nil && v.Kind != Proceed {
			c.budget.giveBack(aside)
		}
	}()
	prices := make([]uint64, len(tasks))
	for i, t := range tasks {
		lane := t.Job().Kind.Lane()
		if !fee.Pays(lane, t.Call.Gas, paid) {
			return tooDear(lane, fee, paid), nil
		}
		prices[i] = fee.First(lane, t.Call.Gas, paid)
		cost := t.Call.Gas * prices[i]
		if !c.budget.take(lane, cost) {
			if len(tasks) == 1 { // of several, the first ones may be had for what is left
				c.budget.lacks(lane)
			}
			return spentOut(lane), nil
		}
		aside.Add(lane, chain.U64(cost))
	}
	next, err = c.signAll(ctx, tasks, next, prices)
	switch {
	case signer.Refused(err): // as a failure it would keep all others from being claimed, and be tried for ever
		return Verdict{Kind: Retry, Reason: err.Error(), Shown: true}, nil
	case err != nil:
		return Verdict{}, err
	}
	for _, t := range tasks {
		c.expect(t.Tx.Hash)
		b.Claims = append(b.Claims, txm.Claim{Intent: t.Intent.ID, Kind: t.Job().Kind, Tx: t.Tx})
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.patience)
	defer cancel()
	err = c.store.Claim(ctx, c.term.Fence(), b)
	return c.resolve(ctx, tasks, next, err)
}

// signAll signs tasks side by side, as a remote signer takes its time, with the numbers that a cursor promises, and
// returns the cursor after them.
func (c claim) signAll(ctx context.Context, tasks []*Task, next nonce.Cursor, prices []uint64) (nonce.Cursor, error) {
	var group errgroup.Group
	for i, t := range tasks {
		n := next.Promise()
		next = next.Taken(n)
		group.Go(func() (err error) {
			t.Tx, err = c.sign(ctx, n, t.Call, prices[i])
			return err
		})
	}
	return next, group.Wait()
}

func (c claim) resolve(ctx context.Context, tasks []*Task, after nonce.Cursor, err error) (Verdict,
	error) {
	switch why := txm.Refused(err); {
	case err == nil:
	case lease.Lost(err):
		return Verdict{}, err
	case why == txm.SignerFull:
		return Shut("as many transactions are in flight as may be"), nil
	case why == txm.KeeperFull || why == txm.AccountBusy || why == txm.KeyBusy || why == txm.SideBusy:
		return Wait(string(why)), nil
	case why != "":
		c.cursor.lose() // what we knew of the queue or the cursor is old
		return Wait(string(why)), nil
	default:
		if err := c.lookUp(ctx, tasks[0], err); err != nil {
			return Verdict{}, err
		}
	}
	c.cursor.set(after)
	for _, t := range tasks {
		c.metrics.queueSeconds.Observe(t.Intent.Waited.Seconds())
		c.log.Info().Str("job", t.Job().ID).Uint32("attempt", t.Intent.Attempt).Uint64("nonce", t.Tx.Nonce).
			Str("hash", t.Tx.Hash.Hex()).
			Uint64("gas_price", t.Tx.Cap).Msg("claimed")
	}
	return Verdict{}, nil
}

// lookUp finds out what became of a claim whose answer was lost; one of a batch stands for all. Without an answer of
// its own, or with one that knows nothing of these bytes, the cursor is read anew: the lost statement may still be on
// its way, and whatever it does then, it does under the lease row's lock.
func (c claim) lookUp(ctx context.Context, t *Task, lost error) error {
	stored, err := c.store.Claimed(ctx, t.Intent.ID)
	if err == nil && stored == t.Tx.Hash {
		return nil
	}
	c.cursor.lose()
	if err != nil {
		return fmt.Errorf("the answer to a claim was lost (%w), and nobody says whether it is there: %w", lost, err)
	}
	return fmt.Errorf("the answer to a claim was lost, and the claim is not there (stored is %s): %w", stored, lost)
}
