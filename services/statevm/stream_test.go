package statevm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// PIPE-3, PIPE-7, PIPE-8: over whatever a scanner writes (ranges, blocks, reorgs of any depth, halts and what lifts
// them, repeated batches, a replaced scanner that still writes), with one partition and with four, in steps of whatever
// size, the rows are those of a pure fold at every watermark looked at.
func TestStreamsFollowTheFold(t *testing.T) {
	pgtest.Cases(t, 30)
	s := newSite(t)
	rapid.Check(t, func(rt *rapid.T) {
		partitions := rapid.SampledFrom([]int{1, 4}).Draw(rt, "partitions")
		x, topic, generation := s.play(rt, rapid.Uint64().Draw(rt, "seed"), partitions)
		for range rapid.IntRange(0, 2).Draw(rt, "ranges") {
			x.span(rapid.IntRange(1, 5).Draw(rt, "length"), rapid.IntRange(0, 3).Draw(rt, "transactions"))
		}
		x.grow(rapid.IntRange(0, 3).Draw(rt, "transactions"))
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			switch rapid.SampledFrom([]string{"grow", "grow", "grow", "reorg", "break", "repeat", "finalize",
				"finalize by next", "succeed", "look"}).Draw(rt, "step") {
			case "grow":
				for range rapid.IntRange(1, 6).Draw(rt, "blocks") {
					x.grow(rapid.IntRange(0, 4).Draw(rt, "transactions"))
				}
			case "reorg":
				if most := int(x.tip().Number - max(x.final.Number, x.floor)); most > 0 {
					x.reorg(rapid.IntRange(1, most).Draw(rt, "depth"))
				}
			case "break":
				if most := int(x.tip().Number - x.floor); most > 0 {
					x.breakPromise(rapid.IntRange(1, most).Draw(rt, "depth"), func() {})
				}
			case "repeat":
				x.repeat()
			case "finalize":
				x.finalize(rapid.IntRange(0, 5).Draw(rt, "below"))
			case "finalize by next":
				x.finalizeByNext(rapid.IntRange(0, 5).Draw(rt, "below"))
			case "succeed":
				x.succeed()
			case "look":
				s.catchUp(rt, s.db, topic, generation, partitions)
				x.agree(s.db, generation)
			}
		}
		s.catchUp(rt, s.db, topic, generation, partitions)
		x.agree(s.db, generation)
	})
}

// PIPE-3: reorgs as deep as the chain is known to have, and as deep as can be undone, seen block by block; repeated,
// followed by others, and with others inside.
func TestReorgDepths(t *testing.T) {
	s := newSite(t)
	for _, depth := range []int{1, 3, 8, 16, 24, 120, 240, 999} {
		t.Run(fmt.Sprint(depth), func(t *testing.T) {
			x, topic, generation := s.play(t, uint64(depth), 4)
			look := func() {
				t.Helper()
				s.catchUp(t, s.db, topic, generation, 4)
				x.agree(s.db, generation)
			}
			grow := func(blocks int) {
				for i := range blocks {
					x.grow(i % 3 * 120 / max(depth, 120)) // deep ones are mostly empty blocks
				}
			}
			x.grow(3)
			grow(depth)
			look()
			x.reorg(depth)
			look()
			x.repeat()
			grow(depth)
			look()
			x.reorg(1)
			x.reorg(depth)
			x.grow(2)
			look()
		})
	}
}

// PIPE-3: the process dies at each single statement that it sends to the database, and a successor goes on: never a
// block lost, never one applied twice.
func TestKilledAtEveryStep(t *testing.T) {
	s := newSite(t)
	proxy := pgtest.NewProxy(t, s.dbURL)
	for at, died := 1, true; died; at++ {
		x, topic, generation := s.play(t, 7, 1)
		x.grow(2)
		x.grow(2)
		x.reorg(1)
		x.grow(2)

		victim := s.open(proxy.URL())
		p := claim(t, victim, generation, 0, 1)
		ctx, cancel := context.WithTimeout(t.Context(), hangGuard)
		f := s.newFollower(p, topic)
		f.limit = 8 // several commits
		_, end, err := s.client.Bounds(t.Context(), topic, 0)
		if err != nil {
			t.Fatal(err)
		}
		f.ready = func(string) {
			if p.Offset().Next >= end {
				cancel()
			}
		}
		proxy.Kill(at, cancel)
		if err := f.run(ctx); !errors.Is(err, context.Canceled) {
			t.Fatalf("killed at statement %d: %v", at, err)
		}
		died = proxy.Killed()
		proxy.Kill(0, nil)
		proxy.Cut()
		victim.Close()
		cancel()

		s.catchUp(t, s.db, topic, generation, 1)
		x.agree(s.db, generation)
		if !died {
			t.Logf("killed at each of %d statements", at-1)
			if at < 20 {
				t.Errorf("only %d statements were sent", at-1)
			}
		}
	}
}

// PIPE-3: with the reply to every commit lost, each block counts once; with the commit itself lost, too.
func TestLostCommits(t *testing.T) {
	for name, fault := range map[string]pgtest.Fault{"replies": pgtest.LoseReply, "commits": pgtest.LoseCommit} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			proxy := pgtest.NewProxy(t, s.dbURL)
			x, topic, generation := s.play(t, 11, 1)
			for range 6 {
				x.grow(3)
			}
			x.reorg(2)
			x.grow(3)
			db := s.open(proxy.URL())
			p := claim(t, db, generation, 0, 1)
			for range 4 {
				proxy.Next(0, fault) // every other transaction: a look-up is one as well
			}
			if err := s.follow(t, p, topic); err != nil {
				t.Fatal(err)
			}
			if proxy.Hits() == 0 {
				t.Fatal("nothing was lost")
			}
			x.agree(s.db, generation)
		})
	}
}

// PIPE-3, PIPE-7: a process that was paused while another took its partition writes nothing and says whose it is.
func TestPausedOwnerIsFencedOut(t *testing.T) {
	s := newSite(t)
	x, topic, generation := s.play(t, 5, 1)
	x.grow(3)
	paused := claim(t, s.db, generation, 0, 1)
	if err := s.follow(t, paused, topic); err != nil {
		t.Fatal(err)
	}
	x.grow(3)
	s.catchUp(t, s.db, topic, generation, 1)
	x.grow(3)
	before, _, err := pgtest.ChecksumsIn(t.Context(), s.db, generation)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.follow(t, paused, topic); !pg.NotOwner(err) {
		t.Fatalf("the paused owner ended with %v", err)
	}
	after, _, err := pgtest.ChecksumsIn(t.Context(), s.db, generation)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Error("the paused owner wrote")
	}
	s.catchUp(t, s.db, topic, generation, 1)
	x.agree(s.db, generation)
}

// An accepted reorg that has no blocks to take back from a partition takes back what was called final.
func TestAcceptedReorgTakesFinalityBack(t *testing.T) {
	s := newSite(t)
	x, topic, generation := s.play(t, 41, 1)
	x.grow(2)
	x.grow(2)
	x.everywhere(wire.Finalized{Block: chain.BlockRef{Number: x.tip().Number + 2, Hash: x.unique()}})
	x.everywhere(wire.Reorg{Reorg: chain.Reorg{Ancestor: x.tip(),
		OldTip: chain.BlockRef{Number: x.tip().Number + 2, Hash: x.unique()}}, Accepted: true})
	x.repeat()
	for range 3 {
		x.grow(2)
	}
	s.catchUp(t, s.db, topic, generation, 1)
	x.agree(s.db, generation)
}

// What cannot be understood or cannot be true halts the partition, with everything before it committed and nothing of
// it.
func TestHalts(t *testing.T) {
	s := newSite(t)
	for name, test := range map[string]struct {
		spoil  func(x *exchange)
		says   string
		broken bool // finality is: nobody may act
	}{
		"a hole": {func(x *exchange) {
			x.blocks = append(x.blocks, chain.BlockRef{Number: x.tip().Number + 1, Hash: x.unique(), Parent: x.tip().
				Hash})
			x.grow(1)
		}, "does not follow", false},
		"another branch": {func(x *exchange) {
			x.blocks = x.blocks[:len(x.blocks)-1]
			x.grow0()
		}, "another branch", false},
		"a reorg to nowhere": {func(x *exchange) {
			x.everywhere(wire.Reorg{Reorg: chain.Reorg{Ancestor: chain.BlockRef{Number: 502, Hash: x.unique()},
				OldTip: x.tip()}})
		}, "does not fit", false},
		"finality contradicted": {func(x *exchange) {
			x.everywhere(wire.Finalized{Block: chain.BlockRef{Number: x.tip().Number, Hash: x.unique()}})
		}, "is finalized as", true},
		"a reorg below what is final": {func(x *exchange) {
			x.everywhere(wire.Finalized{Block: x.tip()})
			x.everywhere(wire.Reorg{Reorg: chain.Reorg{Ancestor: x.blocks[0], OldTip: x.tip()}})
		}, "contradicts finality", true},
		"another block below what is final": {func(x *exchange) {
			x.everywhere(wire.Finalized{Block: x.tip()})
			x.publish(wire.BlockEnd{Block: chain.BlockRef{Number: x.tip().Number - 1, Hash: x.unique()},
				Digest: wire.Digest(nil)}, nil)
		}, "contradicts finality", true},
		"a range that does not follow": {func(x *exchange) {
			x.everywhere(wire.RangeEnd{Before: chain.BlockRef{Number: x.tip().Number + 1, Hash: x.unique()},
				Last: chain.BlockRef{Number: x.tip().Number + 9, Hash: x.unique()}, Digest: wire.Digest(nil)})
		}, "does not follow", false},
		"a range backwards": {func(x *exchange) {
			x.everywhere(wire.RangeEnd{Before: x.tip(), Last: x.tip(), Digest: wire.Digest(nil)})
		}, "a range goes from", false},
		"a record outside its range": {func(x *exchange) {
			end := wire.RangeEnd{Before: x.tip(), Last: x.child().Block}
			records := []bus.Record{x.encode(chain.Hash{}, wire.Param{Block: end.Last, Key: x.unique()})}
			end.Records, end.Digest = 1, wire.Digest(records)
			x.send(0, append(records, x.encode(chain.Hash{}, end)))
		}, "cannot stand there", false},
		"a block against finality": {func(x *exchange) {
			x.everywhere(wire.Finalized{Block: chain.BlockRef{Number: x.tip().Number + 1, Hash: x.unique()}})
			x.grow0()
		}, "contradicts finality", true},
		"records missing": {func(x *exchange) {
			end := x.child()
			end.Records = 3
			x.send(0, []bus.Record{x.encode(chain.Hash{}, end)})
		}, "ends after 3 records and has 0", false},
		"a record changed": {func(x *exchange) {
			end := x.child()
			end.Digest[0]++
			x.send(0, []bus.Record{x.encode(chain.Hash{}, end)})
		}, "are not those", false},
		"a record of another block": {func(x *exchange) {
			end := x.child()
			stray := x.encode(chain.Hash{}, wire.Param{Block: x.tip(), Key: x.unique()})
			x.send(0, closed(x, end, []bus.Record{stray}))
		}, "inside block", false},
		"a reorg inside a block": {func(x *exchange) {
			x.send(0, []bus.Record{
				x.encode(chain.Hash{}, wire.Param{Block: x.child().Block, Key: x.unique()}),
				x.encode(chain.Hash{}, wire.Reorg{Reorg: chain.Reorg{Ancestor: x.tip(), OldTip: x.tip()}}),
			})
		}, "inside a block", false},
		"a price": {func(x *exchange) { x.everywhere(wire.Price{}) }, "does not belong", false},
		"an unknown record": {func(x *exchange) {
			r := x.encode(chain.Hash{}, wire.Epoch{Number: 1})
			r.Headers[0].Value = []byte("TELEPATHY")
			x.send(0, []bus.Record{r})
		}, "TELEPATHY", false},
		"a newer schema": {func(x *exchange) {
			r := x.encode(chain.Hash{}, wire.Epoch{Number: 1})
			r.Headers[1].Value = []byte{0, wire.SchemaVersion + 1}
			x.send(0, []bus.Record{r})
		}, "schema version", false},
		"an unknown event": {func(x *exchange) {
			x.logs(teleported(chain.Address{}))
		}, "PositionTeleported", false},
		"an event that contradicts the rows": {func(x *exchange) {
			created := gmxtest.Event(emitter, "OrderCreated", perp.Fields{"key": chain.Hash{9}})
			x.logs(created, created)
		}, "created a second time", false},
	} {
		t.Run(name, func(t *testing.T) {
			x, topic, generation := s.play(t, 3, 1)
			for range 3 {
				x.grow(3)
			}
			tip := x.tip()
			_, before, err := s.client.Bounds(t.Context(), topic, 0)
			if err != nil {
				t.Fatal(err)
			}
			test.spoil(x)
			x.epoch++ // A successor that writes on must not make the halted records look stale.
			x.everywhere(wire.Epoch{Number: x.epoch})
			for range 2 { // A restart meets the same.
				p := claim(t, s.db, generation, 0, 1)
				err := s.follow(t, p, topic)
				if !halts(err) || !strings.Contains(err.Error(), test.says) {
					t.Fatalf("got %v, want it to say %q", err, test.says)
				}
				if at := p.Offset(); at.Tip != tip || at.Next < before || at.Epoch != 1 {
					t.Errorf("halted at %+v, want block %d and an offset of %d or a little more", at, tip.Number,
						before)
				}
				if at := p.Offset(); (at.Halted != "") != test.broken {
					t.Errorf("what is kept for planner and sender is %q", at.Halted)
				}
			}
		})
	}
}

// child is the end of an empty block on the tip.
func (x *exchange) child() wire.BlockEnd {
	return wire.BlockEnd{Block: chain.BlockRef{Number: x.tip().Number + 1, Hash: x.unique(), Parent: x.tip().Hash},
		Digest: wire.Digest(nil)}
}

// grow0 publishes an empty block on the tip without keeping it.
func (x *exchange) grow0() { x.publish(x.child(), nil) }

// logs publishes a block with one transaction of the given logs, without keeping it.
func (x *exchange) logs(logs ...chain.Log) {
	end := x.child()
	var messages []routed
	for i, l := range logs {
		l.Block, l.BlockHash, l.Index, l.TxHash = end.Block.Number, end.Block.Hash, uint32(i), chain.Hash{5}
		messages = append(messages, routed{message: wire.Log{Log: l}})
	}
	x.publish(end, messages)
}
