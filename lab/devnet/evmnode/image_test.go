package evmnode

import (
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// slot0 is what the emitter holds at a height.
func (c *chainTest) slot0(height int64) int64 {
	c.t.Helper()
	word, err := c.http.StorageAt(c.t.Context(), emitter, common.Hash{}, big.NewInt(height))
	if err != nil {
		c.t.Fatal(err)
	}
	return new(big.Int).SetBytes(word).Int64()
}

// Two chains that begin with an image of a third have its blocks, states, anchor and finality, and from there on each
// goes its own way.
func TestImageIsAChainOfItsOwn(t *testing.T) {
	base := start(t, Config{Manual: true}, 1)
	base.emit(0, 5)
	base.mine(2)
	base.Anchor()
	base.mine(3)
	base.StallFinality()
	base.emit(0, 6)
	base.mine(2)
	image, err := base.Image()
	if err != nil {
		t.Fatal(err)
	}
	base.emit(0, 7)
	base.mine(1)

	one, other := start(t, Config{Manual: true, Image: image}, 1), start(t, Config{Manual: true, Image: image}, 1)
	for _, c := range []*chainTest{one, other} {
		if head := c.Head(); head.Number.Int64() != 7 || head.Hash() != image.head.Hash() {
			t.Fatalf("the head is block %d", head.Number)
		}
		if c.slot0(2) != 5 || c.slot0(7) != 6 {
			t.Errorf("slot 0 is %d, then %d", c.slot0(2), c.slot0(7))
		}
		if final := c.headerByNumber(rpc.FinalizedBlockNumber); final.Number.Int64() != 3 {
			t.Errorf("block %d is final, and stood still at 3", final.Number)
		}
		if _, err := c.Reorg(6, Drop); err == nil || !strings.Contains(err.Error(), "anchored at height 2") {
			t.Errorf("a fork below the anchor: %v", err)
		}
	}
	one.nonce[0] = 2
	one.emit(0, 8)
	one.mine(1)
	if _, err := other.Reorg(5, Drop); err != nil {
		t.Error(err)
	}
	for c, want := range map[*chainTest]int64{base: 7, one: 8} {
		if got := c.slot0(8); got != want {
			t.Errorf("slot 0 is %d, want %d", got, want)
		}
	}
	if got := other.slot0(7); got != 5 {
		t.Errorf("slot 0 is %d after a fork that dropped what made it another", got)
	}
	if _, err := New(Config{ChainID: 9, Image: image}); err == nil || !strings.Contains(err.Error(), "has id 1337") {
		t.Errorf("a chain of another id: %v", err)
	}
}

// What is built is executed once. Whoever executes it again comes to the same states and receipts, of blocks that
// passed something over and of forks too.
func TestBlocksAreWhatTheySay(t *testing.T) {
	c := start(t, Config{Manual: true}, 3)
	for n := range int64(4) {
		c.emit(0, n)
		c.emit(1, n)
		c.mine(1)
	}
	failing := c.sign(0, c.nonce[0], 10, &emitter, nil)
	poor := c.sign(2, 0, 1_000_000_000, &emitter, nil) // costs more than the account has
	early := c.sign(1, c.nonce[1]+1, 10, &emitter, nil)
	for _, tx := range []*types.Transaction{failing, early} {
		if err := c.SendTransaction(tx); err != nil {
			t.Fatal(err)
		}
	}
	c.mine(1)
	parent := c.Head()
	block, err := c.build(parent, nextMilliTime(parent), nil, &listed{[]*types.Transaction{failing, poor, early}})
	if err != nil || len(block.Transactions()) != 0 {
		t.Errorf("%d transactions in a block of those that cannot be executed, %v", len(block.Transactions()), err)
	}
	if _, err := c.Reorg(3, Replay); err != nil {
		t.Fatal(err)
	}
	c.mine(2)

	g := genesis(c.cfg)
	first := c.chain.GetHeaderByNumber(0)
	g.Timestamp, g.Mixhash = first.Time, first.MixDigest
	peer, err := core.NewBlockChain(rawdb.NewMemoryDatabase(), g, engine{}, chainOptions(""))
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Stop()
	executed := 0
	for number := uint64(1); number <= c.Head().Number.Uint64(); number++ {
		block := c.chain.GetBlockByNumber(number)
		executed += len(block.Transactions())
		if _, err := peer.InsertChain(types.Blocks{block}); err != nil {
			t.Fatalf("block %d: %v", number, err)
		}
	}
	if executed < 8 {
		t.Errorf("%d transactions were executed", executed)
	}
}
