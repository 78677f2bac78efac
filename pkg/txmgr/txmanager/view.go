package txmanager

import (
	"context"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/evm"
	"perpkeeper/pkg/txmgr/txm"
)

// view is what the chain shows of one signer's pending transactions.
type view struct {
	duty
	broadcast *broadcast // knows what nodes have answered
}

// tip is where the chain stands: what is common to all pending transactions of a pass.
type tip struct {
	txm.Observation
	latest uint64 // the signer's next nonce: nothing from it on was mined
	ours   uint64 // the highest number of a pending transaction whose turn is ours
	waits  error  // why nothing can be called final; nil if something can
	asked  uint64 // the head at which all this was asked for
}

// settled are facts that cannot be taken back: two endpoints that differ in host have to agree, where there are two.
// Until they do an error says so; see [evm.Undecided].
type settled interface {
	Finalized(ctx context.Context) (chain.BlockRef, error)
	SettledHash(ctx context.Context, number uint64) (chain.Hash, error)
	// MinedNonce is how many of an account's transactions are mined, and can be taken back by a reorg.
	MinedNonce(ctx context.Context, account chain.Address) (evm.MinedNonce, error)
	SettledNonce(ctx context.Context, account chain.Address, final uint64) (uint64, error)
	// SettledReceipt is the block that holds a transaction, and whether it succeeded there.
	SettledReceipt(ctx context.Context, tx chain.Hash) (block chain.Hash, ok bool, err error)
}

// tip asks before the receipts are asked for: what is final then has its receipt. While no two endpoints agree on what
// is final, nothing is: pending transactions are followed all the same, none ends, and the reason is reported.
func (v view) tip(ctx context.Context, latest uint64) (at tip, err error) {
	at.latest = latest
	final, err := v.node.Finalized(ctx)
	switch {
	case err == nil:
		at.Final = final.Number
	case evm.Undecided(err):
		at.waits = err
	default:
		return at, err
	}
	head, err := v.node.Head(ctx)
	at.Head = head.Number
	return at, err
}

// finalNonce returns the signer's next nonce in the newest final block, if any endpoint reports that a pending
// transaction's number was used and there is no receipt of ours: only then does it matter.
func (v view) finalNonce(ctx context.Context, f txm.PendingTx, at tip) (uint64, error) {
	if at.Final == 0 || f.Intent.Nonce >= at.latest && !v.broadcast.spent(f.Newest().Hash) {
		return 0, nil
	}
	return v.node.SettledNonce(ctx, v.signer, at.Final)
}

// foreign reports whether, by an endpoint, a nonce was spent in a final block, and that none of the transactions that
// we signed for it was mined.
func (v view) foreign(ctx context.Context, one evm.Reader, f txm.PendingTx) bool {
	if next, err := one.NonceAt(ctx, v.signer, evm.Finalized); err != nil || next <= f.Intent.Nonce {
		return false
	}
	for _, hash := range f.Hashes() {
		if r, err := one.Receipt(ctx, hash); err != nil || r != nil {
			return false
		}
	}
	return true
}

// receipt finds the one transaction of the nonce that was mined, if any: the dearest is the likeliest. A nonce that the
// chain has not reached has none; where endpoints disagree about that, it is asked for. Nor is one of the transactions
// mined in a block that the final chain has left, whoever still has it.
func (v view) receipt(ctx context.Context, f txm.PendingTx, at tip) (*evm.Receipt, error) {
	if f.Mined == nil && f.Intent.Nonce >= at.latest && !v.broadcast.spent(f.Newest().Hash) {
		return nil, nil //nolint:nilnil // as of the node's own answer: what is not mined is no error
	}
	for _, hash := range slices.Backward(f.Hashes()) {
		r, err := v.node.Receipt(ctx, hash)
		if err != nil {
			return nil, err
		}
		if stands, err := v.stands(ctx, r, at.Final); err != nil || stands {
			return r, err
		}
	}
	return nil, nil //nolint:nilnil // as of the node's own answer: what is not mined is no error
}

// stands reports whether the block of a receipt is one of the chain's, as far as that is settled: an endpoint that is
// stuck on a branch that the others have left goes on giving its receipts, and the number of their block becomes final
// all the same.
func (v view) stands(ctx context.Context, r *evm.Receipt, final uint64) (bool, error) {
	if r == nil || r.Block > final {
		return r != nil, nil
	}
	hash, err := v.node.SettledHash(ctx, r.Block)
	return hash == r.BlockHash, err
}
