package ledger

import (
	"context"
	"encoding/binary"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/txm"
)

// Replace implements txm.Flights.
func (l *Ledger) Replace(_ context.Context, f lease.Fence, r txm.Replacement) error {
	return l.fenced("replace", f, func(*account) bool {
		i := l.intents[r.Intent]
		if i == nil || i.Signer != f.Signer || !i.State.Replaceable() || i.Nonce != r.Tx.Nonce ||
			l.attempts[r.Tx.Hash] != nil {
			return false
		}
		newest := i.attempts[len(i.attempts)-1]
		leaves := newest.Kind == txm.Exec && r.Kind == txm.Cancel
		if newest.Hash != r.After || newest.Kind != r.Kind && !leaves || r.Tx.Tip < least(newest.Tip) ||
			r.Tx.Cap < least(newest.Cap) {
			return false
		}
		i.attempts = append(i.attempts, txm.Attempt{SignedTx: r.Tx, Kind: r.Kind, Seq: newest.Seq + 1})
		l.attempts[r.Tx.Hash] = i
		if r.Kind == txm.Cancel && !i.leaving {
			i.leaving, i.Cancel = true, r.Cancel
		}
		return true
	})
}

// least is the lowest price that nodes take in place of another.
func least(price uint64) uint64 { return price + (price*txm.MinGrowth+99)/100 }

// Fill implements txm.Flights.
func (l *Ledger) Fill(_ context.Context, f lease.Fence, tx txm.SignedTx) error {
	return l.fenced("fill", f, func(a *account) bool {
		if tx.Nonce >= a.next || a.taken[tx.Nonce] || l.attempts[tx.Hash] != nil {
			return false
		}
		j := filler(f.Signer, tx.Nonce)
		arm := uint32(1)
		if last := l.newest[j.ID]; last != nil {
			arm = last.Arm + 1
		}
		l.launch(a, l.add(txm.Intent{Job: j, Arm: arm, Signer: f.Signer}), tx, txm.Fill)
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
func product(a, b uint64) perp.Uint { return perp.U64(a).Mul(perp.U64(b)) }
