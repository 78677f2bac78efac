package pg_test

import (
	"encoding/binary"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// follower holds what it was told of.
type follower struct {
	mine []int
	seen pg.Seen
	rows map[perp.RowKey]perp.Row
}

// look takes in what changed.
func (f *follower) look(t fataler, db *pg.DB) pg.Changes {
	t.Helper()
	c, err := db.Changes(background, f.mine, f.seen)
	must(t, err)
	if c.Reload {
		f.rows = map[perp.RowKey]perp.Row{}
		c, err = db.Load(background, f.mine, func(_ int, r perp.Row) error {
			f.rows[r.RowKey()] = r
			return nil
		})
		must(t, err)
	}
	take(f, perp.Positions, c.Positions)
	take(f, perp.Orders, c.Orders)
	take(f, perp.Requests, c.Requests)
	take(f, perp.Markets, c.Markets)
	take(f, perp.MarketValues, c.Values)
	take(f, perp.Parameters, c.Parameters)
	take(f, perp.OracleSources, c.OracleSources)
	f.seen = c.Seen
	return c
}

func take[R perp.Row](f *follower, table perp.Table, d pg.Delta[R]) {
	for _, r := range d.Changed {
		f.rows[r.RowKey()] = r
	}
	for _, k := range d.Removed {
		delete(f.rows, perp.RowKey{Table: table, Key: k})
	}
}

// same compares what a follower holds with a full snapshot.
func (f *follower) same(t fataler, db *pg.DB) {
	t.Helper()
	fresh := &follower{mine: f.mine}
	if c := fresh.look(t, db); !c.HasView() {
		return // nobody is told anything
	}
	if !reflect.DeepEqual(f.rows, fresh.rows) {
		t.Fatalf("partitions %v: the follower holds %d rows, a snapshot has %d, or they differ", f.mine, len(f.rows),
			len(fresh.rows))
	}
}

// duet is two partitions over one chain.
type duet struct {
	parts  [2]*pg.Partition
	books  [2]*perp.Book
	blocks []chain.BlockRef
	forks  uint64
}

func (d *duet) tip() chain.BlockRef {
	if len(d.blocks) == 0 {
		return ground
	}
	return d.blocks[len(d.blocks)-1]
}

// extend applies a block whose rows go where their key points, and parameters everywhere.
func (d *duet) extend(t fataler, rows []perp.Row) {
	tip := d.tip()
	ref := chain.BlockRef{Number: tip.Number + 1, Parent: tip.Hash,
		Hash: chain.Keccak256(tip.Hash[:], binary.BigEndian.AppendUint64(nil, d.forks))}
	d.blocks = append(d.blocks, ref)
	for i, p := range d.parts {
		must(t, d.books[i].Begin(ref.Number))
		block, before := pg.AppliedBlock{BlockRef: ref}, map[perp.RowKey]perp.Row{}
		for _, r := range rows {
			k := r.RowKey()
			if int(k.Key[31]+k.Key[11])%2 != i && !k.Table.Replicated() {
				continue
			}
			if _, again := before[k]; !again {
				before[k] = d.books[i].Get(k)
			}
			d.books[i].Put(r)
		}
		for k, old := range before {
			block.Changes = append(block.Changes, pg.Change{Before: old, After: d.books[i].Get(k)})
		}
		must(t, p.Commit(background, pg.Commit{Next: p.Offset().Next + 1, Blocks: []pg.AppliedBlock{block}}))
	}
}

func (d *duet) undo(t fataler, depth int) {
	d.blocks = d.blocks[:len(d.blocks)-depth]
	d.forks++
	for i, p := range d.parts {
		must(t, d.books[i].Undo(d.tip().Number))
		must(t, p.Undo(background, pg.Rewind{Next: p.Offset().Next + 1, Ancestor: d.tip()}))
	}
}

// Whoever follows by revisions, however seldom it looks, holds what a full snapshot holds, over commits, undos and
// switches of generation.
func TestChangesLeadToTheSnapshot(t *testing.T) {
	pgtest.Cases(t, 25)
	db := pgtest.DB(t)
	generation := 1
	rapid.Check(t, func(rt *rapid.T) {
		d := &duet{}
		begin := func() {
			generation++
			*d = duet{books: [2]*perp.Book{perp.NewBook(), perp.NewBook()}}
			must(rt, db.CreateGeneration(background, generation))
			for i := range d.parts {
				p, err := db.Claim(background, pg.ClaimRequest{Generation: generation, Partition: i, Partitions: 2})
				must(rt, err)
				d.parts[i] = p
			}
			must(rt, db.Switch(background, generation, "a test"))
		}
		begin()
		followers := []*follower{{mine: []int{0, 1}}, {mine: []int{1}}, {}}
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch what := rapid.IntRange(0, 9).Draw(rt, "what"); {
			case what < 4:
				d.extend(rt, arbitraryLiving(rt))
			case what < 6 && len(d.blocks) > 0:
				d.undo(rt, rapid.IntRange(1, len(d.blocks)).Draw(rt, "depth"))
			case what == 6:
				begin()
			default:
				f := followers[rapid.IntRange(0, 2).Draw(rt, "follower")]
				f.look(rt, db)
				f.same(rt, db)
			}
		}
		for _, f := range followers {
			f.look(rt, db)
			f.same(rt, db)
		}
	})
}

// arbitraryLiving makes rows of which some are open and some are not.
func arbitraryLiving(t *rapid.T) []perp.Row {
	rows := arbitraryRows(t)
	for i, r := range rows {
		switch r := r.(type) {
		case perp.Position:
			r.Status = rapid.SampledFrom([]perp.PositionStatus{perp.Active, perp.Closed}).Draw(t, "status")
			rows[i] = r
		case perp.Order:
			r.Status = rapid.SampledFrom([]perp.Status{perp.Created, perp.Frozen, perp.Executed}).Draw(t, "status")
			rows[i] = r
		case perp.Request:
			r.Status = rapid.SampledFrom([]perp.Status{perp.Created, perp.Cancelled}).Draw(t, "status")
			rows[i] = r
		}
	}
	return rows
}

// A look without changes costs no rows, nor does one while the slowest partition has not moved; one at a halted state
// gives none and forgets nothing.
func TestChangesComeWithTheWatermark(t *testing.T) {
	db := pgtest.DB(t)
	d := &duet{books: [2]*perp.Book{perp.NewBook(), perp.NewBook()},
		parts: [2]*pg.Partition{claim(t, db, 0, 2), claim(t, db, 1, 2)}}
	f := &follower{mine: []int{0, 1}}
	if c := f.look(t, db); c.Reload || c.Seen.Revs != nil {
		t.Errorf("nothing applied: %+v", c)
	}
	d.extend(t, []perp.Row{order(1, perp.Created), order(2, perp.Created)})
	if c := f.look(t, db); !c.Reload || len(f.rows) != 2 {
		t.Errorf("the first look: %+v", c)
	}
	if c := f.look(t, db); c.Reload || len(c.Orders.Changed) != 0 {
		t.Errorf("nothing changed: %+v", c)
	}
	d.extend(t, []perp.Row{order(1, perp.Executed)})
	if c := f.look(t, db); c.Reload || len(c.Orders.Changed) != 0 || len(c.Orders.Removed) != 1 ||
		c.Orders.Removed[0] != number(1) {
		t.Errorf("an order ended: %+v", c.Orders)
	}
	seen := f.seen
	next := follow(d.tip(), order(2, perp.Frozen))
	commit(t, d.parts[0], next)
	if c := f.look(t, db); c.Level() || !c.Unchanged(seen) || len(c.Orders.Changed) != 0 {
		t.Errorf("skewed: %+v", c)
	}
	commit(t, d.parts[1], pg.AppliedBlock{BlockRef: next.BlockRef})
	if c := f.look(t, db); c.Reload || len(c.Orders.Changed) != 1 {
		t.Errorf("level again: %+v", c)
	}
	must(t, d.parts[1].Commit(t.Context(), pg.Commit{Next: 9, Halted: "block 7 is gone"}))
	if c := f.look(t, db); c.HasView() || c.Halted != "block 7 is gone" {
		t.Errorf("halted: %+v", c.Progress)
	}
}

// A reader that slept until removed rows were forgotten is told to begin anew.
func TestChangesReloadBehindTheFloor(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	p, h := claim(t, db, 0, 1), newHistory()
	must(t, p.Commit(t.Context(), h.step(h.extend(t, order(1, perp.Created)))))
	f := &follower{mine: []int{0}}
	f.look(t, db)
	must(t, p.Commit(t.Context(), h.step(h.extend(t, order(2, perp.Created)))))
	must(t, p.Undo(t.Context(), h.rewind(t, 1)))
	execute(t, url, "UPDATE state_g1.perp_order SET deleted_at = deleted_at - interval '11 minutes'")
	var blocks []pg.AppliedBlock
	for range 256 {
		blocks = append(blocks, h.extend(t))
	}
	must(t, p.Commit(t.Context(), h.step(blocks...)))
	if c := f.look(t, db); !c.Reload {
		t.Errorf("got %+v", c)
	}
	f.same(t, db)
}

// The database goes back under processes that go on: a standby was promoted that lacked the last commit, or a disk lost
// it. What is applied from there on comes in other transactions than before, and whoever had seen the lost one is told
// all of it, whoever applies it.
func TestChangesAfterTheDatabaseWentBack(t *testing.T) {
	for name, goesOn := range map[string]func(*testing.T, *pg.DB, *pg.Partition) *pg.Partition{
		"by the same owner": func(t *testing.T, _ *pg.DB, p *pg.Partition) *pg.Partition {
			reconnect(t, p)
			return p
		},
		"by another owner": func(t *testing.T, db *pg.DB, _ *pg.Partition) *pg.Partition { return claim(t, db, 0, 1) },
	} {
		t.Run(name, func(t *testing.T) {
			url := pgtest.URL(t)
			p, h := claim(t, open(t, url), 0, 1), newHistory()
			must(t, p.Commit(t.Context(), h.step(h.extend(t, order(1, perp.Created)))))
			restore := pgtest.Snapshot(t, url)
			reconnect(t, p)
			lost := h.extend(t, order(1, perp.Frozen))
			must(t, p.Commit(t.Context(), h.step(lost)))
			f := &follower{mine: []int{0}}
			f.look(t, open(t, url))

			restore()
			db := open(t, url)
			p = goesOn(t, db, p)
			must(t, p.Commit(t.Context(), h.step(lost, h.extend(t, order(2, perp.Created)))))
			f.look(t, db)
			f.same(t, db)
		})
	}
}

// reconnect has a partition look where it stands, over connections of which some may have been cut.
func reconnect(t *testing.T, p *pg.Partition) {
	t.Helper()
	err := p.Refresh(t.Context())
	for try := 0; err != nil && try < 10; try++ {
		err = p.Refresh(t.Context())
	}
	must(t, err)
}
