package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

var errTwice = errors.New("claim: the transaction is stored already")

// Claim implements txm.Claims.
func (l *Ledger) Claim(_ context.Context, f lease.Fence, b txm.Batch) error {
	if _, err := b.Fresh(); err != nil {
		return fmt.Errorf("claim: %w", err)
	}
	return l.do(func() error {
		a := l.held(f)
		if a == nil {
			return &lease.LostError{Fence: f, Op: "claim"}
		}
		wanted, why := l.place(a, f.Signer, b)
		if why != "" {
			return &txm.RefusedError{Op: "claim", Why: why}
		}
		if slices.ContainsFunc(b.Claims, func(c txm.Claim) bool { return l.byTx[c.Tx.Hash] != nil }) {
			return errTwice
		}
		for n, c := range b.Claims {
			a.dequeue(wanted[n])
			l.launch(a, wanted[n], c.Tx, txm.Exec)
			a.next = max(a.next, c.Tx.Nonce+1)
		}
		return nil
	})
}

// place finds the intents of a batch and a place for each, or returns why there is none: in the order in which Postgres
// finds out. Once the cursor and the signer's limit are in order the unique indexes speak first, of the intents that
// are there.
func (l *Ledger) place(a *account, signer chain.Address, b txm.Batch) (wanted []*intent, why txm.Refusal) {
	liquidates := b.Has(job.Liquidation)
	for _, c := range b.Claims {
		i := l.intents[c.Intent]
		if i == nil || i.Signer != signer || !i.State.To(txm.Signed) || slices.Contains(wanted, i) ||
			i.Job.Kind == job.Liquidation && !liquidates {
			continue
		}
		wanted = append(wanted, i)
	}
	full := a.pending() > b.Most()
	if a.next == b.Cursor && !full {
		if why := l.busy(wanted, b.Limits.Liquidations-l.counted(a)); why != "" {
			return nil, why
		}
	}
	roomy := l.roomy(wanted, b.Limits.Liquidations-l.counted(a))
	switch {
	case len(wanted) < len(b.Claims):
		return nil, txm.Moved
	case a.next != b.Cursor:
		return nil, txm.CursorMoved
	case full:
		return nil, txm.SignerFull
	case roomy && !slices.ContainsFunc(b.Claims, func(c txm.Claim) bool { return a.taken[c.Tx.Nonce] }):
		return wanted, ""
	case slices.ContainsFunc(b.Claims, func(c txm.Claim) bool { return c.Tx.Nonce < b.Cursor }):
		return nil, txm.CursorMoved // a gap that is none any more
	}
	return nil, txm.KeeperFull
}

// counted are the places that liquidations take from an account: those of others that are out take none.
func (l *Ledger) counted(from *account) int {
	slots := l.slots
	for _, a := range l.accounts {
		if a == from || !a.out(l.clock()) {
			continue
		}
		for _, i := range a.flying {
			if i.slot {
				slots--
			}
		}
	}
	return slots
}

// absence is how long nobody has held a signer that is taken for out.
const absence = 3 * time.Second

// out reports whether an account can sign nothing.
func (a *account) out(now time.Time) bool {
	return a.paused || a.unableUntil.After(now) || a.expires.Before(now.Add(-absence))
}

// roomy reports whether there is a place for each liquidation.
func (l *Ledger) roomy(wanted []*intent, places int) bool {
	places = max(0, places)
	for _, i := range wanted {
		if i.Job.Kind == job.Liquidation {
			places--
		}
	}
	return places >= 0
}

// pending counts what takes a place of an account's.
func (a *account) pending() (n int) {
	for _, i := range a.flying {
		if i.Nonce >= a.mined {
			n++
		}
	}
	return n
}

// Pending implements txm.Claims.
func (l *Ledger) Pending(_ context.Context, signer chain.Address) (int, error) {
	return ask(l, func() (int, error) {
		if a := l.accounts[signer]; a != nil {
			return a.pending(), nil
		}
		return 0, nil
	})
}

// MinedBelow implements txm.PendingTxs.
func (l *Ledger) MinedBelow(_ context.Context, f lease.Fence, number uint64) error {
	return l.fenced("mined_below", f, func(a *account) bool {
		a.mined = number
		for _, i := range a.flying {
			takes := i.Job.Kind == job.Liquidation && i.Nonce >= number
			i.takenBack = takes && (i.takenBack || !i.slot)
			l.slot(i, takes)
		}
		return true
	})
}

// slot has an intent take one of the keeper's places for liquidations, or give it back.
func (l *Ledger) slot(i *intent, takes bool) {
	switch {
	case takes && !i.slot:
		l.slots++
	case !takes && i.slot:
		l.slots--
	}
	i.slot = takes
}

// busy returns which of the things that are unique in flight is taken, by what flies or within the batch. Liquidations
// for which there is no place are nothing to an account.
func (l *Ledger) busy(wanted []*intent, places int) txm.Refusal {
	keys, accounts, sides := map[chain.Hash]bool{}, map[chain.Address]bool{}, map[side]bool{}
	for _, i := range wanted {
		if l.keys[i.Job.Key] || keys[i.Job.Key] {
			return txm.KeyBusy
		}
		keys[i.Job.Key] = true
		if s, deleverages := sideOf(i.Job); deleverages {
			if l.sides[s] || sides[s] {
				return txm.SideBusy
			}
			sides[s] = true
		}
		if i.Job.Kind != job.Liquidation {
			continue
		}
		if places--; places < 0 {
			continue
		}
		if l.liquidated(i.Job.Account, false) || accounts[i.Job.Account] {
			return txm.AccountBusy
		}
		accounts[i.Job.Account] = true
	}
	return ""
}

// liquidated reports whether a liquidation of an account is under way and not mined; with those, if asked for, that a
// reorg has taken back.
func (l *Ledger) liquidated(account chain.Address, takenBack bool) bool {
	for _, a := range l.accounts {
		for _, i := range a.flying {
			if i.slot && i.Job.Account == account && (takenBack || !i.takenBack) {
				return true
			}
		}
	}
	return false
}

// side is one of a market.
type side struct {
	market chain.Address
	isLong bool
}

// sideOf is what a job that deleverages is about.
func sideOf(j job.Job) (s side, deleverages bool) {
	return side{j.Market, j.IsLong}, j.Kind == job.Adl || j.Kind == job.AdlState
}

// launch gives an intent its number and its first transaction.
func (l *Ledger) launch(a *account, i *intent, tx txm.SignedTx, kind txm.TxKind) {
	i.State, i.Nonce, i.signedAt = txm.Signed, tx.Nonce, l.clock()
	i.txs = []txm.Tx{{SignedTx: tx, Kind: kind, Seq: 1}}
	l.byTx[tx.Hash], a.taken[tx.Nonce] = i, true
	l.keys[i.Job.Key] = true
	if s, deleverages := sideOf(i.Job); deleverages {
		l.sides[s] = true
	}
	if i.Job.Kind == job.Liquidation {
		l.slot(i, true)
	}
	at, _ := slices.BinarySearchFunc(a.flying, i, byNonce)
	a.flying = slices.Insert(a.flying, at, i)
}

// landed frees what was unique to an intent in flight.
func (l *Ledger) landed(a *account, i *intent) {
	delete(l.keys, i.Job.Key)
	if s, deleverages := sideOf(i.Job); deleverages {
		delete(l.sides, s)
	}
	if i.Job.Kind == job.Liquidation {
		l.slot(i, false)
	}
	if at, found := slices.BinarySearchFunc(a.flying, i, byNonce); found {
		a.flying = slices.Delete(a.flying, at, at+1)
	}
}

func byNonce(a, b *intent) int {
	if a.Nonce != b.Nonce {
		if a.Nonce < b.Nonce {
			return -1
		}
		return 1
	}
	return 0
}

// Claimed implements txm.Claims.
func (l *Ledger) Claimed(_ context.Context, id int64) (chain.Hash, error) {
	return ask(l, func() (chain.Hash, error) {
		if i := l.intents[id]; i != nil && len(i.txs) > 0 {
			return i.txs[0].Hash, nil
		}
		return chain.Hash{}, nil
	})
}
