package fakechain

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/execution"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/txm"
	"perpkeeper/test/sim/venue"
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
	return Config{GasLimit: 100_000_000, Floor: txm.Gwei / 20, Finality: 2, Gossip: 50 * time.Millisecond, Jitter: 150 * time.Millisecond}
}

// Chain is one chain with its exchange. What stands still is mined by nobody: a halted chain is one that nobody tells to mine.
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
	sights   []sight // what the newest block was, since when
	made     uint64  // blocks so far
	rows     *versions[perp.RowKey, perp.Row]
	accounts *versions[chain.Address, account]
	mined    map[chain.Hash]*included // on the canonical branch
	pool     *pool
	deeds    []deed // for the next block
	price    uint64 // that others pay in the next block
	log      uint32 // the next log of the newest block
}

// sight is the newest and the final block from a time on.
type sight struct {
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
	for _, row := range v.Ground() {
		newest{c}.Put(row)
	}
	c.seen()
	return c
}

func (c *Chain) nowMs() uint64 { return uint64(c.now().UnixMilli()) }

// seen notes what the newest block is now.
func (c *Chain) seen() { c.sights = append(c.sights, sight{c.nowMs(), c.tip, c.final}) }

// Do has a trader do something in the next block.
func (c *Chain) Do(act venue.Act) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deeds = append(c.deeds, deed{act: act})
}

// Fund sets an account's balance, in wei, in the next block.
func (c *Chain) Fund(address chain.Address, wei perp.Uint) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deeds = append(c.deeds, deed{account: address, balance: wei})
}

// Crowd has others fill the blocks from now on at a price, in wei per gas: what pays less waits. 0 ends it.
func (c *Chain) Crowd(price uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.price = price
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

// Mine makes the next block, now.
func (c *Chain) Mine() chain.BlockRef {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mine()
}

func (c *Chain) mine() chain.BlockRef {
	for _, tx := range c.pool.arrived(c.nowMs()) {
		if c.pool.check(tx, c.account(c.tip, tx.from), c.cfg) == nil {
			c.pool.put(tx)
		}
	}
	deeds := c.deeds
	c.deeds = nil
	c.build(c.nowMs(), deeds)
	c.fill()
	c.finalize()
	c.seen()
	return c.tip.ref
}

// build begins a block with what happens without keepers.
func (c *Chain) build(timeMs uint64, deeds []deed) {
	b := c.begin(timeMs)
	b.deeds, c.log = deeds, 0
	for n, d := range deeds {
		if d.act == nil {
			a := c.account(b, d.account)
			a.balance = d.balance
			c.setAccount(d.account, a)
			continue
		}
		place := binary.BigEndian.AppendUint64([]byte("act"), uint64(n))
		tx := chain.Tx{Hash: chain.Keccak256(b.ref.Hash[:], place), Block: b.ref.Number, BlockHash: b.ref.Hash, OK: true}
		events := d.act(newest{c}, perp.Stamp{Block: b.ref.Number, Log: c.log, TxHash: tx.Hash, TimeMs: timeMs})
		c.log += uint32(len(events))
		for _, e := range events {
			if err := perp.Apply(newest{c}, e); err != nil {
				panic(fmt.Sprintf("fakechain: a trader's act: %v", err))
			}
		}
		c.tell(events, tx)
	}
}

// tell notes what ended in the newest block.
func (c *Chain) tell(events []perp.Event, tx chain.Tx) {
	for _, e := range execution.Endings(events) {
		e.Tx, e.Block = tx, c.tip.ref
		c.tip.ended = append(c.tip.ended, e)
	}
}

// fill puts what waits into the newest block, as a miner does.
func (c *Chain) fill() {
	room, passed := c.cfg.GasLimit, map[chain.Address]bool{}
	next := func(from chain.Address) uint64 { return c.account(c.tip, from).nonce }
	for {
		tx := c.pool.best(next, func(tx *transaction) bool {
			return !passed[tx.from] && tx.ready <= c.tip.ref.TimeMs && tx.price() >= c.tip.price
		})
		if tx == nil {
			return
		}
		if tx.Gas > room || c.account(c.tip, tx.from).balance.Less(perp.U64(tx.Gas).Mul(perp.U64(tx.price()))) {
			passed[tx.from] = true
			continue
		}
		room -= c.include(tx)
		c.pool.mined(tx.from, tx.Nonce+1)
	}
}

// include executes a transaction in the newest block and returns the gas it used.
func (c *Chain) include(tx *transaction) uint64 {
	b := c.tip
	stamp := perp.Stamp{Block: b.ref.Number, Log: c.log, TxHash: tx.hash, TimeMs: b.ref.TimeMs}
	effect := c.venue.Execute(newest{c}, venue.Call{From: tx.from, To: tx.To, Data: tx.Data, Gas: tx.Gas}, stamp, false)
	i := &included{transaction: tx, effect: effect, tx: chain.Tx{
		Hash: tx.hash, From: tx.from, To: tx.To, Nonce: tx.Nonce, Block: b.ref.Number, BlockHash: b.ref.Hash, Index: uint32(len(b.deeds) + len(b.txs)),
		OK: effect.OK, GasUsed: effect.GasUsed, GasPrice: tx.price(),
	}}
	const mostLogs = 4 // of one execution
	c.log += mostLogs
	b.txs, c.mined[tx.hash] = append(b.txs, i), i
	a := c.account(b, tx.from)
	a.nonce, a.balance = tx.Nonce+1, a.balance.Sub(perp.U64(effect.GasUsed).Mul(perp.U64(tx.price())))
	c.setAccount(tx.from, a)
	c.tell(effect.Events, i.tx)
	return effect.GasUsed
}

func (c *Chain) finalize() {
	if depth := c.cfg.Finality; !c.held && c.tip.ref.Number >= depth {
		c.final = c.branch[max(c.final.ref.Number, c.tip.ref.Number-depth)]
	}
}

// Fate is what becomes of keepers' transactions whose blocks leave the chain.
type Fate int

// The fates.
const (
	Replayed  Fate = iota // the new branch has them in the same places
	Returned              // they wait again
	Forgotten             // nobody has them but their senders
)

// Reorg replaces the newest blocks by as many others of the same times, and mines one more on top, now. What traders did they do again, in the same places. It
// fails, with the chain unchanged, where a final block would be replaced: hold finality first.
func (c *Chain) Reorg(depth uint64, fate Fate) (chain.Reorg, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if height := c.tip.ref.Number; depth == 0 || depth > height-c.final.ref.Number {
		return chain.Reorg{}, fmt.Errorf("replacing %d blocks of height %d: block %d is final", depth, height, c.final.ref.Number)
	}
	old := c.leave(depth)
	what := chain.Reorg{Ancestor: c.tip.ref, OldTip: old[len(old)-1].ref}
	for _, b := range old {
		c.build(b.ref.TimeMs, b.deeds)
		c.tip.price = b.price
		for _, i := range b.txs {
			switch fate {
			case Replayed:
				c.include(i.transaction)
			case Returned:
				c.pool.put(i.transaction)
			case Forgotten:
			}
		}
	}
	c.mine()
	return what, nil
}

// leave takes the newest blocks off the canonical branch and returns them, oldest first.
func (c *Chain) leave(depth uint64) (old []*block) {
	for range depth {
		b := c.tip
		b.rows.leave(c.rows)
		b.accounts.leave(c.accounts)
		for _, i := range b.txs {
			delete(c.mined, i.hash)
		}
		b.canonical = false
		c.tip, c.branch = b.parent, c.branch[:len(c.branch)-1]
		old = append(old, b)
	}
	slices.Reverse(old)
	return old
}
