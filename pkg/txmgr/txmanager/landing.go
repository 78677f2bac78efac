package txmanager

import (
	"context"

	"perpkeeper/pkg/txmgr/txm"
)

// landing follows which of a signer's transactions are mined. It is used by one goroutine.
type landing struct {
	view
	freed func()  // called when slots have become free
	below *uint64 // the number that the store was told of last
}

// look returns the signer's next nonce in the newest block as anybody has it, and stores below which number
// transactions are mined as two hosts have it: these take no slots any more. Asking for the signer's nonce is asking
// once for all of them. While too few answer, slots stay taken. What blocks take moves the limits.
func (l *landing) look(ctx context.Context, inFlight []txm.PendingTx) (newest uint64, err error) {
	n, err := l.node.MinedNonce(ctx, l.signer)
	if err != nil {
		return 0, err
	}
	landed, first := uint64(0), l.below == nil
	if n.Sure && (l.below == nil || *l.below != n.Agreed) {
		if err := l.store.MinedBelow(ctx, l.term.Fence(), n.Agreed); err != nil {
			return n.Newest, err
		}
		if !first {
			landed = n.Agreed - min(n.Agreed, *l.below)
		}
		l.below = &n.Agreed
	}
	waiting, refused := l.broadcast.waiting(inFlight, n.Newest)
	l.limits.Observe(txm.Taken{Block: l.broadcast.heads.Number(), Landed: landed, Waiting: waiting, Refused: refused})
	if landed > 0 || first && l.below != nil { // at the first look nobody knows how many landed since the last term's
		l.freed()
	}
	return n.Newest, nil
}
