package pg_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

var background = context.Background()

// PIPE-3, PIPE-8: whatever is applied and taken back, in steps of whatever size, the rows are those of a fold in
// memory, to the letter; and what the partition reads before it applies is what the fold has.
func TestRowsFollowTheFoldOverCommitsAndUndos(t *testing.T) {
	pgtest.Cases(t, 25)
	db := pgtest.DB(t)
	generation := 1
	rapid.Check(t, func(rt *rapid.T) {
		h := newHistory()
		generation++
		h.generation = generation
		must(rt, db.CreateGeneration(background, generation))
		p, err := db.Claim(background, pg.ClaimRequest{Generation: generation, Partitions: 1})
		must(rt, err)
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			if n := len(h.blocks); n > 0 && rapid.IntRange(0, 2).Draw(rt, "undo") == 0 {
				must(rt, p.Undo(background, h.rewind(rt, rapid.IntRange(0, n).Draw(rt, "depth"))))
			} else {
				var blocks []pg.AppliedBlock
				for range rapid.IntRange(1, 4).Draw(rt, "blocks") {
					blocks = append(blocks, h.extend(rt, arbitraryRows(rt)...))
				}
				must(rt, p.Commit(background, h.step(blocks...)))
			}
			h.agree(rt, db)
			compareRows(rt, p, h)
		}
		kept, err := p.Kept(background)
		must(rt, err)
		if want := append([]chain.BlockRef{ground}, h.blocks...); !reflect.DeepEqual(kept, want) {
			rt.Fatalf("kept blocks %v, want %v", kept, want)
		}
	})
}

func compareRows(t *rapid.T, p *pg.Partition, h *history) {
	var all []perp.Row
	for _, table := range perp.Tables() {
		all = append(all, h.book.Rows(table)...)
	}
	keys := append(keysOf(all), perp.RowKey{Table: perp.Orders, Key: number(77)})
	for _, gone := range h.touched {
		if h.book.Get(gone) == nil {
			keys = append(keys, gone)
		}
	}
	got, err := p.Rows(background, keys)
	must(t, err)
	if len(got) != len(all) {
		t.Fatalf("read %d rows of %d", len(got), len(all))
	}
	for _, want := range all {
		if !reflect.DeepEqual(got[want.RowKey()], want) {
			t.Fatalf("read %#v, want %#v", got[want.RowKey()], want)
		}
	}
}

func must(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// PIPE-3: a former owner, however long it was paused, writes nothing.
func TestZombieWritesNothing(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	zombie, h := claim(t, db, 0, 1), newHistory()
	must(t, zombie.Commit(t.Context(), h.step(h.extend(t, order(1, perp.Created)))))
	owner := claim(t, db, 0, 1)
	must(t, owner.Refresh(t.Context()))
	if owner.Offset() != zombie.Offset() {
		t.Fatalf("the new owner begins at %+v, the old one ended at %+v", owner.Offset(), zombie.Offset())
	}
	before := dump(t, url)

	other := newHistory()
	other.blocks, other.next = h.blocks, h.next
	for name, err := range map[string]error{
		"commit": zombie.Commit(t.Context(),
			pg.Commit{Next: 7, Blocks: []pg.AppliedBlock{follow(h.tip(), order(2, perp.Created))}}),
		"offset":  zombie.Commit(t.Context(), pg.Commit{Next: 7}),
		"undo":    zombie.Undo(t.Context(), pg.Rewind{Next: 7, Ancestor: h.tip()}),
		"refresh": zombie.Refresh(t.Context()),
	} {
		if !pg.NotOwner(err) {
			t.Errorf("%s of a zombie: %v", name, err)
		}
	}
	if after := dump(t, url); after != before {
		t.Errorf("the zombie wrote:\n%s\nwas\n%s", after, before)
	}
	must(t, owner.Commit(t.Context(), h.step(h.extend(t, order(2, perp.Created)))))
	h.agree(t, db)
}

// PIPE-3: an owner that is paused in the middle of a step, at whatever moment, cannot write after another process has
// claimed the partition and moved on: either its step is over before the claim, or it never takes effect.
func TestOwnerPausedInsideAStep(t *testing.T) {
	for at, paused := 1, true; paused; at++ {
		url := pgtest.URL(t)
		proxy := pgtest.NewProxy(t, url)
		cfg := configFor(proxy.URL())
		cfg.IdleInTransactionTimeout = 100 * time.Millisecond
		zombie, h := claim(t, openConfig(t, cfg), 0, 1), newHistory()
		must(t, zombie.Commit(t.Context(), h.step(h.extend(t, order(1, perp.Created)))))

		held, resume := proxy.Hold(at)
		ended := make(chan error, 1)
		go func() {
			ended <- zombie.Commit(background,
				pg.Commit{Next: h.next + 1, Finalized: chain.BlockRef{Number: 77, Hash: number(77)}})
		}()
		select {
		case <-held:
		case err := <-ended:
			must(t, err)
			paused = false
		}
		db := open(t, url)
		owner := claim(t, db, 0, 1)
		h.next = owner.Offset().Next
		must(t, owner.Commit(t.Context(), h.step(h.extend(t, order(2, perp.Created)))))
		before := dump(t, url)
		resume()
		if paused {
			if err := <-ended; err == nil {
				t.Errorf("paused at request %d, the former owner believes to have written", at)
			}
		} else if at < 4 {
			t.Errorf("a step has only %d requests", at-1)
		}
		if after := dump(t, url); after != before {
			t.Errorf("paused at request %d, the former owner wrote\n%s\nwas\n%s", at, after, before)
		}
		h.agree(t, db)
	}
}

// follow makes a block on a parent that creates rows.
func follow(parent chain.BlockRef, rows ...perp.Row) pg.AppliedBlock {
	ref := chain.BlockRef{Number: parent.Number + 1, Hash: chain.Keccak256(parent.Hash[:]), Parent: parent.Hash}
	b := pg.AppliedBlock{BlockRef: ref}
	for _, r := range rows {
		b.Changes = append(b.Changes, pg.Change{After: r})
	}
	return b
}

// dump is every row of the stream's own tables and of the orders, as text.
func dump(t *testing.T, url string) string {
	t.Helper()
	var text strings.Builder
	for _, table := range []string{"stream_offset", "kept_block", "undo", "perp_order"} {
		fmt.Fprintln(&text, table, query[string](t, url, "SELECT coalesce(string_agg(x::text, E'\n' ORDER BY "+
			"x::text), '') FROM state_g1."+table+" x"))
	}
	return text.String()
}

// PIPE-3: a COMMIT whose reply was lost is looked up: it counts once, whatever became of it.
func TestLostCommitIsLookedUp(t *testing.T) {
	for _, test := range []struct {
		name  string
		fault pgtest.Fault
		lands bool
	}{
		{"the reply is lost", pgtest.LoseReply, true},
		{"the commit is lost", pgtest.LoseCommit, false},
		{"the network swallows the commit", pgtest.Stall, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			url := pgtest.URL(t)
			proxy := pgtest.NewProxy(t, url)
			cfg := configFor(proxy.URL())
			cfg.IdleInTransactionTimeout = 300 * time.Millisecond
			db := openConfig(t, cfg)
			p, h := claim(t, db, 0, 1), newHistory()
			must(t, p.Commit(t.Context(), h.step(h.extend(t, order(1, perp.Created)))))

			block := h.extend(t, order(1, perp.Executed), order(2, perp.Created))
			step := h.step(block)
			before := p.Offset()
			proxy.Next(test.fault)
			err := p.Commit(t.Context(), step)
			if proxy.Hits() != 1 {
				t.Fatalf("%d faults happened", proxy.Hits())
			}
			if test.lands && err != nil || !test.lands && (err == nil || pg.NotOwner(err)) {
				t.Fatalf("Commit says %v", err)
			}
			if !test.lands {
				if p.Offset() != before {
					t.Fatalf("the partition believes to stand at %+v", p.Offset())
				}
				must(t, p.Commit(t.Context(), step))
			}
			h.agree(t, open(t, url))
			must(t, p.Commit(t.Context(), h.step(h.extend(t, order(2, perp.Cancelled)))))
			h.agree(t, open(t, url))
		})
	}
}

// When not even the look-up gets through, the error says so, and a refresh tells later.
func TestUnknownOutcomeIsSaid(t *testing.T) {
	url := pgtest.URL(t)
	proxy := pgtest.NewProxy(t, url)
	db := open(t, proxy.URL())
	p, h := claim(t, db, 0, 1), newHistory()
	step := h.step(h.extend(t, order(1, perp.Created)))
	proxy.Next(pgtest.Vanish)
	err := p.Commit(t.Context(), step)
	if err == nil || !strings.Contains(err.Error(), "unknown") || pg.NotOwner(err) {
		t.Fatalf("Commit says %v", err)
	}
	proxy.Refuse(false)
	if err := p.Commit(t.Context(), step); err == nil || !strings.Contains(err.Error(), "refresh") {
		t.Fatalf("the same step again, blindly: %v", err)
	}
	must(t, p.Refresh(t.Context()))
	if p.Offset().Next != step.Next {
		t.Errorf("the partition stands at %d, want %d", p.Offset().Next, step.Next)
	}
	h.agree(t, open(t, url))
}

// A step that fails half-way leaves nothing: here its second table refuses.
func TestFailedStepLeavesNothing(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	first, second := claim(t, db, 0, 2), claim(t, db, 1, 2)
	h := newHistory()
	must(t, first.Commit(t.Context(), h.step(h.extend(t, order(1, perp.Created)))))
	execute(t, url, "ALTER TABLE state_g1.perp_order ADD CONSTRAINT never CHECK (status <> 'Frozen')")
	before := dump(t, url)
	refused := follow(chain.BlockRef{}, perp.Position{PositionKey: number(5)}, order(2, perp.Frozen))
	err := second.Commit(t.Context(), pg.Commit{Next: 1, Blocks: []pg.AppliedBlock{refused}})
	if err == nil || !strings.Contains(err.Error(), "never") {
		t.Fatalf("got %v", err)
	}
	if after := dump(t, url); after != before {
		t.Errorf("left behind:\n%s\nwas\n%s", after, before)
	}
	if n := query[int](t, url, "SELECT count(*) FROM state_g1.position"); n != 0 {
		t.Errorf("%d positions left behind", n)
	}
	must(t, second.Commit(t.Context(),
		pg.Commit{Next: 1, Blocks: []pg.AppliedBlock{follow(chain.BlockRef{}, perp.Position{PositionKey: number(5)})}}))
}

// After a reorg the exchange gives a key to somebody else's order. Its partition may apply the new branch before the
// old one has taken its row back: neither waits for the other, nor touches its row, and in the end only the new order
// is there (PIPE-2).
func TestKeyOfALostBranchIsGivenAgain(t *testing.T) {
	for name, newBranchFirst := range map[string]bool{"the new branch first": true, "the old branch first": false} {
		t.Run(name, func(t *testing.T) {
			db := pgtest.DB(t)
			old, fresh := claim(t, db, 0, 2), claim(t, db, 1, 2)
			h := newHistory()
			first := h.extend(t)
			must(t, old.Commit(t.Context(), h.step(first)))
			must(t, fresh.Commit(t.Context(), pg.Commit{Next: 1, Blocks: []pg.AppliedBlock{first}}))
			ancestor := h.tip()
			lost := order(1, perp.Created)
			lost.Account = chain.Address{1}
			must(t, old.Commit(t.Context(), h.step(h.extend(t, lost))))
			given := order(1, perp.Created)
			given.Account = chain.Address{2}

			undone := func() {
				must(t, old.Undo(t.Context(), pg.Rewind{Next: old.Offset().Next + 1, Ancestor: ancestor}))
			}
			if !newBranchFirst {
				undone()
			}
			must(t, fresh.Commit(t.Context(), pg.Commit{Next: 2, Blocks: []pg.AppliedBlock{follow(ancestor, given)}}))
			if newBranchFirst {
				undone()
			}
			found, err := db.Order(t.Context(), given.Key)
			must(t, err)
			if !found.Known || found.Row.Account != given.Account {
				t.Errorf("found %+v, want the order of %s", found.Row, given.Account)
			}
			mine, err := old.Rows(t.Context(), []perp.RowKey{given.RowKey()})
			must(t, err)
			if len(mine) != 0 {
				t.Errorf("the old partition still has %v", mine)
			}
		})
	}
}

func TestStepsMustFollowEachOther(t *testing.T) {
	db := pgtest.DB(t)
	p, h := claim(t, db, 0, 1), newHistory()
	must(t, p.Commit(t.Context(), h.step(h.extend(t))))
	stranger := pg.AppliedBlock{BlockRef: chain.BlockRef{Number: h.tip().Number + 1, Parent: number(4),
		Hash: number(5)}}
	err := p.Commit(t.Context(), pg.Commit{Next: 9, Blocks: []pg.AppliedBlock{stranger}})
	if !pg.Refused(err) || !strings.Contains(err.Error(), "does not follow") {
		t.Errorf("a stranger: %v", err)
	}
	if err := p.Commit(t.Context(), pg.Commit{Next: 0}); !pg.Refused(err) || !strings.Contains(err.Error(), "back") {
		t.Errorf("an offset that goes back: %v", err)
	}
	if err := p.Undo(t.Context(),
		pg.Rewind{Next: 2, Ancestor: chain.BlockRef{Number: h.tip().Number, Hash: number(6)}}); !pg.Refused(err) ||
		pg.TooDeep(err) {
		t.Errorf("going back to a stranger: %v", err)
	}
}

// The journal is pruned as it goes; what is older than the horizon cannot be undone, and the error says so.
func TestUndoHorizon(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	p, h := claim(t, db, 0, 1), newHistory()
	for range 2 {
		var blocks []pg.AppliedBlock
		for i := range uint64(chain.UndoHorizon) {
			blocks = append(blocks, h.extend(t, order(i%7, perp.Created)))
		}
		must(t, p.Commit(t.Context(), h.step(blocks...)))
	}
	must(t, p.Commit(t.Context(), h.step(h.extend(t, order(3, perp.Executed)))))
	h.agree(t, db)
	if n := query[int](t, url, "SELECT count(*) FROM state_g1.undo"); n != chain.UndoHorizon {
		t.Errorf("%d undo rows, want %d", n, chain.UndoHorizon)
	}
	err := p.Undo(t.Context(), pg.Rewind{Next: 9999, Ancestor: h.blocks[len(h.blocks)-chain.UndoHorizon-2]})
	if !pg.TooDeep(err) {
		t.Errorf("past the horizon: %v", err)
	}
	must(t, p.Undo(t.Context(), h.rewind(t, chain.UndoHorizon)))
	h.agree(t, db)
}

func TestClaimChecksTheGeneration(t *testing.T) {
	db := pgtest.DB(t)
	claim(t, db, 0, 4)
	for _, r := range []pg.ClaimRequest{{Generation: 1, Partition: 1, Partitions: 8},
		{Generation: 2, Partition: 1, Partitions: 4}} {
		if _, err := db.Claim(t.Context(), r); err == nil || !strings.Contains(err.Error(), "generation") {
			t.Errorf("%+v: %v", r, err)
		}
	}
	must(t, db.CreateGeneration(t.Context(), 2))
	if _, err := db.Claim(t.Context(), pg.ClaimRequest{Generation: 2, Partition: 1, Partitions: 8}); err != nil {
		t.Errorf("a new generation may have another number of partitions: %v", err)
	}
}

// A partition that somebody has added to the topic is nobody's: its offset row would keep the state from ever being
// level again (PIPE-7).
func TestNoClaimBeyondTheLastPartition(t *testing.T) {
	db := pgtest.DB(t)
	for i := range 2 {
		p, err := db.Claim(t.Context(), pg.ClaimRequest{Generation: 1, Partition: i, Partitions: 2})
		must(t, err)
		must(t, p.Commit(t.Context(), pg.Commit{Next: 10, Blocks: []pg.AppliedBlock{follow(ground)}}))
	}
	for _, none := range []int{-1, 2} {
		if _, err := db.Claim(t.Context(),
			pg.ClaimRequest{Generation: 1, Partition: none, Partitions: 2}); !errors.Is(err, pg.ErrSchema) {
			t.Errorf("partition %d of 2: %v", none, err)
		}
	}
	if s, err := db.Progress(t.Context()); err != nil || !s.Level() {
		t.Errorf("level: %t, %v", s.Level(), err)
	}
}

// Rows that an undo removed stay as tombstones with a higher revision, and are forgotten after ten minutes together
// with a raised floor.
func TestTombstones(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	p, h := claim(t, db, 0, 1), newHistory()
	must(t, p.Commit(t.Context(), h.step(h.extend(t, order(1, perp.Created)))))
	must(t, p.Commit(t.Context(), h.step(h.extend(t, order(2, perp.Created)))))
	must(t, p.Undo(t.Context(), h.rewind(t, 1)))
	rev := query[int](t, url, "SELECT rev FROM state_g1.perp_order WHERE deleted_at IS NOT NULL")
	if rev != int(p.Offset().Rev) {
		t.Errorf("the tombstone has rev %d, the partition %d", rev, p.Offset().Rev)
	}
	execute(t, url, "UPDATE state_g1.perp_order SET deleted_at = deleted_at - interval '11 minutes'")
	for range 256 {
		must(t, p.Commit(t.Context(), h.step(h.extend(t))))
	}
	if n := query[int](t, url, "SELECT count(*) FROM state_g1.perp_order WHERE deleted_at IS NOT NULL"); n != 0 {
		t.Errorf("%d old tombstones", n)
	}
	if floor := query[int](t, url, "SELECT rev_floor FROM state_g1.stream_offset"); floor != rev {
		t.Errorf("rev_floor is %d, want that of the tombstone, %d", floor, rev)
	}
	h.agree(t, db)
}

// A range keeps no journal and ends that of everything before it; it is final, and what stands on it can be taken back.
func TestRangeLeavesNothingToGoBackTo(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	p, h := claim(t, db, 0, 1), newHistory()
	must(t, p.Commit(t.Context(), h.step(h.extend(t, order(1, perp.Created)), h.extend(t, order(2, perp.Created)))))
	before := h.tip()
	h.extend(t)
	ranged := h.extend(t, order(1, perp.Executed), order(3, perp.Created))
	ranged.Before = before
	on := h.extend(t, order(2, perp.Cancelled))
	stranger := ranged
	stranger.Before.Hash[0]++
	if err := p.Commit(t.Context(), pg.Commit{Next: 9, Blocks: []pg.AppliedBlock{stranger}}); !pg.Refused(err) {
		t.Errorf("a range on a stranger: %v", err)
	}
	must(t, p.Commit(t.Context(), h.step(ranged, on)))
	h.agree(t, db)
	kept, err := p.Kept(t.Context())
	must(t, err)
	if want := []chain.BlockRef{ranged.BlockRef, on.BlockRef}; !reflect.DeepEqual(kept, want) {
		t.Errorf("kept %v, want %v", kept, want)
	}
	if n := query[int](t, url, "SELECT count(*) FROM state_g1.undo"); n != 1 {
		t.Errorf("%d undo rows, want 1", n)
	}
	if p.Offset().Finalized != ranged.BlockRef {
		t.Errorf("finalized: %+v", p.Offset().Finalized)
	}
	if err := p.Undo(t.Context(), pg.Rewind{Next: 99, Ancestor: before}); !pg.TooDeep(err) {
		t.Errorf("into the range: %v", err)
	}
	must(t, p.Undo(t.Context(), h.rewind(t, 1)))
	h.agree(t, db)
}

// What halts the state stays, over whatever is committed and undone, until an accepted undo lifts it and takes the
// finalized block along.
func TestHaltIsLiftedByAnAcceptedUndo(t *testing.T) {
	db := pgtest.DB(t)
	p, h := claim(t, db, 0, 1), newHistory()
	blocks := []pg.AppliedBlock{h.extend(t), h.extend(t, order(1, perp.Created)), h.extend(t, order(1, perp.Frozen))}
	must(t, p.Commit(t.Context(), h.step(blocks...)))
	must(t, p.Commit(t.Context(), pg.Commit{Next: 5, Finalized: h.tip(), Halted: "it is gone"}))
	h.next = 5
	must(t, p.Undo(t.Context(), h.rewind(t, 1)))
	p = claim(t, db, 0, 1)
	if at := p.Offset(); at.Halted != "it is gone" || at.Finalized != blocks[2].BlockRef {
		t.Errorf("after an undo that nobody accepted: %+v", at)
	}
	back := h.rewind(t, 1)
	back.Accepted = true
	must(t, p.Undo(t.Context(), back))
	if at := p.Offset(); at.Halted != "" || at.Finalized != blocks[0].BlockRef {
		t.Errorf("after an accepted one: %+v", at)
	}
	h.agree(t, db)
}
