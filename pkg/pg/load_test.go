package pg_test

import (
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// joiner is a follower of partition 0 that loads partition 1 beside, follows it from some later moment on, and lets it
// go again.
type joiner struct {
	follower
	beside map[perp.RowKey]perp.Row
	from   pg.Seen
}

// belongs reports whether a row is in the charge of partition 1 of a duet alone.
func belongs(k perp.RowKey) bool {
	return (k.Table == perp.Positions || k.Table == perp.Orders || k.Table == perp.Requests) &&
		int(k.Key[31]+k.Key[11])%2 == 1
}

func (j *joiner) load(t fataler, db *pg.DB) {
	t.Helper()
	j.beside = map[perp.RowKey]perp.Row{}
	c, err := db.Load(background, []int{1}, func(part int, r perp.Row) error {
		if k := r.RowKey(); belongs(k) {
			if part != 1 {
				t.Fatal("a row comes with the wrong partition")
			}
			j.beside[k] = r
		}
		return nil
	})
	must(t, err)
	j.from = c.Seen
}

func (j *joiner) join() {
	if j.from.Revs == nil || j.seen.Revs == nil || j.from.Generation != j.seen.Generation {
		return
	}
	maps.Copy(j.rows, j.beside)
	j.mine, j.seen, j.from = []int{0, 1}, j.seen.With(j.from), pg.Seen{}
}

func (j *joiner) leave() {
	for k := range j.rows {
		if belongs(k) {
			delete(j.rows, k)
		}
	}
	j.mine = []int{0}
	j.seen = j.seen.Only(j.mine)
}

// A partition that was loaded beside, however long ago, and one that is let go leave a reader with what a snapshot of
// its partitions holds, without that it loads any other anew.
func TestPartitionsJoinAndLeave(t *testing.T) {
	pgtest.Cases(t, 25)
	db := pgtest.DB(t)
	generation := 1
	rapid.Check(t, func(rt *rapid.T) {
		d := &duet{books: [2]*perp.Book{perp.NewBook(), perp.NewBook()}}
		generation++
		must(rt, db.CreateGeneration(background, generation))
		for i := range d.parts {
			p, err := db.Claim(background, pg.ClaimRequest{Generation: generation, Partition: i, Partitions: 2})
			must(rt, err)
			d.parts[i] = p
		}
		must(rt, db.Switch(background, generation, "a test"))
		d.extend(rt, arbitraryLiving(rt))
		j := &joiner{follower: follower{mine: []int{0}}}
		j.look(rt, db)
		for range rapid.IntRange(1, 25).Draw(rt, "steps") {
			switch rapid.IntRange(0, 8).Draw(rt, "what") {
			case 0, 1, 2:
				d.extend(rt, arbitraryLiving(rt))
			case 3:
				if len(d.blocks) > 1 {
					d.undo(rt, rapid.IntRange(1, len(d.blocks)-1).Draw(rt, "depth"))
				}
			case 4:
				j.load(rt, db)
			case 5, 6:
				j.join()
			case 7:
				j.leave()
			}
			if c := j.look(rt, db); c.Reload {
				rt.Fatal("everything comes anew")
			}
			j.same(rt, db)
		}
	})
}

// A load is under no limit of a statement, and ends when the reader has had enough.
func TestLoadTakesItsTime(t *testing.T) {
	cfg := pgtest.Config(t)
	cfg.StatementTimeout = 300 * time.Millisecond
	db, err := pg.Open(t.Context(), cfg, "test")
	must(t, err)
	t.Cleanup(db.Close)
	p, h := claim(t, db, 0, 1), newHistory()
	must(t, p.Commit(t.Context(), h.step(h.extend(t, order(1, perp.Created)))))
	execute(t, cfg.URL.Reveal(), `ALTER TABLE state_g1.perp_order RENAME TO slow_order`)
	//nolint:unqueryvet // The view is to have every column.
	execute(t, cfg.URL.Reveal(), `CREATE VIEW state_g1.perp_order AS
		SELECT o.* FROM state_g1.slow_order o, LATERAL pg_sleep(0.6)`)
	count := 0
	_, err = db.Load(t.Context(), []int{0}, func(int, perp.Row) error { count++; return nil })
	if err != nil || count != 1 {
		t.Errorf("%d rows, %v", count, err)
	}
	enough := errors.New("enough")
	if _, err := db.Load(t.Context(), []int{0}, func(int, perp.Row) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("the reader's own error: %v", err)
	}
}

// The positions of a side come by what they have gained: not those of partitions that are left out, of the other side,
// or that are closed.
func TestMostProfitable(t *testing.T) {
	db := pgtest.DB(t)
	market := chain.Address{7}
	open := func(id byte, isLong bool, size, tokens uint64) perp.Position {
		return perp.Position{PositionKey: chain.Hash{id}, Market: market, IsLong: isLong, Status: perp.Active,
			SizeInUsd: chain.U64(size), SizeInTokens: chain.U64(tokens)}
	}
	closed := open(5, true, 1, 99)
	closed.Status = perp.Closed
	foreign := open(6, true, 1, 99)
	foreign.Market = chain.Address{8}
	first := follow(chain.BlockRef{Number: 10}, open(1, true, 100, 10), open(2, true, 100, 30), open(3, false, 100, 30),
		open(4, false, 100, 5), closed, foreign)
	second := follow(chain.BlockRef{Number: 10}, open(9, true, 1, 99))
	commit(t, claim(t, db, 0, 2), first)
	commit(t, claim(t, db, 1, 2), second)
	for _, c := range []struct {
		isLong bool
		except []int
		most   int
		want   []byte
	}{
		{true, []int{1}, 9, []byte{2, 1}},
		{true, nil, 2, []byte{9, 2}},
		{false, nil, 9, []byte{4, 3}},
		{true, []int{0, 1}, 9, nil},
	} {
		found, err := db.MostProfitable(t.Context(), pg.Gainers{Market: market, IsLong: c.isLong, Price: chain.U64(10),
			Except: c.except, Most: c.most})
		must(t, err)
		var got []byte
		for _, p := range found {
			got = append(got, p.PositionKey[0])
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
