package statevm

import (
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/wire"
)

// contradicted is an exchange whose topic holds a block without proof that lacks something, and what follows from that.
type contradicted struct {
	*exchange

	t          *testing.T
	site       *site
	topic      string
	generation int
	trader     perp.Fields
}

func contradict(t *testing.T) *contradicted {
	s := newSite(t)
	x, topic, generation := s.play(t, 1, 1)
	c := &contradicted{exchange: x, t: t, site: s, topic: topic, generation: generation}
	c.trader = perp.Fields{"account": chain.Address{0xac}, "market": chain.Address{0x3a},
		"collateralToken": chain.Address{7}, "isLong": true}
	return c
}

// traded is a block that truly happens: it is in the fold. What of it is published is up to the test.
func (c *contradicted) traded(logs ...chain.Log) (ref chain.BlockRef, messages []routed) {
	c.t.Helper()
	ref = c.next()
	if err := c.book.Begin(ref.Number); err != nil {
		c.t.Fatal(err)
	}
	for i := range logs {
		l := &logs[i]
		l.Block, l.BlockHash, l.TxHash, l.Index = ref.Number, ref.Hash, chain.Keccak256(ref.Hash[:]), uint32(i)
		messages = append(messages, routed{key: chain.Address{0xac}.Hash(), message: wire.Log{Log: *l}})
	}
	events, err := gmx.NewDecoder(emitter).Transaction(logs, ref.TimeMs)
	if err != nil {
		c.t.Fatal(err)
	}
	c.apply(events...)
	c.blocks = append(c.blocks, ref)
	return ref, messages
}

func (c *contradicted) increase(size, delta uint64) (chain.BlockRef, []routed) {
	c.t.Helper()
	c.trader["sizeInUsd"], c.trader["sizeDeltaUsd"] = perp.U64(size), perp.U64(delta)
	return c.traded(gmxtest.Event(emitter, "PositionIncrease", c.trader))
}

// followed lets the partition be read to the end by one owner, by a second, and into another generation.
func (c *contradicted) followed(check func(what string, err error)) {
	c.t.Helper()
	check("the first owner", c.site.follow(c.t, claim(c.t, c.site.db, c.generation, 0, 1), c.topic))
	check("its successor", c.site.follow(c.t, claim(c.t, c.site.db, c.generation, 0, 1), c.topic))
	const rebuilt = 77
	if err := c.site.db.CreateGeneration(c.t.Context(), rebuilt); err != nil {
		c.t.Fatal(err)
	}
	check("a rebuild", c.site.follow(c.t, claim(c.t, c.site.db, rebuilt, 0, 1), c.topic))
}

// PIPE-3: what contradicts the rows because of a block that nobody has proven is no halt: the correction, which stands
// further on, is reached, and what follows it is applied; by whoever owns the partition, and by a rebuild.
func TestCorrectionsAreReached(t *testing.T) {
	for name, published := range map[string]func(c *contradicted) (again []func(attempt uint32)){
		"a later block builds on a log that is missing": func(c *contradicted) []func(uint32) {
			two, second := c.increase(150, 50)
			c.publish(wire.BlockEnd{Block: two}, nil)
			three, third := c.increase(160, 10)
			c.publish(wire.BlockEnd{Block: three, Verified: true}, third)
			return []func(uint32){
				func(n uint32) { c.publish(wire.BlockEnd{Block: two, Verified: true, Attempt: n}, second) },
				func(n uint32) { c.publish(wire.BlockEnd{Block: three, Verified: true, Attempt: n}, third) },
			}
		},
		"the block holds what no build can read": func(c *contradicted) []func(uint32) {
			two, second := c.increase(150, 50)
			bad := gmxtest.Log(emitter, "PositionTeleported", nil, nil)
			bad.Block, bad.BlockHash, bad.TxHash = two.Number, two.Hash, chain.Hash{5}
			c.publish(wire.BlockEnd{Block: two}, []routed{{message: wire.Log{Log: bad}}})
			return []func(uint32){func(n uint32) {
				c.publish(wire.BlockEnd{Block: two, Verified: true, Attempt: n},
					second)
			}}
		},
		"half a transaction is missing": func(c *contradicted) []func(uint32) {
			c.trader["sizeInUsd"], c.trader["sizeDeltaUsd"], c.trader["orderKey"] = perp.U64(60), perp.U64(40),
				chain.Hash{9}
			two, second := c.traded(gmxtest.Decrease(emitter, c.trader)...)
			c.publish(wire.BlockEnd{Block: two}, second[1:])
			return []func(uint32){func(n uint32) {
				c.publish(wire.BlockEnd{Block: two, Verified: true, Attempt: n},
					second)
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := contradict(t)
			one, first := c.increase(100, 100)
			c.publish(wire.BlockEnd{Block: one, Verified: true}, first)
			again := published(c)
			c.everywhere(wire.Finalized{Block: c.tip()})
			c.everywhere(wire.Correction{Reorg: chain.Reorg{Ancestor: one, OldTip: c.tip()}, Attempt: 1,
				Reason: "a log was missing"})
			for _, publish := range again {
				publish(1)
			}
			c.followed(func(what string, err error) {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			})
			c.agree(c.site.db, c.generation)
		})
	}
}

// A contradiction is waited out only for as long as something unproven may be its cause: once all of it is proven, the
// partition halts, for every owner.
func TestProvenContradictionsHalt(t *testing.T) {
	c := contradict(t)
	one, first := c.increase(100, 100)
	c.publish(wire.BlockEnd{Block: one, Verified: true}, first)
	two, _ := c.increase(150, 50)
	c.publish(wire.BlockEnd{Block: two}, nil)
	three, third := c.increase(160, 10)
	c.publish(wire.BlockEnd{Block: three, Verified: true}, third)
	c.everywhere(wire.Proven{Block: two, Attempt: 3}) // another attempt
	c.everywhere(wire.Proven{Block: two})
	c.everywhere(wire.Correction{Reorg: chain.Reorg{Ancestor: one, OldTip: three}, Attempt: 1, Reason: "too late"})
	c.followed(func(what string, err error) {
		if !halts(err) {
			t.Errorf("%s: %v", what, err)
		}
	})
}

// What was proven while a partition waited is not read again when the wait is over: it stays proven, be it that the
// proof was read together with the block that contradicts the rows, or after it.
func TestProvenWhileWaiting(t *testing.T) {
	for name, limit := range map[string]int{"read together": 50, "read one by one": 1} {
		t.Run(name, func(t *testing.T) {
			c := contradict(t)
			one, first := c.increase(100, 100)
			c.publish(wire.BlockEnd{Block: one}, first)
			two, second := c.increase(150, 50)
			c.publish(wire.BlockEnd{Block: two}, nil)
			three, third := c.increase(160, 10)
			c.publish(wire.BlockEnd{Block: three, Verified: true}, third)
			c.everywhere(wire.Proven{Block: one})
			c.everywhere(wire.Correction{Reorg: chain.Reorg{Ancestor: one, OldTip: three}, Attempt: 1,
				Reason: "a log was missing"})
			c.publish(wire.BlockEnd{Block: two, Verified: true, Attempt: 1}, second)
			c.publish(wire.BlockEnd{Block: three, Verified: true, Attempt: 1}, third)
			p := claim(t, c.site.db, c.generation, 0, 1)
			f := c.site.newFollower(p, c.topic)
			f.limit = limit
			if err := c.site.drive(t, f, c.topic); err != nil {
				t.Fatal(err)
			}
			c.agree(c.site.db, c.generation)
			kept, err := p.Kept(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, b := range kept {
				if !b.Verified {
					t.Errorf("block %d was proven, and is not called so", b.Number)
				}
			}
		})
	}
}

// What can no longer be taken back is no reason to wait: the partition halts once the unproven block lies below what
// can be undone.
func TestWaitingEndsAtTheUndoHorizon(t *testing.T) {
	c := contradict(t)
	one, first := c.increase(100, 100)
	c.publish(wire.BlockEnd{Block: one, Verified: true}, first)
	two, _ := c.increase(150, 50)
	c.publish(wire.BlockEnd{Block: two}, nil)
	three, third := c.increase(160, 10)
	c.publish(wire.BlockEnd{Block: three, Verified: true}, third)
	for range 1010 {
		ref := c.next()
		c.blocks = append(c.blocks, ref)
		c.publish(wire.BlockEnd{Block: ref, Verified: true}, nil)
	}
	if err := c.site.follow(t, claim(t, c.site.db, c.generation, 0, 1), c.topic); !halts(err) {
		t.Error(err)
	}
}

// While a partition waits it says for what, also to a successor, and its offset stays before the block; a HALT of the
// scanner is not lost meanwhile.
func TestWaitingIsShown(t *testing.T) {
	c := contradict(t)
	one, first := c.increase(100, 100)
	c.publish(wire.BlockEnd{Block: one, Verified: true}, first)
	two, _ := c.increase(150, 50)
	c.publish(wire.BlockEnd{Block: two}, nil)
	three, third := c.increase(160, 10)
	c.publish(wire.BlockEnd{Block: three, Verified: true}, third)
	i := c.site.launch(c.site.config(1, c.site.dbURL))
	waits := func() bool {
		return strings.Contains(i.reason("partitions"), "waiting for the proof or the correction of block 502")
	}
	eventually(t, "it says what it waits for", waits)
	if err := i.stop(); err != nil {
		t.Error(err)
	}
	i = c.site.launch(c.site.config(1, c.site.dbURL))
	eventually(t, "its successor says so too", waits)
	c.everywhere(wire.Halt{Block: one, Reason: "the chain has left it"})
	c.everywhere(wire.Reorg{Reorg: chain.Reorg{Ancestor: one, OldTip: three}})
	eventually(t, "the halt is noted", func() bool { return strings.Contains(i.reason("partitions"), "halted: ") })
}
