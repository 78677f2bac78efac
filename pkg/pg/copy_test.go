package pg_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// copied is a generation outside the database: by partition and table.
type copied map[int]map[string][]byte

func export(ctx context.Context, db *pg.DB) (copied, error) {
	all := copied{}
	err := db.Export(ctx, func(ctx context.Context, e *pg.Export) error {
		for _, o := range e.Offsets {
			all[o.Partition] = map[string][]byte{}
			for _, table := range pg.StateTables() {
				var rows bytes.Buffer
				if _, err := e.Copy(ctx, o.Partition, table, &rows); err != nil {
					return err
				}
				all[o.Partition][table] = rows.Bytes()
			}
		}
		return nil
	})
	return all, err
}

// into brings all rows, and fails after so many tables of all partitions together if that is not negative.
func (c copied) into(failAfter int64) func(context.Context, int, *pg.Import) error {
	var brought atomic.Int64
	return func(ctx context.Context, part int, to *pg.Import) error {
		for _, table := range pg.StateTables() {
			if brought.Add(1) == failAfter+1 {
				return errCopyEnds
			}
			if _, err := to.Copy(ctx, table, bytes.NewReader(c[part][table])); err != nil {
				return err
			}
		}
		return nil
	}
}

var errCopyEnds = errors.New("the copy ends here")

// play is a history to be played: the rows of each block, whether it is taken back again, and how many blocks from the
// end one is final.
type play struct {
	blocks   [][]perp.Row
	takeBack []bool
	final    int
}

var plays = rapid.Custom(func(t *rapid.T) (p play) {
	for range rapid.IntRange(4, 8).Draw(t, "blocks") {
		p.blocks, p.takeBack = append(p.blocks, arbitraryRows(t)), append(p.takeBack, rapid.Bool().Draw(t, "undo"))
	}
	p.final = rapid.IntRange(0, 3).Draw(t, "final")
	return p
})

// PIPE-8: a generation that was copied out and in again holds the same rows, can be taken back as deep as the final
// block, and goes on from there like the original.
func TestCopyIsTheGeneration(t *testing.T) {
	for seed := range 4 {
		testCopy(t, plays.Example(seed))
	}
}

func testCopy(t *testing.T, script play) {
	t.Helper()
	db, h := open(t, pgtest.URL(t)), newHistory()
	p := claim(t, db, 0, 1)
	for i, rows := range script.blocks {
		must(t, p.Commit(background, h.step(h.extend(t, rows...))))
		if script.takeBack[i] {
			must(t, p.Undo(background, h.rewind(t, 1)))
			must(t, p.Commit(background, h.step(h.extend(t, order(uint64(i), perp.Created)))))
		}
	}
	final := h.step()
	final.Next, final.Finalized = h.next+1, h.blocks[len(h.blocks)-1-script.final].BlockRef
	h.next++
	must(t, p.Commit(background, final))

	all, err := export(background, db)
	must(t, err)
	if h.generation, err = db.Import(background, 1, nil, all.into(-1)); err != nil {
		t.Fatal(err)
	}
	h.agree(t, db)
	c, err := db.Compare(background, 1, h.generation, true)
	if err != nil || !c.Equal() {
		t.Fatalf("the copy differs in %v, at the same place: %t, %v", c.Differing(), c.SamePlace(), err)
	}
	again, err := db.Claim(background, pg.ClaimRequest{Generation: h.generation, Partitions: 1})
	must(t, err)
	kept, err := p.Kept(background)
	must(t, err)
	if got, err := again.Kept(background); err != nil || !reflect.DeepEqual(got, kept) {
		t.Fatalf("the copy keeps %v, the original %v, %v", got, kept, err)
	}
	must(t, again.Undo(background, h.rewind(t, script.final)))
	h.agree(t, db)
	must(t, again.Commit(background, h.step(h.extend(t, script.blocks[0]...))))
	h.agree(t, db)
}

// finalHistory has two partitions with a block each that is final.
func finalHistory(t *testing.T, db *pg.DB) {
	t.Helper()
	for partition := range 2 {
		h := newHistory()
		c := h.step(h.extend(t, order(uint64(10+partition), perp.Created)))
		c.Finalized = h.tip()
		must(t, claim(t, db, partition, 2).Commit(t.Context(), c))
	}
}

// A copy that ends half way leaves nothing behind, and what serves is what it was.
func TestBrokenCopyLeavesNothing(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	finalHistory(t, db)
	all, err := export(t.Context(), db)
	must(t, err)
	tables := int64(len(pg.StateTables()))
	for _, fail := range []int64{0, 1, tables, 2*tables - 1} {
		if _, err := db.Import(t.Context(), 2, nil, all.into(fail)); !errors.Is(err, errCopyEnds) {
			t.Fatalf("after %d tables: %v", fail, err)
		}
	}
	truncated := copied{0: maps.Clone(all[0]), 1: maps.Clone(all[1])}
	truncated[1]["perp_order"] = truncated[1]["perp_order"][:len(truncated[1]["perp_order"])-5]
	if _, err := db.Import(t.Context(), 2, nil, truncated.into(-1)); err == nil {
		t.Error("a table without an end was taken")
	}
	if _, err := db.Import(t.Context(), 3, nil, all.into(-1)); !pg.Refused(err) {
		t.Errorf("the copy of two partitions was taken for one of three: %v", err)
	}
	generations, err := db.Generations(t.Context())
	if err != nil || len(generations) != 1 {
		t.Errorf("there are %v, %v", generations, err)
	}
	if left := schemas(t, url); !slices.Equal(left, []string{"state_g1"}) {
		t.Errorf("there are the schemas %v", left)
	}
	number, err := db.Import(t.Context(), 2, nil, all.into(-1))
	must(t, err)
	next, err := db.AddGeneration(t.Context())
	if err != nil || next != number+1 {
		t.Errorf("the copy has number %d, the next generation %d, %v", number, next, err)
	}
}

// schemas are those of generations.
func schemas(t *testing.T, url string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(),
		"SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'state%' ORDER BY 1")
	must(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	return all
}

// What an import has left that was killed the next one removes, but not while it is under way; and one is made at a
// time.
func TestRemainsOfAnImportAreRemoved(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	finalHistory(t, db)
	all, err := export(t.Context(), db)
	must(t, err)
	execute(t, url, `INSERT INTO keeper.generation (number, layout, dropped_at) VALUES (2, 1, now());
		CREATE SCHEMA state_g2; CREATE TABLE state_g2.perp_order ()`)
	bring := all.into(-1)
	number, err := db.Import(t.Context(), 2, nil, func(ctx context.Context, part int, to *pg.Import) error {
		if seen, err := db.Generations(ctx); err != nil || len(seen) != 1 {
			t.Errorf("before its end there are %v, %v", seen, err)
		}
		if _, err := open(t, url).Import(ctx, 2, nil, bring); !pg.Refused(err) {
			t.Errorf("a second import at the same time: %v", err)
		}
		return bring(ctx, part, to)
	})
	must(t, err)
	if left := schemas(t, url); number != 3 || !slices.Equal(left, []string{"state_g1", "state_g3"}) {
		t.Errorf("generation %d is made, and there are the schemas %v", number, left)
	}
}

// What could not be gone on from is not copied, and one process copies at a time.
func TestWhatIsNotCopied(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	refused := func(because string) {
		t.Helper()
		if _, err := export(t.Context(), db); !pg.Refused(err) || !strings.Contains(err.Error(), because) {
			t.Errorf("got %v, want %q", err, because)
		}
	}
	refused("no state to copy")
	h := newHistory()
	p := claim(t, db, 0, 1)
	must(t, p.Commit(t.Context(), h.step(h.extend(t, order(1, perp.Created)))))
	refused("has not heard of a finalized block")
	final := h.tip()
	must(t, p.Commit(t.Context(), h.step(h.extend(t, order(1, perp.Executed)))))
	must(t, p.Commit(t.Context(), pg.Commit{Next: h.next + 1, Finalized: chain.BlockRef{Number: final.Number,
		Hash: chain.Hash{7}}}))
	refused("cannot be taken back")
	execute(t, url, "UPDATE state_g1.stream_offset SET finalized_hash = $1", final.Hash[:])
	_, err := export(t.Context(), db)
	must(t, err)

	err = db.Export(t.Context(), func(ctx context.Context, _ *pg.Export) error {
		if _, err := export(ctx, db); !errors.Is(err, pg.ErrExporting) {
			t.Errorf("a second process copies as well: %v", err)
		}
		return nil
	})
	must(t, err)
	execute(t, url, "UPDATE state_g1.stream_offset SET halted = 'a test'")
	refused("halted")
}

// Statevm copies out, operators copy in, and both go on with the copy, as their roles.
func TestRolesCopy(t *testing.T) {
	address := granted(t)
	statevm, ops := pgtest.OpenAs(t, pg.RoleStatevm, address), pgtest.OpenAs(t, pg.RoleOps, address)
	finalHistory(t, statevm)
	all, err := export(t.Context(), statevm)
	must(t, err)
	number, err := ops.Import(t.Context(), 2, nil, all.into(-1))
	must(t, err)
	if _, err := statevm.Claim(t.Context(), pg.ClaimRequest{Generation: number, Partitions: 2}); err != nil {
		t.Error(err)
	}
	must(t, ops.Switch(t.Context(), number, ""))
	s, err := pgtest.OpenAs(t, pg.RolePlanner, address).Snapshot(t.Context(), []int{0, 1})
	if err != nil || len(s.Orders) != 2 || s.Generation != number {
		t.Errorf("the planner sees %d orders of generation %d, %v", len(s.Orders), s.Generation, err)
	}
}

// However long copying takes, all of it is of one instant: the state goes on meanwhile.
func TestExportIsOfOneInstant(t *testing.T) {
	db := open(t, pgtest.URL(t))
	h := newHistory()
	p := claim(t, db, 0, 1)
	c := h.step(h.extend(t, order(1, perp.Created)))
	c.Finalized = h.tip()
	must(t, p.Commit(t.Context(), c))
	var before, after bytes.Buffer
	err := db.Export(t.Context(), func(ctx context.Context, e *pg.Export) error {
		_, err := e.Copy(ctx, 0, "perp_order", &before)
		must(t, err)
		must(t, p.Commit(ctx, h.step(h.extend(t, order(1, perp.Executed), order(2, perp.Created)))))
		_, err = e.Copy(ctx, 0, "perp_order", &after)
		return err
	})
	if err != nil || !bytes.Equal(before.Bytes(), after.Bytes()) || before.Len() == 0 {
		t.Errorf("%d bytes before and %d after, %v", before.Len(), after.Len(), err)
	}
}

// A generation that was copied has the keys and indexes of one that was made empty.
func TestCopyHasEveryKey(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	finalHistory(t, db)
	all, err := export(t.Context(), db)
	must(t, err)
	few := map[string]int64{}
	for _, table := range pg.StateTables() {
		few[table] = 2
	}
	for name, rows := range map[string]map[string]int64{"not known": nil, "few": few} {
		copied, err := db.Import(t.Context(), 2, rows, all.into(-1))
		must(t, err)
		want, got := indexes(t, url, 1), indexes(t, url, copied)
		if len(want) == 0 || !reflect.DeepEqual(got, want) {
			t.Errorf("the copy whose rows are %s has\n%s\nand must have\n%s", name, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
	}
}

// The server knows of a copy what the statements on it ask for, without having come by itself.
func TestCopyHasStatistics(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	finalHistory(t, db)
	all, err := export(t.Context(), db)
	must(t, err)
	_, err = db.Import(t.Context(), 2, nil, all.into(-1))
	must(t, err)
	known := query[[]string](t, url, `SELECT array_agg(attname::text ORDER BY attname) FROM pg_stats
		WHERE schemaname = 'state_g2' AND tablename = 'perp_order'`)
	want := []string{"account", "auto_cancel", "deleted_at", "key", "market", "part", "rev", "status"}
	if !slices.Equal(known, want) {
		t.Errorf("it knows of %v, want %v", known, want)
	}
}

// copiedHistory is a history in generation 1, and its copy in the generation that is returned.
func copiedHistory(t *testing.T) (url string, db *pg.DB, copied int) {
	t.Helper()
	url = pgtest.URL(t)
	db = open(t, url)
	finalHistory(t, db)
	all, err := export(t.Context(), db)
	must(t, err)
	copied, err = db.Import(t.Context(), 2, nil, all.into(-1))
	must(t, err)
	return url, db, copied
}

// A comparison finds every difference between two generations at the same place, and nothing else.
func TestComparisonFindsDifferences(t *testing.T) {
	url, db, copied := copiedHistory(t)
	for _, c := range []struct {
		name, change string
		want         []perp.Table
	}{
		{"nothing", "UPDATE state_g2.perp_order SET rev = rev + 1", nil},
		{"a column", "UPDATE state_g2.perp_order SET status = 'Frozen' WHERE part = 1", []perp.Table{perp.Orders}},
		{"the other one back", "UPDATE state_g2.perp_order SET status = 'Created'", nil},
		{"a row too few", "UPDATE state_g2.perp_order SET deleted_at = now() WHERE part = 0",
			[]perp.Table{perp.Orders}},
		{"a row too many", `UPDATE state_g2.perp_order SET deleted_at = NULL;
			INSERT INTO state_g2.parameter (key, value, source, stamp_block, stamp_log, stamp_tx_hash, stamp_time_ms,
				part, rev) VALUES ('a', 'b', 'c', 1, 1, 'd', 1, 0, 1)`, []perp.Table{perp.Parameters}},
		{"a copy that no reader takes", "UPDATE state_g2.parameter SET part = 1", nil},
	} {
		execute(t, url, c.change)
		found, err := db.Compare(t.Context(), 1, copied, true)
		must(t, err)
		if !found.SamePlace() || !slices.Equal(found.Differing(), c.want) {
			t.Errorf("%s: differing %v, want %v", c.name, found.Differing(), c.want)
		}
		for _, table := range perp.Tables() {
			if same := found.SumsA[table] == found.SumsB[table]; same == slices.Contains(c.want, table) {
				t.Errorf("%s: the checksums of %s are the same: %t", c.name, table, same)
			}
		}
	}
}

// indexes are the definitions of a generation's indexes, primary keys among them.
func indexes(t *testing.T, url string, generation int) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	must(t, err)
	defer conn.Close(t.Context())
	schema := fmt.Sprintf("state_g%d", generation)
	rows, err := conn.Query(t.Context(), `SELECT coalesce(contype::text, '-') || ' ' || replace(indexdef, $1::text, '')
		FROM pg_indexes LEFT JOIN pg_constraint ON conname = indexname AND connamespace = $1::text::regnamespace
		WHERE schemaname = $1::text ORDER BY 1`, schema)
	must(t, err)
	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	return all
}
