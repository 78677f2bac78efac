package evmnode

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// ForkStyle says how a fork treats transactions and old blocks; see the package comment.
type ForkStyle string

const (
	// Replay is a fork as a peer delivers it: one block longer, and no transaction is lost.
	Replay ForkStyle = "replay"
	// Drop is a fork as anvil_reorg makes it: same height, and the transactions of the old branch vanish.
	Drop ForkStyle = "drop"
)

func (s ForkStyle) check() error {
	if s != Replay && s != Drop {
		return fmt.Errorf("unknown fork style %q: use %q or %q", s, Replay, Drop)
	}
	return nil
}

// BlockRef names a block.
type BlockRef struct {
	Number uint64      `json:"number"`
	Hash   common.Hash `json:"hash"`
}

// Fork is what a reorganisation did.
type Fork struct {
	Ancestor BlockRef      `json:"ancestor"` // The newest block both branches share.
	OldTip   BlockRef      `json:"oldTip"`
	NewTip   BlockRef      `json:"newTip"`
	Unmined  []common.Hash `json:"unmined"` // Transactions of the old branch that the new one does not contain.
}

// branchOff is the old branch while it is being replaced.
type branchOff struct {
	style    ForkStyle
	ancestor *types.Header
	old      []*types.Block // Ascending, from the ancestor's child to the old tip.
}

// Reorg replaces the newest depth blocks by another branch. It fails, with the chain unchanged, if depth is 0 or
// reaches the anchor (see Anchor).
func (n *Node) Reorg(depth uint64, style ForkStyle) (Fork, error) {
	if err := style.check(); err != nil {
		return Fork{}, err
	}
	n.writing.Lock()
	defer n.writing.Unlock()
	if style == Drop {
		n.admission.Lock() // A transaction sent while the pool is emptied would vanish with the dropped ones.
		defer n.admission.Unlock()
	}
	b, err := n.branchOff(depth, style)
	if err != nil {
		return Fork{}, err
	}
	fresh, err := n.buildBranch(b)
	if err != nil {
		return Fork{}, fmt.Errorf("building a branch of depth %d: %w", depth, err)
	}
	if err := n.switchTo(b, fresh); err != nil {
		return Fork{}, fmt.Errorf("switching to a branch of depth %d: %w", depth, err)
	}
	return Fork{
		Ancestor: refOf(b.ancestor),
		OldTip:   refOf(b.old[len(b.old)-1].Header()),
		NewTip:   refOf(fresh[len(fresh)-1].Header()),
		Unmined:  hashes(types.TxDifference(transactions(b.old), transactions(fresh))),
	}, nil
}

// reachable refuses a fork of no depth, and one that would reach the anchor. The anchor moves only while nobody is
// connected yet.
func (n *Node) reachable(depth, head uint64) error {
	if depth == 0 || depth > head-n.anchor {
		return fmt.Errorf("cannot replace %d blocks of a chain at height %d that is anchored at height %d", depth, head,
			n.anchor)
	}
	return nil
}

func (n *Node) branchOff(depth uint64, style ForkStyle) (branchOff, error) {
	head := n.chain.CurrentBlock()
	number := head.Number.Uint64()
	if err := n.reachable(depth, number); err != nil {
		return branchOff{}, err
	}
	b := branchOff{style: style, ancestor: n.chain.GetHeaderByNumber(number - depth)}
	for at := number - depth + 1; at <= number; at++ {
		b.old = append(b.old, n.chain.GetBlockByNumber(at))
	}
	return b, nil
}

// buildBranch executes the new branch, which is stored beside the old one.
func (n *Node) buildBranch(b branchOff) ([]*types.Block, error) {
	n.forks++
	extra := fmt.Appendf(nil, "fork %d", n.forks)
	plan := n.plan(b)
	parent := b.ancestor
	var fresh []*types.Block
	var waiting []*types.Transaction // Executable only after a later block.
	for i, landing := range plan {
		offered := n.inNonceOrder(append(waiting, landing...))
		block, err := n.build(parent, branchTime(b, i, parent), extra, &listed{offered})
		if err != nil {
			return nil, err
		}
		waiting = types.TxDifference(offered, block.Transactions())
		fresh, parent = append(fresh, block), block.Header()
	}
	return fresh, nil
}

// branchTime is the time of the i-th new block: that of the block it replaces, or now beyond the old tip.
func branchTime(b branchOff, i int, parent *types.Header) uint64 {
	if i < len(b.old) {
		return MilliTime(b.old[i].Header())
	}
	return nextMilliTime(parent)
}

// plan decides which old transactions are offered to which block of the new branch. None is offered before its old
// height, since it may not have existed then; a quarter is offered to none and returns to the pool.
func (n *Node) plan(b branchOff) [][]*types.Transaction {
	if b.style == Drop {
		return make([][]*types.Transaction, len(b.old))
	}
	random := rand.New(rand.NewPCG(n.cfg.Seed, n.forks))
	plan := make([][]*types.Transaction, len(b.old)+1)
	for i, block := range b.old {
		for _, tx := range block.Transactions() {
			if random.IntN(4) == 0 {
				continue
			}
			at := min(i+random.IntN(3), len(plan)-1)
			plan[at] = append(plan[at], tx)
		}
	}
	for _, txs := range plan {
		random.Shuffle(len(txs), func(i, j int) { txs[i], txs[j] = txs[j], txs[i] })
	}
	return plan
}

// inNonceOrder keeps the order of the senders but sorts each sender's transactions among the places they have.
func (n *Node) inNonceOrder(txs []*types.Transaction) []*types.Transaction {
	places := map[common.Address][]int{}
	for i, tx := range txs {
		from, _ := types.Sender(n.signer, tx) // Was executed before, so it has a sender.
		places[from] = append(places[from], i)
	}
	sorted := slices.Clone(txs)
	for _, at := range places {
		own := make([]*types.Transaction, 0, len(at))
		for _, i := range at {
			own = append(own, txs[i])
		}
		slices.SortFunc(own, func(a, b *types.Transaction) int { return cmp.Compare(a.Nonce(), b.Nonce()) })
		for k, i := range at {
			sorted[i] = own[k]
		}
	}
	return sorted
}

// switchTo makes the new branch the chain and tells the subscribers.
func (n *Node) switchTo(b branchOff, fresh []*types.Block) error {
	if _, err := n.chain.SetCanonical(fresh[len(fresh)-1]); err != nil {
		return err
	}
	if err := n.pool.Sync(); err != nil { // The pool takes back what the new branch lacks.
		return fmt.Errorf("waiting for the transaction pool: %w", err)
	}
	if b.style == Drop {
		n.forget(b.old)
		n.announce(headers(fresh))
		return nil
	}
	n.announce(headers(fresh[len(fresh)-1:]))
	return nil
}

// forget hides the old blocks and takes their transactions out of the pool again. The pool cannot drop single
// transactions, so it is emptied and the others are put back.
func (n *Node) forget(old []*types.Block) {
	for _, block := range old {
		n.forgotten.Store(block.Hash(), struct{}{})
	}
	var kept []*types.Transaction
	pending, queued := n.pool.Content()
	for _, bySender := range []map[common.Address][]*types.Transaction{pending, queued} {
		for _, txs := range bySender {
			kept = append(kept, txs...)
		}
	}
	kept = types.TxDifference(kept, transactions(old))
	n.pool.Clear()
	n.pool.Add(kept, true) // One that has become unaffordable meanwhile is lost, as in any node.
}

func transactions(blocks []*types.Block) []*types.Transaction {
	var txs []*types.Transaction
	for _, block := range blocks {
		txs = append(txs, block.Transactions()...)
	}
	return txs
}

func headers(blocks []*types.Block) []*types.Header {
	hs := make([]*types.Header, 0, len(blocks))
	for _, block := range blocks {
		hs = append(hs, block.Header())
	}
	return hs
}

func hashes(txs []*types.Transaction) []common.Hash {
	hs := make([]common.Hash, 0, len(txs))
	for _, tx := range txs {
		hs = append(hs, tx.Hash())
	}
	return hs
}

func refOf(h *types.Header) BlockRef { return BlockRef{Number: h.Number.Uint64(), Hash: h.Hash()} }
