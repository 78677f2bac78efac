package ledger

import (
	"context"
	"slices"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// day is for how long a receipt counts as spending.
const day = 24 * time.Hour

// burnt is what the receipts of the last day sum up to. It is asked before every claim, so the sum is kept and not
// made.
type burnt struct {
	sum      chain.Uint
	receipts []paid // as they came
}

type paid struct {
	receipt *txm.Receipt
	at      time.Time
}

func (p paid) wei() chain.Uint { return product(p.receipt.GasUsed, p.receipt.GasPrice) }

func (b *burnt) add(r *txm.Receipt, at time.Time) {
	p := paid{r, at}
	b.receipts, b.sum = append(b.receipts, p), b.sum.Add(p.wei())
}

// remove takes a receipt out, if it is there. The newest are looked at first: an old one is final.
func (b *burnt) remove(r *txm.Receipt) {
	for n, p := range slices.Backward(b.receipts) {
		if p.receipt == r {
			b.sum, b.receipts = b.sum.Sub(p.wei()), slices.Delete(b.receipts, n, n+1)
			return
		}
	}
}

// since is the sum of what came after a time. What came before is forgotten.
func (b *burnt) since(from time.Time) chain.Uint {
	old := 0
	for ; old < len(b.receipts) && !b.receipts[old].at.After(from); old++ {
		b.sum = b.sum.Sub(b.receipts[old].wei())
	}
	b.receipts = slices.Delete(b.receipts, 0, old)
	return b.sum
}

// Spent implements txm.Money.
func (l *Ledger) Spent(_ context.Context, signer chain.Address) (txm.ByLane, error) {
	return ask(l, func() (txm.ByLane, error) {
		spent := txm.ByLane{}
		a := l.accounts[signer]
		if a == nil {
			return spent, nil
		}
		for lane, b := range a.burnt {
			spent[lane] = b.since(l.clock().Add(-day))
		}
		for _, i := range a.flying {
			if i.State.Replaceable() {
				spent.Add(i.Job.Kind.Lane(), i.dearest())
			}
		}
		return spent, nil
	})
}

// Earned implements txm.Money: nobody books fees here.
func (l *Ledger) Earned(context.Context, chain.Address) (txm.ByLane, error) {
	return ask(l, func() (txm.ByLane, error) { return txm.ByLane{}, nil })
}

// burntBy are the receipts of the lane of an intent.
func (a *account) burntBy(i *intent) *burnt {
	lane := i.Job.Kind.Lane()
	if a.burnt == nil {
		a.burnt = map[job.Lane]*burnt{}
	}
	if a.burnt[lane] == nil {
		a.burnt[lane] = new(burnt)
	}
	return a.burnt[lane]
}

// dearest is what the dearest transaction of an intent may burn, in wei.
func (i *intent) dearest() (most chain.Uint) {
	for _, a := range i.txs {
		most = most.Max(product(a.Gas, a.Cap))
	}
	return most
}
