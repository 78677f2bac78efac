package sender

import (
	"context"
	"fmt"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"perpkeeper/lab/devnet/evmnode"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/pkg/txmgr/txm"
)

// branchOff is how a block leaves the chain: as the lowest of so many.
type branchOff struct {
	depth uint64
	style evmnode.ForkStyle
}

// TestReorgs lets the block with our execution leave the chain, as the lowest of 2 or 21 blocks: the receipt is taken
// back, the same bytes are broadcast again, they are mined once on the new branch, and the result names that block,
// once it is final and no earlier.
func TestReorgs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	forks := []branchOff{{2, evmnode.Replay}, {21, evmnode.Drop}}
	for i, fork := range forks {
		by, key := s.keeper(i)
		t.Run(fmt.Sprintf("%d blocks, %s", fork.depth, fork.style),
			func(t *testing.T) { s.in(t).executeOnTheOtherBranch(fork, by, key) })
	}
	by, key := s.keeper(len(forks))
	t.Run("the order leaves and comes back", func(t *testing.T) { s.in(t).orderComesBack(by, key) })
	by, key = s.keeper(len(forks) + 1)
	t.Run("the order leaves with its execution", func(t *testing.T) { s.in(t).loseTheOrder(by, key) })
}

func (s *site) executeOnTheOtherBranch(fork branchOff, by chain.Address, key secret.String) {
	s.t.Helper()
	w := &witness{}
	sn := s.sender([]secret.String{key}, w.on)
	j := s.orderJob(s.marketOrder(100), by)
	s.Node().StallFinality()
	defer s.Resume()
	s.say(j)
	first := s.minedOf(sn, by, chain.Hash{})
	w.mute.Store(fork.style == evmnode.Drop) // so that it is seen to be gone
	s.replace(first.Mined.Block.Number, fork)
	if fork.style == evmnode.Drop {
		s.eventually("the receipt is taken back", func(ctx context.Context) bool {
			inFlight, err := sn.intents.InFlight(ctx, by)
			return err == nil && len(inFlight) == 1 && inFlight[0].Mined == nil && inFlight[0].Intent.State == txm.Sent
		})
		if _, known := s.receiptBlock(first.Mined.TxHash); known {
			s.t.Error("the transaction is still in a block: nothing is tried here")
		}
		w.mute.Store(false)
	}
	second := s.minedOf(sn, by, first.Mined.Block.Hash)
	if second.Intent.Nonce != first.Intent.Nonce || len(second.Txs) != 1 ||
		second.Mined.TxHash != first.Mined.TxHash {
		s.t.Errorf("nonce %d, %d transactions, mined %s; before it was nonce %d and %s",
			second.Intent.Nonce, len(second.Txs), second.Mined.TxHash, first.Intent.Nonce, first.Mined.TxHash)
	}
	if early := s.results(j.ID); len(early) > 0 {
		s.t.Errorf("published before it was final: %+v", early)
	}
	s.Resume()
	s.mustEndOnce(j, by, first.Intent.Nonce)
	s.mustBeStored(j, w.broadcasts())
	if at, known := s.receiptBlock(second.Mined.TxHash); !known || s.result(j.ID, 1).Block.Hash != at {
		s.t.Errorf("the result names block %s, the chain has it in %s", s.result(j.ID, 1).Block.Hash, at)
	}
}

// loseTheOrder lets a fork take the order along: what was signed for it is mined all the same, does nothing, and ends
// the job.
func (s *site) loseTheOrder(by chain.Address, key secret.String) {
	s.t.Helper()
	w := &witness{}
	before, sn := s.nonce(by), s.sender([]secret.String{key}, w.on)
	s.Node().StallFinality()
	defer s.Resume()
	born := s.Node().Head().Number.Uint64()
	j := s.orderJob(s.marketOrder(100), by)
	s.say(j)
	first := s.minedOf(sn, by, chain.Hash{})
	s.replace(born+1, branchOff{2, evmnode.Drop})
	s.minedOf(sn, by, first.Mined.Block.Hash)
	s.Resume()
	r := s.result(j.ID, 1)
	if (r.Outcome != job.LostRace && r.Outcome != job.SkippedDone) || r.Nonce != before {
		s.t.Errorf("result %+v", r)
	}
	if got := s.nonce(by); got != before+1 {
		s.t.Errorf("%d transactions", got-before)
	}
	s.mustBeStored(j, w.broadcasts())
}

// orderComesBack replaces the block in which an order was made by one without it, as an honest reorg of one block does.
// A sender that looks then finds no order. It waits, and executes the order when it stands on the new branch.
func (s *site) orderComesBack(by chain.Address, key secret.String) {
	s.t.Helper()
	before := s.nonce(by)
	s.Node().StallFinality()
	defer s.Resume()
	order := s.marketOrder(100)
	j := s.orderJob(order, by)
	row, err := s.db.Order(s.t.Context(), order)
	if err != nil {
		s.t.Fatal(err)
	}
	s.replace(row.Row.Stamp.Block, branchOff{1, evmnode.Drop})
	s.eventually("the order has left the state", func(ctx context.Context) bool {
		found, err := s.db.Order(ctx, order)
		return err == nil && !found.Known
	})
	r := s.sender([]secret.String{key})
	s.say(j)
	s.eventually("the job waits, or has ended", func(context.Context) bool {
		return r.sample("sender_waits_total", "recheck") > 2 || len(s.results(j.ID)) > 0
	})
	if early := s.results(j.ID); len(early) > 0 {
		s.t.Errorf("ended for a branch that is not final: %+v", early)
	}
	if again := s.marketOrder(100); again != order {
		s.t.Fatalf("the order comes back as %s, it was %s", again, order)
	}
	s.Resume()
	s.mustEndOnce(j, by, before)
}

// minedOf waits until the only pending transaction of a signer is mined in another block than one that was.
func (s *site) minedOf(sn *running, by chain.Address, not chain.Hash) (f txm.PendingTx) {
	s.t.Helper()
	s.eventually("the transaction is mined", func(ctx context.Context) bool {
		inFlight, err := sn.intents.InFlight(ctx, by)
		if err != nil || len(inFlight) != 1 || inFlight[0].Mined == nil || inFlight[0].Mined.Block.Hash == not {
			return false
		}
		f = inFlight[0]
		return true
	})
	return f
}

// replace lets a block leave the chain as the lowest of so many, or of more where there are more already. No block
// comes between.
func (s *site) replace(block uint64, as branchOff) {
	s.t.Helper()
	node := s.Node()
	node.Stall(hangGuard)
	defer node.Stall(0)
	if above := node.Head().Number.Uint64() - block + 1; above < as.depth {
		if err := node.Mine(as.depth - above); err != nil {
			s.t.Fatal(err)
		}
	}
	fork, err := s.Reorg(node.Head().Number.Uint64()-block+1, as.style)
	if err != nil {
		s.t.Fatal(err)
	}
	if fork.Ancestor.Number != block-1 {
		s.t.Fatalf("the fork begins at block %d, not below %d", fork.Ancestor.Number, block)
	}
}

// receiptBlock is the block in which the node itself has a transaction.
func (s *site) receiptBlock(tx chain.Hash) (block chain.Hash, known bool) {
	r, err := s.Client.TransactionReceipt(s.t.Context(), common.Hash(tx))
	if err != nil {
		return block, false
	}
	return chain.Hash(r.BlockHash), true
}
