package evmnode

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// forked is a chain of 30 blocks with traffic, watched, that is then forked.
type forked struct {
	*chainTest
	heads <-chan *types.Header
	old   []*types.Header // The blocks the fork replaces.
	txs   []common.Hash   // Their transactions.
	fork  Fork
}

func forkAt(t *testing.T, depth uint64, style ForkStyle) *forked {
	t.Helper()
	const senders = 4
	f := &forked{chainTest: start(t, Config{Manual: true, Seed: depth}, senders)}
	for i := range int64(30) {
		for sender := range senders {
			f.emit(sender, i)
		}
		f.mine(1)
	}
	for number := 31 - depth; number <= 30; number++ {
		block, err := f.http.BlockByNumber(t.Context(), new(big.Int).SetUint64(number))
		if err != nil {
			t.Fatal(err)
		}
		f.old = append(f.old, block.Header())
		f.txs = append(f.txs, hashes(block.Transactions())...)
	}
	f.heads = subscribed(t, f.ws.SubscribeNewHead)
	var err error
	if f.fork, err = f.Reorg(depth, style); err != nil {
		t.Fatal(err)
	}
	return f
}

// chainFollows checks that the chain is linked from the ancestor to the new tip and carries honest times, and returns
// the new blocks.
func (f *forked) chainFollows(t *testing.T) []*types.Block {
	t.Helper()
	var fresh []*types.Block
	parent := f.fork.Ancestor.Hash
	for number := f.fork.Ancestor.Number + 1; number <= f.fork.NewTip.Number; number++ {
		block, err := f.http.BlockByNumber(t.Context(), new(big.Int).SetUint64(number))
		if err != nil {
			t.Fatal(err)
		}
		i := int(number - f.fork.Ancestor.Number - 1)
		if block.ParentHash() != parent {
			t.Errorf("block %d has parent %s, want %s", number, block.ParentHash(), parent)
		}
		if i < len(f.old) && block.Hash() == f.old[i].Hash() {
			t.Errorf("block %d was not replaced", number)
		}
		if i < len(f.old) && MilliTime(block.Header()) != MilliTime(f.old[i]) {
			t.Errorf("block %d has time %d, the old one had %d", number, MilliTime(block.Header()), MilliTime(f.old[i]))
		}
		fresh, parent = append(fresh, block), block.Hash()
	}
	if parent != f.fork.NewTip.Hash || parent != f.Head().Hash() {
		t.Errorf("tip is %s, fork says %s, head is %s", parent, f.fork.NewTip.Hash, f.Head().Hash())
	}
	return fresh
}

func TestReplayFork(t *testing.T) {
	for _, depth := range []uint64{1, 3, 24} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			f := forkAt(t, depth, Replay)
			if f.fork.OldTip.Number != 30 || f.fork.NewTip.Number != 31 || f.fork.Ancestor.Number != 30-depth {
				t.Errorf("fork: %+v", f.fork)
			}
			fresh := f.chainFollows(t)
			if head := receive(t, "head", f.heads); head.Hash() != f.fork.NewTip.Hash || len(f.heads) > 0 {
				t.Errorf("announced %v and %d more, want only the tip", head.Number, len(f.heads))
			}
			f.checkNothingIsLost(t, fresh)
			f.checkOldBranchReadable(t)
		})
	}
}

// checkNothingIsLost expects every old transaction on the new branch or back in the pool, and mined by the next block;
// some of them elsewhere.
func (f *forked) checkNothingIsLost(t *testing.T, fresh []*types.Block) {
	t.Helper()
	kept := hashes(transactions(fresh))
	if len(kept)+len(f.fork.Unmined) != len(f.txs) {
		t.Errorf("%d transactions on the new branch and %d not, of %d", len(kept), len(f.fork.Unmined), len(f.txs))
	}
	for _, hash := range f.fork.Unmined {
		if _, pending, err := f.http.TransactionByHash(t.Context(), hash); err != nil || !pending {
			t.Errorf("transaction %s: pending %v, %v", hash, pending, err)
		}
	}
	if slices.Equal(kept, f.txs) {
		t.Error("every transaction is back in its old place")
	}
	f.mine(1)
	for _, hash := range f.txs {
		if r := f.receipt(hash); r.Status != types.ReceiptStatusSuccessful {
			t.Errorf("transaction %s failed after the fork", hash)
		}
	}
}

func (f *forked) checkOldBranchReadable(t *testing.T) {
	t.Helper()
	for _, h := range f.old {
		if got, err := f.http.HeaderByHash(t.Context(), h.Hash()); err != nil || got.Hash() != h.Hash() {
			t.Errorf("old block %v: %v", h.Number, err)
		}
		hash := h.Hash()
		logs, err := f.http.FilterLogs(t.Context(), ethereum.FilterQuery{BlockHash: &hash})
		if err != nil || len(logs) != 4 || logs[0].BlockHash != hash {
			t.Errorf("logs of old block %v: %d, %v", h.Number, len(logs), err)
		}
	}
}

func TestDropFork(t *testing.T) {
	for _, depth := range []uint64{1, 3, 24} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			f := forkAt(t, depth, Drop)
			if f.fork.NewTip.Number != 30 || len(f.fork.Unmined) != len(f.txs) {
				t.Errorf("fork: %+v", f.fork)
			}
			for _, block := range f.chainFollows(t) {
				if head := receive(t, "head", f.heads); head.Hash() != block.Hash() || len(block.Transactions()) > 0 {
					t.Errorf("announced %v, want block %v; it has %d transactions", head.Number, block.Number(),
						len(block.Transactions()))
				}
			}
			f.checkAllIsGone(t)
		})
	}
}

// checkAllIsGone expects no transactions and no old blocks; and that the senders can start over.
func (f *forked) checkAllIsGone(t *testing.T) {
	t.Helper()
	for _, h := range f.old {
		if _, err := f.http.HeaderByHash(t.Context(), h.Hash()); !errors.Is(err, ethereum.NotFound) {
			t.Errorf("old block %v: %v", h.Number, err)
		}
	}
	f.mine(1)
	for _, hash := range f.txs {
		if _, _, err := f.http.TransactionByHash(t.Context(), hash); !errors.Is(err, ethereum.NotFound) {
			t.Errorf("dropped transaction %s: %v", hash, err)
		}
	}
	nonce, err := f.http.PendingNonceAt(t.Context(), f.account(0))
	if err != nil {
		t.Fatal(err)
	}
	f.nonce[0] = nonce
	again := f.emit(0, 99)
	f.mine(1)
	f.receipt(again.Hash())
}

// A Drop fork takes back only the transactions of its blocks, not those that were waiting anyway.
func TestDropForkKeepsWaitingTransactions(t *testing.T) {
	c := start(t, Config{Manual: true}, 2)
	dropped := c.emit(0, 1)
	c.mine(1)
	waiting := c.emit(1, 2)
	if _, err := c.Reorg(1, Drop); err != nil {
		t.Fatal(err)
	}
	c.mine(1)
	if r := c.receipt(waiting.Hash()); r.Status != types.ReceiptStatusSuccessful {
		t.Error("the waiting transaction failed")
	}
	if _, err := c.http.TransactionReceipt(t.Context(), dropped.Hash()); !errors.Is(err, ethereum.NotFound) {
		t.Errorf("receipt of the dropped transaction: %v", err)
	}
}

// Forks of forks, with blocks coming all the time: the chain stays linked and clients never see the head go down.
func TestForksWhileBlocksCome(t *testing.T) {
	c := start(t, Config{BlockTime: minBlockTime}, 2)
	highest := uint64(0)
	for i := range 20 {
		c.emit(i%2, int64(i))
		eventually(t, "blocks to fork", func() bool { return c.Head().Number.Uint64() > highest+3 })
		if _, err := c.Reorg(uint64(1+i%3), []ForkStyle{Replay, Drop}[i%2]); err != nil {
			t.Fatal(err)
		}
		if number := c.Head().Number.Uint64(); number < highest {
			t.Errorf("head went down from %d to %d", highest, number)
		} else {
			highest = number
		}
		for sender := range 2 { // A dropped transaction frees its nonce.
			nonce, err := c.http.PendingNonceAt(t.Context(), c.account(sender))
			if err != nil {
				t.Fatal(err)
			}
			c.nonce[sender] = nonce
		}
	}
	c.Stall(hangGuard)
	for h := c.Head(); h.Number.Sign() > 0; {
		parent, err := c.http.HeaderByNumber(t.Context(), new(big.Int).Sub(h.Number, common.Big1))
		if err != nil || parent.Hash() != h.ParentHash {
			t.Fatalf("below %v: %v", h.Number, err)
		}
		h = parent
	}
}
