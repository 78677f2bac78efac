package ledger

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// InFlight implements txm.PendingTxs.
func (l *Ledger) InFlight(_ context.Context, signer chain.Address) ([]txm.PendingTx, error) {
	return ask(l, func() (inFlight []txm.PendingTx, err error) {
		a := l.accounts[signer]
		if a == nil {
			return nil, nil
		}
		for _, i := range a.flying {
			inFlight = append(inFlight, txm.PendingTx{Intent: l.read(i), Txs: slices.Clone(i.txs),
				Mined: copied(i.receipt), Age: l.clock().Sub(i.signedAt)})
		}
		return inFlight, nil
	})
}

func copied(r *txm.Receipt) *txm.Receipt {
	if r == nil {
		return nil
	}
	out := *r
	return &out
}

// of returns the intent of a transaction of a signer, or nil.
func (l *Ledger) of(signer chain.Address, hash chain.Hash) *intent {
	if i := l.byTx[hash]; i != nil && i.Signer == signer {
		return i
	}
	return nil
}

// Noted implements txm.PendingTxs.
func (l *Ledger) Noted(_ context.Context, f lease.Fence, hash chain.Hash, class string, accepted bool) error {
	return l.fenced("noted", f, func(*account) bool {
		i := l.of(f.Signer, hash)
		if i == nil {
			return false
		}
		n := slices.IndexFunc(i.txs, func(a txm.Tx) bool { return a.Hash == hash })
		i.txs[n].Sends++
		i.txs[n].LastClass = class
		if accepted && i.State == txm.Signed {
			i.State = txm.Sent
		}
		return true
	})
}

// Record implements txm.PendingTxs.
func (l *Ledger) Record(_ context.Context, f lease.Fence, receipts ...txm.Receipt) error {
	return l.fenced("record", f, func(a *account) bool {
		for _, r := range receipts {
			if i := l.of(f.Signer, r.TxHash); i == nil || !i.State.To(txm.Mined) && i.State != txm.Mined {
				return false
			}
		}
		for _, r := range receipts {
			i := l.of(f.Signer, r.TxHash)
			a.burntBy(i).remove(i.receipt)
			r.Block = chain.BlockRef{Number: r.Block.Number, Hash: r.Block.Hash}
			i.State, i.receipt = txm.Mined, &r
			a.burntBy(i).add(i.receipt, l.clock())
		}
		return true
	})
}

// recorded returns the intent whose stored receipt is the same as another, or nil.
func (l *Ledger) recorded(signer chain.Address, r txm.Receipt) *intent {
	if i := l.of(signer, r.TxHash); i != nil && i.receipt != nil && i.receipt.Same(r) {
		return i
	}
	return nil
}

// Unmine implements txm.PendingTxs.
func (l *Ledger) Unmine(_ context.Context, f lease.Fence, r txm.Receipt) error {
	return l.fenced("unmine", f, func(a *account) bool {
		i := l.recorded(f.Signer, r)
		if i == nil || i.State != txm.Mined {
			return false
		}
		a.burntBy(i).remove(i.receipt)
		i.State, i.receipt = txm.Sent, nil
		return true
	})
}

// Finish implements txm.PendingTxs.
func (l *Ledger) Finish(_ context.Context, f lease.Fence, finals ...txm.FinalReceipt) error {
	return l.fenced("finish", f, func(a *account) bool {
		for _, r := range finals {
			if i := l.recorded(f.Signer, r.Receipt); i == nil || !i.State.To(txm.Final(r.Outcome)) {
				return false
			}
		}
		for _, r := range finals {
			i := l.recorded(f.Signer, r.Receipt)
			l.landed(a, i)
			l.end(a, i, txm.Final(r.Outcome), txm.Verdict{Outcome: i.receipt.Outcome, Reason: i.receipt.Reason}, r.Rest)
		}
		return true
	})
}

// NonceLost implements txm.PendingTxs.
func (l *Ledger) NonceLost(_ context.Context, f lease.Fence, id int64, e txm.Ending) error {
	return l.fenced("nonce_lost", f, func(a *account) bool {
		i := l.intents[id]
		if i == nil || i.Signer != f.Signer || !i.State.To(txm.Foreign) {
			return false
		}
		l.landed(a, i)
		l.end(a, i, txm.Foreign, e.Verdict, e.Rest)
		if i.Nonce >= a.expectedBelow {
			a.pause(e.Reason)
		}
		return true
	})
}

// Pause implements txm.PendingTxs.
func (l *Ledger) Pause(_ context.Context, f lease.Fence, reason string) error {
	return l.fenced("pause", f, func(a *account) bool {
		a.pause(reason)
		return true
	})
}

// Unable implements txm.PendingTxs.
func (l *Ledger) Unable(_ context.Context, f lease.Fence, reason string, believed time.Duration) error {
	return l.fenced("unable", f, func(a *account) bool {
		if a.unableUntil = (time.Time{}); reason != "" {
			a.unableUntil = l.clock().Add(believed)
		}
		return true
	})
}

// pause keeps the first reason.
func (a *account) pause(reason string) {
	if !a.paused {
		a.paused, a.pausedFor = true, reason
	}
}

// Replace implements txm.PendingTxs.
func (l *Ledger) Replace(_ context.Context, f lease.Fence, r txm.Replacement) error {
	return l.fenced("replace", f, func(*account) bool {
		i := l.intents[r.Intent]
		if i == nil || i.Signer != f.Signer || !i.State.Replaceable() || i.Nonce != r.Tx.Nonce ||
			l.byTx[r.Tx.Hash] != nil {
			return false
		}
		newest := i.txs[len(i.txs)-1]
		leaves := newest.Kind == txm.Exec && r.Kind == txm.Cancel
		if newest.Hash != r.After || newest.Kind != r.Kind && !leaves || r.Tx.Tip < least(newest.Tip) ||
			r.Tx.Cap < least(newest.Cap) {
			return false
		}
		i.txs = append(i.txs, txm.Tx{SignedTx: r.Tx, Kind: r.Kind, Seq: newest.Seq + 1})
		l.byTx[r.Tx.Hash] = i
		if r.Kind == txm.Cancel && !i.leaving {
			i.leaving, i.Cancel = true, r.Cancel
		}
		return true
	})
}

// least is the lowest price that nodes take in place of another.
func least(price uint64) uint64 { return price + (price*txm.MinGrowth+99)/100 }

// Fill implements txm.PendingTxs.
func (l *Ledger) Fill(_ context.Context, f lease.Fence, tx txm.SignedTx) error {
	return l.fenced("fill", f, func(a *account) bool {
		if tx.Nonce >= a.next || a.taken[tx.Nonce] || l.byTx[tx.Hash] != nil {
			return false
		}
		j := filler(f.Signer, tx.Nonce)
		attempt := uint32(1)
		if last := l.newest[j.ID]; last != nil {
			attempt = last.Attempt + 1
		}
		l.launch(a, l.add(txm.Intent{Job: j, Attempt: attempt, Signer: f.Signer}), tx, txm.Fill)
		return true
	})
}

// filler is the job of spending a number, as pkg/pg has it.
func filler(signer chain.Address, n uint64) job.Job {
	var key chain.Hash
	copy(key[:], signer[:])
	binary.BigEndian.PutUint64(key[24:], n)
	return job.Job{
		ID: fmt.Sprintf("%s:%s:%d", txm.Filler, signer.Hex(), n), Kind: txm.Filler, Key: key, Account: signer,
		Class: job.ClassRequest, Signer: signer,
	}
}

// product of two numbers that may be too large for one.
func product(a, b uint64) chain.Uint { return chain.U64(a).Mul(chain.U64(b)) }
