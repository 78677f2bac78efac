package evm

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"

	"perpkeeper/pkg/chain"
)

// checkBody fails where the transactions are missing that the header commits to. It does not hash them; see
// Reader.Verified.
func (b *Block) checkBody() error {
	if empty := b.TransactionsRoot == chain.Hash(types.EmptyTxsHash); empty != (len(b.Txs) == 0) {
		return bodyLie("block %d shows %d transactions, and its header says %s", b.Number, len(b.Txs),
			b.TransactionsRoot)
	}
	return nil
}

// wholeBody reports whether the transactions hash to the root that the header commits to, which takes some
// milliseconds. A type that this build does not know hashes to nothing.
func (b *Block) wholeBody() bool {
	txs := make(types.Transactions, len(b.shown))
	for i, shown := range b.shown {
		txs[i] = &types.Transaction{}
		if txs[i].UnmarshalJSON(shown) != nil || chain.Hash(txs[i].Hash()) != b.Txs[i].Hash {
			return false
		}
	}
	return chain.Hash(types.DeriveSha(txs, trie.NewStackTrie(nil))) == b.TransactionsRoot
}

// misfit is that receipts are not those of the transactions that are shown: a lie where these are the block's. Else
// the receipts are as good as not there, and whoever showed the transactions comes last for bodies.
func (r Reader) misfit(b *Block, format string, args ...any) error {
	text := fmt.Sprintf(format, args...)
	if b.wholeBody() {
		return lie("%s", text)
	}
	r.pool.excludeBody(b, ReasonUnreadable, text)
	return &notFoundError{"what fits a body that does not come to its header (" + text + ")"}
}

// excludeBody excludes the endpoint that showed a block's transactions.
func (p *pool) excludeBody(b *Block, why Reason, detail string) {
	for _, e := range p.public {
		if e.name == b.Source {
			e.distrust(ForBodies, why, detail)
		}
	}
}

// Verified returns a transaction of a block with what its receipt says became of it. Its bytes come to its hash, and
// sender, receiver and nonce are what was signed, which takes some 0.1 ms to find out. An endpoint that has shown it
// otherwise is excluded. Where its bytes are not there that is an error, and another one is asked the next time. That
// it stands at its place is the word of who showed the block, borne out by who gave the receipts. A transaction of a
// type that this build does not know cannot be read: what its receipt says is taken, because the chain goes on, and the
// receipts root commits to the type.
func (r Reader) Verified(block Block, receipt Receipt) (chain.Tx, error) {
	tx := receipt.Tx
	if receipt.unknown() {
		return tx, nil
	}
	signed, from, err := block.signed(int(tx.Index), r.pool.chainID)
	switch {
	case err != nil:
		err = fmt.Errorf("transaction %s of block %d cannot be read: %w", tx.Hash, block.Number, err)
		r.pool.excludeBody(&block, ReasonUnreadable, err.Error())
		return chain.Tx{}, err
	case chain.Hash(signed.Hash()) != tx.Hash || uint64(signed.Type()) != receipt.kind:
		err = fmt.Errorf("transaction %s of block %d (type %d) is shown as %s (type %d)", tx.Hash, block.Number,
			receipt.kind, signed.Hash(), signed.Type())
		r.pool.excludeBody(&block, ReasonLied, err.Error())
		return chain.Tx{}, err
	}
	if said := block.Txs[tx.Index].From; said != from {
		r.pool.excludeBody(&block, ReasonLied, fmt.Sprintf("it says that transaction %s is from %s, which %s has "+
			"signed", tx.Hash, said, from))
	}
	tx.From, tx.Nonce, tx.To = from, signed.Nonce(), chain.Address{}
	if to := signed.To(); to != nil {
		tx.To = chain.Address(*to)
	}
	return tx, nil
}

// unknown reports whether this build does not know the transaction's type, and cannot say what it hashes to.
func (r Receipt) unknown() bool { return r.kind > types.SetCodeTxType }

// signed reads the transaction at a place, and recovers who signed it.
func (b *Block) signed(at int, chainID uint64) (*types.Transaction, chain.Address, error) {
	var tx types.Transaction
	if err := tx.UnmarshalJSON(b.shown[at]); err != nil {
		return nil, chain.Address{}, err
	}
	from, err := types.Sender(types.LatestSignerForChainID(new(big.Int).SetUint64(chainID)), &tx)
	return &tx, chain.Address(from), err
}
