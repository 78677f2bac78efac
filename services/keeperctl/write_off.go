package keeperctl

import (
	"context"
	"fmt"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/operator/action"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// witnesses are the queries of the chain by which a signer is written off. What is settled two hosts have to say.
type witnesses interface {
	action.Accounts
	Finalized(ctx context.Context) (chain.BlockRef, error)
	SettledNonce(ctx context.Context, account chain.Address, final uint64) (uint64, error)
	SettledReceipt(ctx context.Context, tx chain.Hash) (block chain.Hash, ok bool, err error)
	Receipt(ctx context.Context, tx chain.Hash) (*evm.Receipt, error)
}

// fate is what became of a transaction in flight whose signer's key is lost.
type fate struct {
	txm.PendingTx
	// Spent is true when its nonce is used in a final block; otherwise its bytes may still land.
	Spent bool
	Ours  *txm.Receipt // of the one of our transactions that has used it; nil for none
}

// Word is the fate, for people.
func (f fate) Word() string {
	switch {
	case f.Ours != nil:
		return fmt.Sprintf("mined: %s", f.Ours.Outcome)
	case f.Spent:
		return "used by a transaction that is not ours"
	}
	return "NOT USED: its bytes may still land"
}

// loss is how a signer stands whose key is lost, at a final block.
type loss struct {
	At    chain.BlockRef
	Next  uint64 // its nonce there: what is in flight from it on may still land
	Fates []fate
}

// Open counts what may still land.
func (l loss) Open() (n int) {
	for _, f := range l.Fates {
		if !f.Spent {
			n++
		}
	}
	return n
}

// findLost finds what became of what a signer has in flight, as two hosts have it at a final block.
func findLost(ctx context.Context, db *pg.DB, node witnesses, signer chain.Address) (l loss, err error) {
	if l.At, err = node.Finalized(ctx); err != nil {
		return l, err
	}
	if l.Next, err = node.SettledNonce(ctx, signer, l.At.Number); err != nil {
		return l, err
	}
	latest, err := node.NonceAt(ctx, signer, evm.Latest)
	if err != nil {
		return l, err
	}
	inFlight, err := txstore.NewIntents(db).InFlight(ctx, signer)
	if err != nil {
		return l, err
	}
	for _, f := range inFlight {
		if f.Intent.Nonce >= l.Next && f.Intent.Nonce < latest {
			return l, fmt.Errorf("nonce %d of signer %s is used in a block that is not final yet: try again in a while",
				f.Intent.Nonce, signer)
		}
		found := fate{PendingTx: f, Spent: f.Intent.Nonce < l.Next}
		if found.Spent {
			if found.Ours, err = settled(ctx, node, f, l.At.Number); err != nil {
				return l, err
			}
		}
		l.Fates = append(l.Fates, found)
	}
	return l, nil
}

// settled finds which of the transactions signed for a nonce has used it, and what it did by its logs; nil for
// none.
func settled(ctx context.Context, node witnesses, f txm.PendingTx, final uint64) (*txm.Receipt, error) {
	for _, hash := range f.Hashes() {
		r, err := node.Receipt(ctx, hash)
		if err != nil {
			return nil, err
		}
		if r == nil || r.Block > final {
			continue
		}
		block, ok, err := node.SettledReceipt(ctx, hash)
		switch {
		case err != nil:
			return nil, err
		case block != r.BlockHash || ok != r.OK:
			return nil, fmt.Errorf("transaction %s: one host has it in block %s, two in block %s", hash, r.BlockHash,
				block)
		}
		if f.Mined != nil && f.Mined.TxHash == hash && f.Mined.Block.Hash == r.BlockHash {
			return f.Mined, nil // as its sender has judged it
		}
		found := &txm.Receipt{TxHash: hash, Block: chain.BlockRef{Number: r.Block, Hash: r.BlockHash}, OK: r.OK,
			GasUsed: r.GasUsed, GasPrice: r.GasPrice}
		found.Outcome, found.Reason, err = outcome(f, *r)
		return found, err
	}
	return nil, nil //nolint:nilnil // that none of ours was mined is no error
}

// outcome reads what a mined transaction did. Why one failed nobody asks any more.
func outcome(f txm.PendingTx, r evm.Receipt) (job.Outcome, string, error) {
	if mined, _ := f.Of(r.Hash); mined.Kind == txm.Cancel {
		return f.Intent.Cancel.Outcome, f.Intent.Cancel.Reason, nil
	} else if mined.Kind == txm.Fill {
		return job.SkippedDone, "the number was nobody's", nil
	}
	if !r.OK {
		return job.Reverted, "cause unknown: its signer was written off", nil
	}
	seen, err := gmx.NewDecoder().Passing().Outcome(r.Logs, f.Intent.Job.Key)
	_, cancels := f.Intent.Job.Kind.Cancels()
	switch {
	case err != nil:
		return "", "", err
	case seen.Result == gmx.Cancelled && !cancels:
		return job.CancelledByVenue, seen.Reason, nil
	case seen.Result == gmx.Frozen:
		return job.FrozenByVenue, seen.Reason, nil
	case seen.Result == gmx.Nothing && f.Intent.Job.Kind != job.AdlState:
		return job.Reverted, "the transaction succeeded, and none of its logs is about the job", nil
	}
	return job.Done, string(seen.Result), nil
}

// writeOffTime is for how long the lease of a signer is taken to write it off.
const writeOffTime = 30 * time.Second

// writeOff gives up a signer whose key is lost: it is paused, and what it has in flight ends, so that other signers do
// those jobs that the state still shows as due after the final block. It is refused while somebody has the signer's
// lease, and while bytes may still land, unless from is the lowest nonce from which on the operator takes that risk:
// such a transaction may do a job before, or after, another one for it, and the exchange lets one win. Who asked for it
// and why is recorded with the signer's events.
func writeOff(ctx context.Context, db *pg.DB, node witnesses, signer chain.Address, from *uint64, by, why string) (loss,
	error) {
	leases, intents := txstore.NewLeases(db), txstore.NewIntents(db)
	f, err := leases.Acquire(ctx, signer, lease.NewOwner("write-off by "+by), writeOffTime)
	if err != nil {
		return loss{}, fmt.Errorf("nobody may work a signer that is written off: %w", err)
	}
	defer func() { _ = leases.Release(context.WithoutCancel(ctx), f) }() // it ends by itself
	l, err := findLost(ctx, db, node, signer)
	if err != nil {
		return l, err
	}
	if l.Open() > 0 && (from == nil || *from != l.Next) {
		return l, fmt.Errorf("%d transactions were signed and their nonces are not used at final block %d: they may "+
			"still land. Wait, or take that risk for the nonces from %d on: keeperctl signer write-off %s %d", l.Open(),
			l.At.Number, l.Next, signer, l.Next)
	}
	said := fmt.Sprintf("written off by %s: %s", by, why)
	if err := intents.Pause(ctx, f, said); err != nil {
		return l, err
	}
	for _, found := range l.Fates {
		if err := end(ctx, intents, f, found, l, said); err != nil {
			return l, fmt.Errorf("nonce %d: %w", found.Intent.Nonce, err)
		}
	}
	return l, txstore.NewSigners(db).Note(ctx, signer, "written_off", fmt.Sprintf("by %s: %s; its nonce is %d at "+
		"final block %d (%s); %d ended, of which %d may still land", by, why, l.Next, l.At.Number, l.At.Hash, len(l.Fates),
		l.Open()))
}

// end ends one pending transaction. Its job is done again if a state from after the final block shows it as due.
func end(ctx context.Context, intents txstore.Intents, f lease.Fence, found fate, l loss, said string) error {
	rest := txm.Rest{RetryAfterMs: l.At.TimeMs}
	if found.Ours != nil {
		if found.Ours != found.Mined {
			if err := intents.Record(ctx, f, *found.Ours); err != nil {
				return err
			}
		}
		return intents.Finish(ctx, f, txm.FinalReceipt{Receipt: *found.Ours, Rest: rest})
	}
	if found.Mined != nil { // its block has left the chain
		if err := intents.Unmine(ctx, f, *found.Mined); err != nil {
			return err
		}
	}
	e := txm.Ending{Rest: rest}
	e.Outcome, e.Reason = job.Withdrawn, said+"; its bytes may still land"
	if found.Spent {
		e.Outcome, e.Reason = job.Foreign, said+"; the nonce was used by a transaction that is not ours"
	}
	return intents.NonceLost(ctx, f, found.Intent.ID, e)
}
