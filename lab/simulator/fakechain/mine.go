package fakechain

import (
	"encoding/binary"
	"fmt"

	"perpkeeper/lab/simulator/venue"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/tier/execution"
)

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
func (c *Chain) build(timeMs uint64, deeds []traderAction) {
	b := c.begin(timeMs)
	b.actions, c.log = deeds, 0
	for n, d := range deeds {
		if d.act == nil {
			a := c.account(b, d.account)
			a.balance = d.balance
			c.setAccount(d.account, a)
			continue
		}
		place := binary.BigEndian.AppendUint64([]byte("act"), uint64(n))
		tx := chain.Tx{Hash: chain.Keccak256(b.ref.Hash[:], place), Block: b.ref.Number, BlockHash: b.ref.Hash,
			OK: true}
		events := d.act(newest{c}, perp.Stamp{Block: b.ref.Number, Log: c.log, TxHash: tx.Hash, TimeMs: timeMs})
		c.log += uint32(len(events))
		for _, e := range events {
			if err := perp.Apply(newest{c}, e); err != nil {
				panic(fmt.Sprintf("fakechain: a trader's act: %v", err))
			}
		}
		c.noteEnds(events, tx)
	}
}

// noteEnds notes what ended in the newest block.
func (c *Chain) noteEnds(events []perp.Event, tx chain.Tx) {
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
			return !passed[tx.from] && tx.ready <= c.tip.ref.TimeMs
		})
		if tx == nil {
			return
		}
		if tx.Gas > room || c.account(c.tip, tx.from).balance.Less(chain.U64(tx.Gas).Mul(chain.U64(tx.price()))) {
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
		Hash: tx.hash, From: tx.from, To: tx.To, Nonce: tx.Nonce, Block: b.ref.Number, BlockHash: b.ref.Hash,
		Index: uint32(len(b.actions) + len(b.txs)),
		OK:    effect.OK, GasUsed: effect.GasUsed, GasPrice: tx.price(),
	}}
	const mostLogs = 4 // of one execution
	c.log += mostLogs
	b.txs, c.mined[tx.hash] = append(b.txs, i), i
	a := c.account(b, tx.from)
	cost := chain.U64(effect.GasUsed).Mul(chain.U64(tx.price()))
	// on another branch the same transaction may burn more
	a.nonce, a.balance = tx.Nonce+1, a.balance.Sub(cost.Min(a.balance))
	c.setAccount(tx.from, a)
	c.noteEnds(effect.Events, i.tx)
	return effect.GasUsed
}

func (c *Chain) finalize() {
	if depth := c.cfg.Finality; !c.held && c.tip.ref.Number >= depth {
		c.final = c.branch[max(c.final.ref.Number, c.tip.ref.Number-depth)]
	}
}
