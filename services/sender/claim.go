package sender

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/failpoint"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/nonce"
	"perpkeeper/pkg/signer"
	"perpkeeper/pkg/txm"
	"perpkeeper/pkg/txmanager"
)

// claim gives tasks their nonces: it signs with the numbers the cursor promises and stores numbers and bytes in one
// fenced statement. Bytes that were not stored are thrown away. It is used by one goroutine.
type claim struct {
	tenure  *lease.Tenure
	key     signer.Signer
	chainID uint64
	limits  limits
	market  *market
	purse   *purse
	store   txm.Claims
	cursor  *cursor
	// expect tells that a transaction is about to be broadcast, so that nobody else does it as soon as it is stored.
	expect  func(chain.Hash)
	metrics *Metrics
	log     zerolog.Logger
	// patience bounds the statement, which is not cut short when the process is asked to stop.
	patience time.Duration
}

// run claims all tasks in one statement, or none. The verdict is about all of them.
func (c claim) run(ctx context.Context, tasks []*txmanager.Task) (txmanager.Verdict, error) {
	next, err := c.cursor.get(ctx)
	if err != nil {
		return txmanager.Verdict{}, err
	}
	paid, err := c.market.now(ctx)
	if err != nil {
		return txmanager.Verdict{}, err
	}
	if err := c.tenure.Check("sign"); err != nil {
		return txmanager.Verdict{}, err
	}
	fee := c.limits.fee()
	b, aside := txm.Batch{Cursor: next.Next, Limits: c.limits.flights()}, uint64(0)
	for _, t := range tasks {
		price := fee.First(txm.LaneOf(t.Job().Kind), t.Call.Gas, paid)
		if !c.purse.take(t.Call.Gas * price) {
			c.purse.put(aside)
			return txmanager.Shut("the signer has spent what it may in a day"), nil
		}
		aside += t.Call.Gas * price
		switch t.Tx, err = sign(ctx, c.key, c.chainID, next.Promise(), t.Call, price); {
		case signer.Refused(err): // as a failure it would keep all others from being claimed, and be tried for ever
			c.purse.put(aside)
			return txmanager.Wait(err.Error()), nil
		case err != nil:
			return txmanager.Verdict{}, err
		}
		c.expect(t.Tx.Hash)
		b.Claims, next = append(b.Claims, txm.Claim{Intent: t.Intent.ID, Kind: t.Job().Kind, Tx: t.Tx}),
			next.Taken(t.Tx.Nonce)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.patience)
	defer cancel()
	failpoint.Hit("sender.commit.before")
	err = c.store.Claim(ctx, c.tenure.Fence(), b)
	failpoint.Hit("sender.commit.after")
	v, err := c.settle(ctx, tasks, next, err)
	if err == nil && v.Kind != txmanager.Onward {
		c.purse.put(aside)
	}
	return v, err
}

// settle reads the answer to the statement.
func (c claim) settle(ctx context.Context, tasks []*txmanager.Task, after nonce.Cursor, err error) (txmanager.Verdict,
	error) {
	switch why := txm.Refused(err); {
	case err == nil:
	case lease.Lost(err):
		return txmanager.Verdict{}, err
	case why == txm.SignerFull:
		return txmanager.Shut("as many transactions are in flight as may be"), nil
	case why == txm.KeeperFull || why == txm.AccountBusy || why == txm.KeyBusy || why == txm.SideBusy:
		return txmanager.Wait(string(why)), nil
	case why != "":
		c.cursor.lose() // what we knew of the queue or the cursor is old
		return txmanager.Wait(string(why)), nil
	default:
		if err := c.lookUp(ctx, tasks[0], err); err != nil {
			return txmanager.Verdict{}, err
		}
	}
	c.cursor.known = &after
	for _, t := range tasks {
		c.metrics.claimed(t.Intent)
		c.log.Info().Str("job", t.Job().ID).Uint32("arm", t.Intent.Arm).Uint64("nonce", t.Tx.Nonce).
			Str("hash", t.Tx.Hash.Hex()).
			Uint64("gas_price", t.Tx.Cap).Msg("claimed")
	}
	return txmanager.Verdict{}, nil
}

// lookUp finds out what became of a claim whose answer was lost; one of a batch stands for all. Without an answer of
// its own, or with one that knows nothing of these bytes, the cursor is read anew: the lost statement may still be on
// its way, and whatever it does then, it does under the lease row's lock.
func (c claim) lookUp(ctx context.Context, t *txmanager.Task, lost error) error {
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

// cursor is the tenure's memory of the next nonces. It is read from the store when the tenure begins and whenever it
// turned out to be old, and used by one goroutine.
type cursor struct {
	known *nonce.Cursor
	open  func(ctx context.Context) (nonce.Cursor, error)
}

// read tells whether it has been read and not turned out to be old since.
func (c *cursor) read() bool { return c.known != nil }

func (c *cursor) get(ctx context.Context) (nonce.Cursor, error) {
	if c.known == nil {
		read, err := c.open(ctx)
		if err != nil {
			return nonce.Cursor{}, err
		}
		c.known = &read
	}
	return *c.known, nil
}

func (c *cursor) lose() { c.known = nil }

// opening reads the cursor of a tenure: the store's or the chain's, whichever is further. A store that has gone back in
// time pauses the signer.
func (w *worker) opening(f lease.Fence) func(context.Context) (nonce.Cursor, error) {
	return func(ctx context.Context) (nonce.Cursor, error) {
		latest, sure, err := reached(ctx, w.node, f.Signer)
		if err != nil {
			return nonce.Cursor{}, err
		}
		c, err := w.nonces.TakeOver(ctx, f, latest)
		if nonce.Behind(err) && !sure {
			return c, fmt.Errorf("as one of several endpoints says, and no other answers: %w", err)
		}
		if nonce.Behind(err) {
			w.log.Error().Bool("critical", true).Err(err).Msg("the signer is paused")
			return c, errors.Join(err, w.intents.Pause(ctx, f, err.Error()))
		}
		return c, err
	}
}

// counter knows how many transactions an account has sent.
type counter interface {
	NonceAt(ctx context.Context, account chain.Address, tag evm.Tag) (uint64, error)
}
