package ledger

import (
	"context"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/txmgr/lease"
	"perpkeeper/pkg/txmgr/txm"
)

// Unreported implements txm.Reports.
func (l *Ledger) Unreported(_ context.Context, signer chain.Address, limit int) ([]txm.Ended, error) {
	return ask(l, func() (ended []txm.Ended, err error) {
		a := l.accounts[signer]
		if a == nil {
			return nil, nil
		}
		for _, i := range a.unreported[:min(limit, len(a.unreported))] {
			ended = append(ended, txm.Ended{Intent: l.read(i), EndedAt: i.endedAt, Receipt: copied(i.receipt)})
		}
		return ended, nil
	})
}

// Reported implements txm.Reports.
func (l *Ledger) Reported(_ context.Context, f lease.Fence, ids []int64) error {
	return l.fenced("report", f, func(a *account) bool {
		changed := false
		for _, id := range ids {
			i := l.intents[id]
			if i == nil || i.Signer != f.Signer || !i.State.Terminal() {
				continue
			}
			changed = true
			if at, found := slices.BinarySearchFunc(a.unreported, i, byID); found {
				a.unreported = slices.Delete(a.unreported, at, at+1)
			}
		}
		return changed
	})
}
