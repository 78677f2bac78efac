package pg_test

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// orchestra is partitions that follow one chain, each at its own pace: what one has not done yet waits in its queue.
type orchestra struct {
	parts  []*pg.Partition
	books  []*perp.Book // what each partition has applied
	queues [][]move
	chain  []link // the canonical branch
	forks  uint64
}

// move is what a partition has to do next: apply a block, or go back to one.
type move struct {
	block *link
	back  *chain.BlockRef
}

// link is a block, and what it makes of rows.
type link struct {
	ref  chain.BlockRef
	rows []perp.Row
}

func (o *orchestra) tip() chain.BlockRef {
	if len(o.chain) == 0 {
		return ground
	}
	return o.chain[len(o.chain)-1].ref
}

// owner is the partition that a row belongs to.
func (o *orchestra) owns(part int, r perp.Row) bool {
	k := r.RowKey()
	return k.Table.Replicated() || int(k.Key[31]+k.Key[11])%len(o.parts) == part
}

func (o *orchestra) extend(rows []perp.Row) {
	tip := o.tip()
	l := link{chain.BlockRef{Number: tip.Number + 1, Parent: tip.Hash,
		Hash: chain.Keccak256(tip.Hash[:], binary.BigEndian.AppendUint64(nil, o.forks))}, rows}
	o.chain = append(o.chain, l)
	for i := range o.queues {
		o.queues[i] = append(o.queues[i], move{block: &l})
	}
}

func (o *orchestra) reorg(depth int) {
	o.chain = o.chain[:len(o.chain)-depth]
	o.forks++
	back := o.tip()
	for i := range o.queues {
		o.queues[i] = append(o.queues[i], move{back: &back})
	}
}

// play lets a partition do some of what waits, blocks up to a reorg in one step.
func (o *orchestra) play(t fataler, part, most int) {
	t.Helper()
	p, queue := o.parts[part], o.queues[part]
	if len(queue) == 0 {
		return
	}
	if back := queue[0].back; back != nil {
		o.queues[part] = queue[1:]
		if p.Offset().Tip.Number > back.Number || p.Offset().Tip.Hash != back.Hash {
			must(t, o.books[part].Undo(back.Number))
			must(t, p.Undo(background, pg.Rewind{Next: p.Offset().Next + 1, Ancestor: *back}))
		}
		return
	}
	book, blocks := o.books[part], []pg.AppliedBlock(nil)
	for len(queue) > 0 && queue[0].block != nil && len(blocks) < most {
		l := queue[0].block
		queue = queue[1:]
		must(t, book.Begin(l.ref.Number))
		block := pg.AppliedBlock{BlockRef: l.ref}
		before := map[perp.RowKey]perp.Row{}
		for _, r := range l.rows {
			if !o.owns(part, r) {
				continue
			}
			if _, again := before[r.RowKey()]; !again {
				before[r.RowKey()] = book.Get(r.RowKey())
			}
			book.Put(r)
		}
		for k, old := range before {
			block.Changes = append(block.Changes, pg.Change{Before: old, After: book.Get(k)})
		}
		blocks = append(blocks, block)
	}
	o.queues[part] = queue
	must(t, p.Commit(background, pg.Commit{Next: p.Offset().Next + int64(len(blocks)), Blocks: blocks}))
}

// The twin: a fold of the canonical branch up to a block, as a reader of some partitions holds it.
func (o *orchestra) fold(mine []int, at uint64) map[perp.RowKey]perp.Row {
	held := map[perp.RowKey]perp.Row{}
	for _, l := range o.chain {
		if l.ref.Number > at {
			break
		}
		for _, r := range l.rows {
			held[r.RowKey()] = r
		}
	}
	for k, r := range held {
		if !o.follows(mine, r) {
			delete(held, k)
		}
	}
	return held
}

// follows reports whether a reader holds a row: those of its partitions that are open, and everybody's markets,
// measures, parameters and sources.
func (o *orchestra) follows(mine []int, r perp.Row) bool {
	open := false
	switch r := r.(type) {
	case perp.Position:
		open = r.Status == perp.Active
	case perp.Order:
		open = r.Status == perp.Created || r.Status == perp.Frozen
	case perp.Request:
		open = r.Status == perp.Created
	case perp.Market, perp.MarketValue, perp.Parameter, perp.OracleSource:
		return true
	}
	for _, p := range mine {
		if open && o.owns(p, r) {
			return true
		}
	}
	return false
}

// lowest is the highest block of the canonical branch that no partition still has to come to. A partition that has yet
// to leave another branch stands, as far as this branch goes, at the block where it will leave it.
func (o *orchestra) lowest() (number uint64) {
	number = ^uint64(0)
	for i, p := range o.parts {
		at := p.Offset().Tip.Number
		for _, m := range o.queues[i] {
			if m.back != nil {
				at = min(at, m.back.Number)
			}
		}
		number = min(number, at)
	}
	return number
}

// Whatever the pace of the partitions, and wherever a reorg is on its way through them, what a reader sees is the fold
// of all of them up to their highest common block: at its first look, and by what changed since the one before.
func TestViewsAreTheFoldAtTheLowestCommonBlock(t *testing.T) {
	pgtest.Cases(t, 25)
	db := pgtest.DB(t)
	generation, views, apart := 1, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		generation++
		must(rt, db.CreateGeneration(background, generation))
		n := rapid.IntRange(2, 4).Draw(rt, "partitions")
		o := &orchestra{queues: make([][]move, n)}
		for i := range n {
			p, err := db.Claim(background, pg.ClaimRequest{Generation: generation, Partition: i, Partitions: n})
			must(rt, err)
			o.parts, o.books = append(o.parts, p), append(o.books, perp.NewBook())
		}
		must(rt, db.Switch(background, generation, "a test"))
		followers := []*follower{{mine: []int{0, 1}}, {mine: []int{1}}, {}}
		look := func(f *follower) {
			progress, err := db.Progress(background)
			must(rt, err)
			c := f.look(rt, db)
			if !c.HasView() {
				return
			}
			views++
			if !progress.Level() {
				apart++
			}
			if least := o.lowest(); c.Watermark.Number < least {
				rt.Fatalf("the view is of block %d, all partitions have come to %d", c.Watermark.Number, least)
			}
			want := o.foldOf(f.mine, c.Watermark)
			if want == nil {
				return // of a branch that was left since
			}
			if !reflect.DeepEqual(f.rows, want) {
				rt.Fatalf("at block %d, partitions %v: %s", c.Watermark.Number, f.mine, difference(f.rows, want))
			}
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			switch what := rapid.IntRange(0, 9).Draw(rt, "what"); {
			case what < 3:
				o.extend(arbitraryLiving(rt))
			case what == 3 && len(o.chain) > 0:
				o.reorg(rapid.IntRange(1, min(len(o.chain), 4)).Draw(rt, "depth"))
			case what < 8:
				o.play(rt, rapid.IntRange(0, n-1).Draw(rt, "partition"), rapid.IntRange(1, 4).Draw(rt, "most"))
			default:
				look(followers[rapid.IntRange(0, 2).Draw(rt, "follower")])
			}
		}
		for i := range o.parts {
			for len(o.queues[i]) > 0 {
				o.play(rt, i, 3)
				look(followers[0])
			}
		}
		for _, f := range followers {
			look(f)
		}
	})
	if apart == 0 || views == apart {
		t.Errorf("of %d views %d were taken while partitions stood apart", views, apart)
	}
}

// foldOf is the fold up to a block of the canonical branch; nil for a block of another one.
func (o *orchestra) foldOf(mine []int, at chain.BlockRef) map[perp.RowKey]perp.Row {
	if at.Number == ground.Number {
		return map[perp.RowKey]perp.Row{}
	}
	for _, l := range o.chain {
		if l.ref.Hash == at.Hash {
			return o.fold(mine, at.Number)
		}
	}
	return nil
}

func difference(got, want map[perp.RowKey]perp.Row) (text string) {
	for k, r := range want {
		if !reflect.DeepEqual(got[k], r) {
			text += fmt.Sprintf("\n%s %s is %+v, want %+v", k.Table, k.Key, got[k], r)
		}
	}
	for k, r := range got {
		if want[k] == nil {
			text += fmt.Sprintf("\n%s %s is %+v, want none", k.Table, k.Key, r)
		}
	}
	return text
}
