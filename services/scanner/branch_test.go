package scanner

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
)

// ref makes a block; salt tells branches apart.
func ref(number uint64, salt byte, parent chain.BlockRef) chain.BlockRef {
	return chain.BlockRef{Number: number, Hash: chain.Hash{byte(number >> 8), byte(number), salt}, Parent: parent.Hash}
}

// What a branch says it needs is what makes the block its tip, or shows that nothing is to be done.
func TestBranchNeeds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b branch
		all := []chain.BlockRef{ref(99, 0, chain.BlockRef{})} // every block there ever was: a tree
		start := ref(100, 0, all[0])
		if err := b.push(start); err != nil {
			t.Fatal(err)
		}
		all = append(all, start)
		on := []chain.BlockRef{all[0], start} // a dumb list of what the branch is
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if b.tip() != on[len(on)-1] || b.oldest().Hash != on[0].Hash {
					t.Fatalf("from %+v to %+v, want from %+v to %+v", b.oldest(), b.tip(), on[0], on[len(on)-1])
				}
			},
			"a new block somewhere": func(t *rapid.T) {
				parent := all[rapid.IntRange(1, len(all)-1).Draw(t, "parent")]
				all = append(all, ref(parent.Number+1, byte(len(all)), parent))
			},
			"go there": func(t *rapid.T) {
				block := all[rapid.IntRange(1, len(all)-1).Draw(t, "block")]
				n, ancestor := b.needs(block)
				inside := slices.Contains(on, block)
				parentAt := slices.IndexFunc(on, func(r chain.BlockRef) bool { return r.Hash == block.Parent })
				switch {
				case inside != (n == held), !inside && (parentAt < 0) != (n == lower), n == child &&
					parentAt != len(on)-1:
					t.Fatalf("%+v on %+v: needs %d", block, on, n)
				case n == fork:
					if ancestor.Hash != block.Parent || !b.cut(ancestor) {
						t.Fatalf("cannot go back to %+v", ancestor)
					}
					on = slices.Clone(on[:parentAt+1])
				}
				if n != held && n != lower {
					if err := b.push(block); err != nil {
						t.Fatal(err)
					}
					on = append(on, block)
				}
			},
		})
	})
}

func TestBranchRemembersTheHorizon(t *testing.T) {
	var b branch
	tip := ref(1, 0, ref(0, 0, chain.BlockRef{}))
	for n := uint64(1); n < 5*chain.UndoHorizon; n++ {
		if err := b.push(tip); err != nil {
			t.Fatal(err)
		}
		if n > chain.UndoHorizon && len(b.blocks) < chain.UndoHorizon || len(b.blocks) > 2*chain.UndoHorizon {
			t.Fatalf("%d blocks are remembered of %d", len(b.blocks), n)
		}
		if at, ok := b.at(n - min(n, chain.UndoHorizon-1)); !ok || at.Number != n-min(n, chain.UndoHorizon-1) {
			t.Fatalf("block %d of %d is forgotten", n-min(n, chain.UndoHorizon-1), n)
		}
		tip = ref(n+1, 0, tip)
	}
	below := ref(b.oldest().Number-1, 1, chain.BlockRef{})
	if n, _ := b.needs(below); n != held {
		t.Errorf("a block below the memory needs %d", n)
	}
	if err := b.push(ref(7, 9, chain.BlockRef{})); err == nil {
		t.Error("a block that does not follow was pushed")
	}
	if b.cut(below) {
		t.Error("cut to a block that is not there")
	}
}

// written is a record as far as streams care.
type written struct {
	m    wire.Message
	meta wire.Meta
}

// writers makes up the log of a partition: scanners that follow each other, their forks, and late records of those that
// were replaced.
func writers(t *rapid.T) []written {
	var log []written
	epochs := uint64(0)
	branches := map[uint64]*branch{} // by epoch, as its writer believes
	put := func(epoch uint64, m wire.Message) {
		log = append(log, written{m, wire.Meta{Epoch: epoch}})
	}
	claim := func() {
		next := &branch{}
		if epochs > 0 {
			next.blocks = slices.Clone(branches[epochs].blocks)
		}
		epochs++
		branches[epochs] = next
		put(epochs, wire.Epoch{Number: epochs, Owner: string(rune('a' + epochs))})
	}
	extend := func(epoch uint64) {
		b := branches[epoch]
		next := ref(100, byte(len(log)), ref(99, 0, chain.BlockRef{}))
		if !b.empty() {
			next = ref(b.tip().Number+1, byte(len(log)), b.tip())
		}
		put(epoch, wire.Log{})
		put(epoch, wire.BlockEnd{Block: next})
		_ = b.push(next)
	}
	rewind := func(epoch uint64) {
		b := branches[epoch]
		if len(b.blocks) < 3 {
			return
		}
		back := rapid.IntRange(1, len(b.blocks)-2).Draw(t, "back")
		ancestor := b.blocks[len(b.blocks)-1-back]
		put(epoch, wire.Reorg{Reorg: chain.Reorg{Ancestor: ancestor, OldTip: b.tip()}})
		b.cut(ancestor)
	}
	claim()
	for range rapid.IntRange(0, 60).Draw(t, "steps") {
		writer := epochs
		switch rapid.IntRange(0, 9).Draw(t, "step") {
		case 0:
			claim()
		case 1:
			rewind(writer)
		case 2: // a scanner that was replaced and does not know it
			extend(rapid.Uint64Range(1, epochs).Draw(t, "writer"))
		case 3:
			put(writer, wire.Finalized{Block: chain.BlockRef{Number: uint64(len(log))}})
		default:
			extend(writer)
		}
	}
	return log
}

func replay(log []written, whole bool) (*stream, error) {
	s := &stream{whole: whole}
	for _, w := range log {
		if err := s.apply(w.m, w.meta); err != nil {
			return s, err
		}
	}
	return s, nil
}

// Reading a part of the log gives the same tip and the same newest blocks as reading all of it, or says that it cannot
// tell.
func TestStreamsFromTheMiddle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		log := writers(t)
		whole, err := replay(log, true)
		if err != nil {
			t.Fatalf("reading everything: %v", err)
		}
		from := rapid.IntRange(0, len(log)).Draw(t, "from")
		if before, _ := replay(log[:from], true); from < len(log) && log[from].meta.Epoch < uint64(before.claim) {
			return // a window of thousands of records does not begin among the few that a replaced scanner still wrote
		}
		part, err := replay(log[from:], false)
		if err != nil || part.branch.empty() || part.ambiguous || part.claim < whole.claim {
			return // a larger window is read then
		}
		if part.branch.tip().Hash != whole.branch.tip().Hash {
			t.Fatalf("from %d: the tip is %+v, want %+v", from, part.branch.tip(), whole.branch.tip())
		}
		for _, b := range part.branch.blocks {
			if known, ok := whole.branch.at(b.Number); ok && known.Hash != b.Hash {
				t.Fatalf("from %d: block %+v, want %+v", from, b, known)
			}
		}
	})
}

// What a replaced scanner wrote behind the EPOCH of its successor counts for nothing, also for a reader that begins
// between the two.
func TestStaleRecordsAtTheBeginning(t *testing.T) {
	first := ref(100, 0, ref(99, 0, chain.BlockRef{}))
	stale := written{wire.BlockEnd{Block: ref(101, 1, first)}, wire.Meta{Epoch: 1}}
	s, err := replay([]written{stale, {wire.Finalized{Block: first}, wire.Meta{Epoch: 2}}}, false)
	if err != nil || !s.branch.empty() || s.finalized.Number != 100 || !s.ambiguous {
		t.Errorf("%+v, %v", s, err)
	}
}

// What stands under an epoch that nobody has claimed in the partition counts for nothing, and the next claim outranks
// it. Whoever began to read behind the claim in force cannot tell, and reads more.
func TestEpochWithoutItsClaim(t *testing.T) {
	first := ref(100, 0, ref(99, 0, chain.BlockRef{}))
	second, stray := ref(101, 0, first), ref(105, 0, ref(104, 0, first))
	end := func(b chain.BlockRef, epoch uint64) written {
		return written{wire.BlockEnd{Block: b}, wire.Meta{Epoch: epoch}}
	}
	log := []written{
		end(stray, 7), {wire.Epoch{Number: 2}, wire.Meta{Epoch: 2}}, end(first, 2), end(stray, 8), end(second, 2),
	}
	s, err := replay(log, true)
	if err != nil || s.branch.tip() != second || s.start != first.Number || s.claim != 2 || s.seen != 8 || s.ambiguous {
		t.Errorf("%+v, %v", s, err)
	}
	if s, _ := replay(log[1:], false); s.branch.tip() != second || s.ambiguous {
		t.Errorf("from the claim: %+v", s)
	}
	if s, _ := replay(log[2:], false); !s.ambiguous {
		t.Errorf("from behind the claim: %+v", s)
	}
	if s, _ := replay([]written{end(first, 2), log[1]}, false); !s.ambiguous {
		t.Errorf("from before the claim: %+v", s)
	}
}

// A partition that no scanner would have written is refused.
func TestBrokenStreams(t *testing.T) {
	first := ref(100, 0, ref(99, 0, chain.BlockRef{}))
	second := ref(101, 0, first)
	epoch := written{wire.Epoch{Number: 1}, wire.Meta{Epoch: 1}}
	end := func(b chain.BlockRef, epoch uint64) written {
		return written{wire.BlockEnd{Block: b}, wire.Meta{Epoch: epoch}}
	}
	for name, log := range map[string][]written{
		"a gap":                          {epoch, end(first, 1), end(ref(102, 0, second), 1)},
		"another branch without a reorg": {epoch, end(first, 1), end(second, 1), end(ref(101, 1, first), 1)},
		"a reorg to nowhere": {epoch, end(first, 1),
			{wire.Reorg{Reorg: chain.Reorg{Ancestor: ref(100, 7, first)}}, wire.Meta{Epoch: 1}}},
		"a reorg below the first block's parent": {epoch, end(first, 1),
			{wire.Reorg{Reorg: chain.Reorg{Ancestor: ref(98, 0, first)}}, wire.Meta{Epoch: 1}}},
	} {
		if s, err := replay(log, true); err == nil {
			t.Errorf("%s: read up to %+v", name, s.branch.tip())
		}
	}
	again := []written{epoch, end(first, 1), end(second, 1), end(first, 1)}
	if s, err := replay(again, true); err != nil || s.branch.tip() != second {
		t.Errorf("a block that comes again: %+v, %v", s.branch.tip(), err)
	}
}

// A reorg counts once, however often it is said: what has grown on the ancestor since stays.
func TestTakenBackOnce(t *testing.T) {
	meta := wire.Meta{Epoch: 1}
	first := ref(100, 0, ref(99, 0, chain.BlockRef{}))
	old, second := ref(101, 0, first), ref(101, 1, first)
	third := ref(102, 1, second)
	back := chain.Reorg{Ancestor: first, OldTip: old}
	reorg := written{wire.Reorg{Reorg: back}, meta}
	end := func(b chain.BlockRef) written { return written{wire.BlockEnd{Block: b}, meta} }
	log := []written{
		{wire.Epoch{Number: 1}, meta}, end(first), end(old),
		reorg, end(second), end(third),
		reorg, end(second), end(third),
	}
	for upTo := 7; upTo <= len(log); upTo++ {
		if s, err := replay(log[:upTo], true); err != nil || s.branch.tip() != third {
			t.Errorf("after %d records: %+v, %v", upTo, s.branch.tip(), err)
		}
	}
}
