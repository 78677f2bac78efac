package fakechain

import (
	"sync"
	"time"

	"perpkeeper/lab/simulator/venue"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/txmgr/txm"
)

// Config is how a chain is. Start from [DefaultConfig].
type Config struct {
	Seed     uint64
	GasLimit uint64 // of a block
	Floor    uint64 // wei per gas: nodes take nothing below
	Finality uint64 // how many blocks below the head the final one lies
	// Gossip is how long a transaction takes from the endpoint to the miners, and Jitter what may come on top, by lot.
	Gossip, Jitter time.Duration
}

// DefaultConfig is BSC: two blocks to finality, 0.05 gwei.
func DefaultConfig() Config {
	return Config{GasLimit: 100_000_000, Floor: txm.Gwei / 20, Finality: 2, Gossip: 50 * time.Millisecond,
		Jitter: 150 * time.Millisecond}
}

// Chain is one chain with its exchange. What stands still is mined by nobody: a halted chain is one that nobody tells
// to mine.
type Chain struct {
	mu    sync.Mutex
	cfg   Config
	now   func() time.Time
	venue *venue.Venue

	tip      *block
	final    *block
	held     bool     // finality stands still
	branch   []*block // the canonical one, by number
	blocks   map[chain.Hash]*block
	sights   []headAt // what the newest block was, since when
	made     uint64   // blocks so far
	rows     *versions[perp.RowKey, perp.Row]
	accounts *versions[chain.Address, account]
	mined    map[chain.Hash]*included // on the canonical branch
	pool     *pool
	deeds    []traderAction // for the next block
	log      uint32         // the next log of the newest block
}

// headAt is the newest and the final block from a time on.
type headAt struct {
	atMs       uint64
	tip, final *block
}

// New returns a chain whose first block is mined at once. Now is the time of the simulation: no keeper's clock.
func New(cfg Config, v *venue.Venue, now func() time.Time) *Chain {
	c := &Chain{
		cfg: cfg, now: now, venue: v, blocks: map[chain.Hash]*block{}, rows: newVersions[perp.RowKey, perp.Row](),
		accounts: newVersions[chain.Address, account](), mined: map[chain.Hash]*included{}, pool: newPool(),
	}
	c.final = c.begin(c.nowMs())
	for _, row := range v.InitialRows() {
		newest{c}.Put(row)
	}
	c.seen()
	return c
}

func (c *Chain) nowMs() uint64 { return uint64(c.now().UnixMilli()) }

// seen notes what the newest block is now.
func (c *Chain) seen() { c.sights = append(c.sights, headAt{c.nowMs(), c.tip, c.final}) }

// Do has a trader do something in the next block.
func (c *Chain) Do(act venue.Act) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deeds = append(c.deeds, traderAction{act: act})
}

// Fund sets an account's balance, in wei, in the next block.
func (c *Chain) Fund(address chain.Address, wei chain.Uint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deeds = append(c.deeds, traderAction{account: address, balance: wei})
}

// Revoke takes the keeper roles from an account, or gives them back.
func (c *Chain) Revoke(account chain.Address, revoked bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.venue.Revoke(account, revoked)
}

// Poison spoils the execution of an order, request or position.
func (c *Chain) Poison(key chain.Hash, p venue.Poison) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.venue.Poison(key, p)
}

// HoldFinality keeps the final block where it is, or lets it follow the head again.
func (c *Chain) HoldFinality(hold bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = hold
}
