package evmnode

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/txpool/txorder"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

// producer is the address that collects the fees of every block.
var producer = common.HexToAddress("0x70657270000000000000000000000000000b10c5")

// candidates yields transactions to try, in the order to try them.
type candidates interface {
	peek() *types.Transaction // The next one, nil at the end.
	next()                    // Go on, the sender's next nonce may follow.
	skipSender()              // Go on without the sender of this one, whose later nonces cannot be executed either.
}

// pooled yields the executable transactions of the pool, best price first.
type pooled struct {
	*txorder.TransactionsByPriceAndNonce
}

func (p pooled) peek() *types.Transaction {
	for {
		lazy, _ := p.Peek()
		if lazy == nil {
			return nil
		}
		if tx := lazy.Resolve(); tx != nil {
			return tx
		}
		p.Pop() // Left the pool in the meantime.
	}
}

func (p pooled) next()       { p.Shift() }
func (p pooled) skipSender() { p.Pop() }

func (n *Node) poolCandidates() candidates {
	pending, _ := n.pool.Pending(txpool.PendingFilter{GasLimitCap: n.cfg.GasLimit})
	return pooled{txorder.NewTransactionsByPriceAndNonce(n.signer, pending, new(big.Int))}
}

// listed yields given transactions in the given order.
type listed struct{ rest []*types.Transaction }

func (l *listed) peek() *types.Transaction {
	if len(l.rest) == 0 {
		return nil
	}
	return l.rest[0]
}

func (l *listed) next()       { l.rest = l.rest[1:] }
func (l *listed) skipSender() { l.next() }

// build makes the block that follows parent, with time ms and as many of the candidates as can be executed, and stores
// it beside the chain, of which it is no part yet.
func (n *Node) build(parent *types.Header, ms uint64, extra []byte, from candidates) (*types.Block, error) {
	header := &types.Header{
		ParentHash: parent.Hash(),
		Number:     new(big.Int).Add(parent.Number, common.Big1),
		GasLimit:   parent.GasLimit,
		Coinbase:   producer,
		Difficulty: difficulty,
		BaseFee:    new(big.Int),
		Extra:      extra,
	}
	setMilliTime(header, ms)
	st, err := n.chain.StateAt(parent.Root, parent.Number, parent.Time)
	if err != nil {
		return nil, fmt.Errorf("opening the state of block %d: %w", parent.Number, err)
	}
	txs, receipts := n.execute(header, st, from)
	if err := st.Error(); err != nil {
		return nil, fmt.Errorf("building block %d: %w", header.Number, err)
	}
	block := core.AssembleBlock(n.chain, header, st, &types.Body{Transactions: txs}, receipts, nil)
	if err := n.store(block, receipts, st); err != nil {
		return nil, fmt.Errorf("storing block %d: %w", header.Number, err)
	}
	return block, nil
}

// store keeps a block and the state that building it has led to. A block of a peer's would have to be executed for
// that, this one has been. Its header is held against the rules all the same.
func (n *Node) store(block *types.Block, receipts []*types.Receipt, st *state.StateDB) error {
	if err := (engine{}).VerifyHeader(n.chain, block.Header()); err != nil {
		return err
	}
	rules := n.chain.Config().Rules(block.Number(), block.Difficulty().Sign() == 0, block.Time())
	root, err := st.Commit(rules, block.NumberU64())
	if err != nil {
		return err
	}
	if err := n.chain.TrieDB().Commit(root, false); err != nil {
		return err
	}
	batch := n.db.NewBatch()
	rawdb.WriteBlock(batch, block)
	rawdb.WriteReceipts(batch, block.Hash(), block.NumberU64(), receipts)
	return batch.Write()
}

// execute applies candidates to the state until they or the block's gas run out. Those that cannot be executed are
// passed over and leave no trace.
func (n *Node) execute(header *types.Header, st *state.StateDB, from candidates) ([]*types.Transaction,
	[]*types.Receipt) {
	evm := vm.NewEVM(core.NewEVMBlockContext(header, n.chain, &header.Coinbase), st, n.chain.Config(), vm.Config{})
	defer evm.Release()
	evm.SetJumpDestCache(n.chain.JumpDestCache())
	var (
		txs      []*types.Transaction
		receipts []*types.Receipt
		gas      = core.NewGasPool(header.GasLimit)
		calls    = n.callGas(header.GasLimit)
	)
	for tx := from.peek(); tx != nil && gas.Available(false) >= params.TxGas; tx = from.peek() {
		pays := isPayment(tx, st)
		if gas.Available(false) < tx.Gas() || !pays && calls < tx.Gas() {
			from.skipSender()
			continue
		}
		snapshot, before := st.Snapshot(), gas.Snapshot()
		st.SetTxContext(tx.Hash(), len(txs), uint32(len(txs)+1))
		receipt, _, err := core.ApplyTransaction(context.Background(), evm, gas, st, header, tx)
		switch {
		case err == nil:
			txs, receipts = append(txs, tx), append(receipts, receipt)
			header.GasUsed = gas.Used()
			if !pays {
				calls -= receipt.GasUsed
			}
			from.next()
		case errors.Is(err, core.ErrNonceTooLow): // Mined already, the pool has not noticed yet.
			st.RevertToSnapshot(snapshot)
			gas.Set(before)
			from.next()
		default:
			st.RevertToSnapshot(snapshot)
			gas.Set(before)
			from.skipSender()
		}
	}
	return txs, receipts
}
