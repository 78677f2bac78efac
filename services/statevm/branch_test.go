package statevm

import (
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
)

// named makes blocks of a tree by name: each is the child of the one before.
func named(number uint64, parent chain.Hash, names string) []chain.BlockRef {
	var refs []chain.BlockRef
	for i := range names {
		refs = append(refs, chain.BlockRef{Number: number + uint64(i), Hash: chain.Hash{names[i]}, Parent: parent})
		parent = chain.Hash{names[i]}
	}
	return refs
}

func onBranch(refs ...chain.BlockRef) *branch {
	b := &branch{}
	for _, r := range refs {
		b.extend(&blockPart{last: r})
	}
	return b
}

// The apply rule: child → apply, known → skip, anything else → stop.
func TestBlockRule(t *testing.T) {
	main := named(11, chain.Hash{'z'}, "abcd")
	fork := named(13, main[1].Hash, "xy")
	b := onBranch(main...)
	for _, test := range []struct {
		name  string
		block chain.BlockRef
		want  verdict
	}{
		{"the child", chain.BlockRef{Number: 15, Hash: chain.Hash{'e'}, Parent: main[3].Hash}, apply},
		{"the tip again", main[3], skip},
		{"the first again", main[0], skip},
		{"a sibling", fork[0], 0},
		{"a nephew", fork[1], 0},
		{"a grandchild", chain.BlockRef{Number: 16, Hash: chain.Hash{'f'}, Parent: chain.Hash{'e'}}, 0},
		{"a child of nobody", chain.BlockRef{Number: 15, Hash: chain.Hash{'e'}, Parent: chain.Hash{'?'}}, 0},
		{"older than anything kept", chain.BlockRef{Number: 9, Hash: chain.Hash{'q'}}, 0},
	} {
		got, err := b.block(test.block)
		if got != test.want || (err == nil) != (test.want != 0) || err != nil && !halts(err) {
			t.Errorf("%s: %d, %v", test.name, got, err)
		}
	}
	if v, err := (&branch{}).block(main[2]); v != apply || err != nil {
		t.Errorf("the first block of all: %d, %v", v, err)
	}
}

func TestReorgRule(t *testing.T) {
	main := named(11, chain.Hash{'z'}, "abcd")
	ground := chain.BlockRef{Number: 10, Hash: chain.Hash{'z'}}
	fork := named(13, main[1].Hash, "xy")
	stranger := chain.BlockRef{Number: 12, Hash: chain.Hash{'?'}}
	taken := chain.Reorg{Ancestor: main[1], OldTip: main[3]}
	for _, test := range []struct {
		name  string
		on    *branch
		reorg chain.Reorg
		want  verdict
	}{
		{"from the tip", onBranch(main...), taken, apply},
		{"from below the tip", onBranch(main...), chain.Reorg{Ancestor: main[0], OldTip: main[2]}, apply},
		{"of everything", onBranch(main...), chain.Reorg{Ancestor: ground, OldTip: main[3]}, apply},
		{"seen, nothing since", onBranch(main[:2]...), taken, skip},
		{"seen, other blocks since", onBranch(main[0], main[1], fork[0], fork[1]), taken, skip},
		{"never seen, too far below", onBranch(main[:1]...), taken, 0},
		{"to a stranger", onBranch(main...), chain.Reorg{Ancestor: stranger, OldTip: main[3]}, 0},
		{"between strangers", onBranch(main...), chain.Reorg{Ancestor: stranger, OldTip: fork[1]}, 0},
		{"upwards", onBranch(main...), chain.Reorg{Ancestor: main[3], OldTip: main[1]}, 0},
		{"to itself", onBranch(main...), chain.Reorg{Ancestor: main[3], OldTip: main[3]}, 0},
		{"of nothing", &branch{}, taken, 0},
	} {
		got, err := test.on.reorg(wire.Reorg{Reorg: test.reorg})
		if got != test.want || (err == nil) != (test.want != 0) {
			t.Errorf("%s: %d, %v", test.name, got, err)
		}
	}
}

// Below the finalized block only a reorg that the operator has accepted may go, and it takes that block along.
func TestAcceptedReorgRule(t *testing.T) {
	main := named(11, chain.Hash{'z'}, "abcd")
	final := onBranch(main...)
	final.finalized = main[3]
	back := chain.Reorg{Ancestor: main[1], OldTip: main[3]}
	if _, err := final.reorg(wire.Reorg{Reorg: back}); !contradicts(err) {
		t.Errorf("a reorg below what is final: %v", err)
	}
	if v, err := final.reorg(wire.Reorg{Reorg: back, Accepted: true}); v != apply || err != nil {
		t.Errorf("an accepted one: %d, %v", v, err)
	}
	if final.rewind(main[1], true); final.finalized != main[1] {
		t.Errorf("the finalized block stays at %+v", final.finalized)
	}
}

// A range stands on the tip or on nothing, is known by its last block, and leaves nothing to go back to.
func TestRangeRule(t *testing.T) {
	main := named(11, chain.Hash{'z'}, "abcdefg")
	span := func(from, to int) *blockPart { return &blockPart{before: main[from], last: main[to]} }
	b := onBranch(main[:3]...)
	for _, test := range []struct {
		name string
		on   *branch
		span *blockPart
		want verdict
	}{
		{"on the tip", b, span(2, 5), apply}, {"on nothing", &branch{}, span(2, 5), apply},
		{"known", b, span(0, 2), skip},
		{"half known", b, span(1, 4), 0}, {"with a hole", b, span(3, 5), 0},
	} {
		if got, err := test.on.part(test.span); got != test.want || (err == nil) != (test.want != 0) {
			t.Errorf("%s: %d, %v", test.name, got, err)
		}
	}
	b.extend(span(2, 5))
	if len(b.kept) != 1 || b.finalized != main[5] {
		t.Errorf("kept: %v, finalized: %v", b.kept, b.finalized)
	}
	if v, err := b.block(main[6]); v != apply || err != nil {
		t.Errorf("a block on a range: %d, %v", v, err)
	}
	into := wire.Reorg{Reorg: chain.Reorg{Ancestor: main[1], OldTip: main[5]}, Accepted: true}
	if _, err := b.reorg(into); !halts(err) || !strings.Contains(err.Error(), "rebuild") {
		t.Errorf("a reorg into a range: %v", err)
	}
}

// Our own maximum of finalized blocks never goes back, and no block contradicts it.
func TestFinalityRule(t *testing.T) {
	main := named(11, chain.Hash{'z'}, "abcd")
	b := onBranch(main...)
	b.finalized = main[2]
	other := main[2]
	other.Hash[1] = 1
	later := chain.BlockRef{Number: 99, Hash: chain.Hash{'l'}}
	for _, test := range []struct {
		name string
		ref  chain.BlockRef
		want verdict
	}{{"higher", main[3], apply}, {"the same", main[2], skip}, {"lower", main[1], skip}, {"another", other, 0},
		{"ahead of the tip", later, apply}} {
		if got, err := b.finalize(test.ref); got != test.want || (err == nil) != (test.want != 0) {
			t.Errorf("%s: %d, %v", test.name, got, err)
		}
	}
	b.rewind(main[1], false)
	if _, err := b.block(chain.BlockRef{Number: 13, Hash: chain.Hash{'x'}, Parent: main[1].Hash}); !halts(err) {
		t.Errorf("another block in place of the finalized one: %v", err)
	}
	if v, err := b.block(main[2]); v != apply || err != nil {
		t.Errorf("the finalized block again: %d, %v", v, err)
	}
}

// The branch remembers as much as can be undone, and no more.
func TestBranchForgets(t *testing.T) {
	b, parent := &branch{}, chain.Hash{1}
	for n := range uint64(3 * chain.UndoHorizon) {
		ref := chain.BlockRef{Number: n + 1, Hash: chain.Keccak256(parent[:]), Parent: parent}
		b.extend(&blockPart{last: ref})
		parent = ref.Hash
	}
	tip, _ := b.tip()
	deep := wire.Reorg{Reorg: chain.Reorg{Ancestor: chain.BlockRef{Number: 3}, OldTip: tip}}
	if _, err := b.reorg(deep); !halts(err) || !strings.Contains(err.Error(), "deeper") {
		t.Errorf("a reorg beyond the horizon: %v", err)
	}
	if _, kept := b.at(tip.Number - chain.UndoHorizon); !kept || len(b.kept) != chain.UndoHorizon+1 {
		t.Errorf("%d blocks are kept", len(b.kept))
	}
}
