package pg_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// copied is a generation outside the database: its tables in the text form of COPY, with their columns.
type copied struct {
	text, columns map[string]string
	rows          map[string]int64
}

func export(ctx context.Context, url string, db *pg.DB) (copied, error) {
	all := copied{text: map[string]string{}, columns: map[string]string{}}
	err := db.Export(ctx, func(ctx context.Context, e pg.Export) error {
		all.rows = e.Rows
		for _, table := range pg.StateTables() {
			if err := all.take(ctx, url, e, table); err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// take copies a table out as pg_dump does, over a connection of its own.
func (c copied) take(ctx context.Context, url string, e pg.Export, table string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	name := pgx.Identifier{e.Schema, table}.Sanitize()
	var columns string
	if err := conn.QueryRow(ctx, `SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute
		WHERE attrelid = $1::text::regclass AND attnum > 0`, name).Scan(&columns); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "BEGIN ISOLATION LEVEL REPEATABLE READ; SET TRANSACTION SNAPSHOT '"+e.Snapshot+
		"'"); err != nil {
		return err
	}
	var rows bytes.Buffer
	_, err = conn.PgConn().CopyTo(ctx, &rows, "COPY "+name+" ("+columns+") TO STDOUT")
	c.text[table], c.columns[table] = rows.String(), columns
	return err
}

// into brings all rows, and fails after so many tables if that is not negative.
func (c copied) into(failAfter int) func(context.Context, *pg.Restoring) error {
	return func(ctx context.Context, to *pg.Restoring) error {
		for i, table := range pg.StateTables() {
			if i == failAfter {
				return errCopyEnds
			}
			if _, err := to.Copy(ctx, table, c.columns[table], strings.NewReader(c.text[table])); err != nil {
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
	blocks [][]perp.Row
	undone []bool
	final  int
}

var plays = rapid.Custom(func(t *rapid.T) (p play) {
	for range rapid.IntRange(4, 8).Draw(t, "blocks") {
		p.blocks, p.undone = append(p.blocks, arbitraryRows(t)), append(p.undone, rapid.Bool().Draw(t, "undo"))
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
	url := pgtest.URL(t)
	db, h := open(t, url), newHistory()
	p := claim(t, db, 0, 1)
	for i, rows := range script.blocks {
		must(t, p.Commit(background, h.step(h.extend(t, rows...))))
		if script.undone[i] {
			must(t, p.Undo(background, h.rewind(t, 1)))
			must(t, p.Commit(background, h.step(h.extend(t, order(uint64(i), perp.Created)))))
		}
	}
	final := h.step()
	final.Next, final.Finalized = h.next+1, h.blocks[len(h.blocks)-1-script.final]
	h.next++
	must(t, p.Commit(background, final))

	all, err := export(background, url, db)
	must(t, err)
	if h.generation, err = db.Restore(background, 1, all.rows, all.into(-1)); err != nil {
		t.Fatal(err)
	}
	h.agree(t, db)
	c, err := db.Compare(background, 1, h.generation)
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
	all, err := export(t.Context(), url, db)
	must(t, err)
	for _, fail := range []int{0, 1, len(pg.StateTables()) - 1} {
		if _, err := db.Restore(t.Context(), 2, all.rows, all.into(fail)); !errors.Is(err, errCopyEnds) {
			t.Fatalf("after %d tables: %v", fail, err)
		}
	}
	orders := all.text["perp_order"]
	for name, text := range map[string]string{"half a row": orders[:len(orders)-5], "a row too few": orders[:1+
		strings.IndexByte(orders, '\n')]} {
		all.text["perp_order"] = text
		if _, err := db.Restore(t.Context(), 2, all.rows, all.into(-1)); !pg.Refused(err) {
			t.Errorf("%s was taken: %v", name, err)
		}
	}
	all.text["perp_order"] = orders
	if _, err := db.Restore(t.Context(), 3, all.rows, all.into(-1)); !pg.Refused(err) {
		t.Errorf("the copy of two partitions was taken for one of three: %v", err)
	}
	generations, err := db.Generations(t.Context())
	if err != nil || len(generations) != 1 {
		t.Errorf("there are %v, %v", generations, err)
	}
	if left := schemas(t, url); !slices.Equal(left, []string{"state_g1"}) {
		t.Errorf("there are the schemas %v", left)
	}
	number, err := db.Restore(t.Context(), 2, all.rows, all.into(-1))
	must(t, err)
	next, err := db.AddGeneration(t.Context(), nil)
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

// What could not be gone on from is not copied, and one process copies at a time.
func TestWhatIsNotCopied(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	refused := func(because string) {
		t.Helper()
		if _, err := export(t.Context(), url, db); !pg.Refused(err) || !strings.Contains(err.Error(), because) {
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
	_, err := export(t.Context(), url, db)
	must(t, err)

	execute(t, url, "UPDATE state_g1.stream_offset SET halted = 'a test'")
	refused("halted")
}

// Statevm copies out, operators copy in, and both go on with the copy, as their roles.
func TestRolesCopy(t *testing.T) {
	address := granted(t)
	statevm, ops := pgtest.OpenAs(t, pg.RoleStatevm, address), pgtest.OpenAs(t, pg.RoleOps, address)
	finalHistory(t, statevm)
	all, err := export(t.Context(), address, statevm)
	must(t, err)
	number, err := ops.Restore(t.Context(), 2, all.rows, all.into(-1))
	must(t, err)
	if _, err := statevm.Claim(t.Context(), pg.ClaimRequest{Generation: number, Partitions: 2}); err != nil {
		t.Error(err)
	}
	must(t, ops.Switch(t.Context(), number, ""))
	s, err := pgtest.Load(t.Context(), pgtest.OpenAs(t, pg.RolePlanner, address), 0, 1)
	if err != nil || len(s.Orders) != 2 || s.Generation != number {
		t.Errorf("the planner sees %d orders of generation %d, %v", len(s.Orders), s.Generation, err)
	}
}

// However long copying takes, all of it is of one instant, and so are the numbers of rows: the state goes on meanwhile.
func TestExportIsOfOneInstant(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	h := newHistory()
	p := claim(t, db, 0, 1)
	c := h.step(h.extend(t, order(1, perp.Created)))
	c.Finalized = h.tip()
	must(t, p.Commit(t.Context(), c))
	before := copied{text: map[string]string{}, columns: map[string]string{}}
	after := copied{text: map[string]string{}, columns: map[string]string{}}
	err := db.Export(t.Context(), func(ctx context.Context, e pg.Export) error {
		must(t, before.take(ctx, url, e, "perp_order"))
		must(t, p.Commit(ctx, h.step(h.extend(t, order(1, perp.Executed), order(2, perp.Created)))))
		must(t, after.take(ctx, url, e, "perp_order"))
		if e.Rows["perp_order"] != 1 {
			t.Errorf("%d orders are counted", e.Rows["perp_order"])
		}
		return nil
	})
	if text := before.text["perp_order"]; err != nil || after.text["perp_order"] != text || text == "" {
		t.Errorf("%q before and %q after, %v", text, after.text["perp_order"], err)
	}
}

// What an export was given up for does not keep the database's old rows: its connection ends with it.
func TestGivenUpExportEndsItsConnection(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	finalHistory(t, db)
	var hanging *pgx.Conn
	err := db.Export(t.Context(), func(ctx context.Context, e pg.Export) (err error) {
		cfg, err := pgx.ParseConfig(url)
		must(t, err)
		cfg.RuntimeParams["application_name"] = e.Application
		hanging, err = pgx.ConnectConfig(ctx, cfg)
		must(t, err)
		return errCopyEnds
	})
	if !errors.Is(err, errCopyEnds) {
		t.Fatal(err)
	}
	defer hanging.Close(t.Context())
	if _, err := hanging.WaitForNotification(t.Context()); err == nil {
		t.Error("it goes on")
	}
}

// A generation that was copied has the keys and indexes of one that was made empty.
func TestCopyHasEveryKey(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	finalHistory(t, db)
	all, err := export(t.Context(), url, db)
	must(t, err)
	copied, err := db.Restore(t.Context(), 2, all.rows, all.into(-1))
	must(t, err)
	want, got := indexes(t, url, 1), indexes(t, url, copied)
	if len(want) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("the copy has\n%s\nand must have\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The server knows of a copy what the statements on it ask for, without having come by itself.
func TestCopyHasStatistics(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	finalHistory(t, db)
	all, err := export(t.Context(), url, db)
	must(t, err)
	_, err = db.Restore(t.Context(), 2, all.rows, all.into(-1))
	must(t, err)
	if !query[bool](t, url, `SELECT count(*) > 0 FROM pg_stats WHERE schemaname = 'state_g2' AND tablename = 'perp_order'
		AND attname = 'account'`) {
		t.Error("it knows nothing of the orders' accounts")
	}
}

// What changes which generations there are, or which one is active, is done one after the other: under one lock, and of
// what the one before it left. So neither a drop beside a switch takes away what readers use, nor does a right that is
// given in all generations miss one.
func TestGenerationsChangeOneAfterTheOther(t *testing.T) {
	url := pgtest.URL(t)
	db := open(t, url)
	finalHistory(t, db)
	all, err := export(t.Context(), url, db)
	must(t, err)
	const waiting = "(SELECT count(*) FROM pg_locks WHERE NOT granted) = %d"
	const state = `SELECT string_agg(number || ' ' || (dropped_at IS NULL), ', ' ORDER BY number) || '; ' ||
		(SELECT string_agg(generation::text, ', ' ORDER BY id) FROM keeper.generation_switch) FROM keeper.generation`
	restore := func() error {
		_, err := db.Restore(t.Context(), 2, all.rows, all.into(-1))
		return err
	}
	add := func() error {
		_, err := db.AddGeneration(t.Context(), nil)
		return err
	}
	fill := func() error {
		_, err := db.AddGeneration(t.Context(), func(g pg.Generation) bool { return !g.Served })
		return err
	}
	switchTo := func() error { return db.Switch(t.Context(), 2, "a test") }
	drop := func() error { return db.DropGeneration(t.Context(), 2) }
	for _, c := range []struct {
		name          string
		first, second func() error
		refused       bool // the second of them, or what is left of the first
		want          string
	}{
		{"one that will do for both", fill, fill, false, "1 true, 2 true; 1"},
		{"a copy, a new one", restore, add, false, "1 true, 2 true, 3 true, 4 true; 1"},
		// The drop lets statevm let go first, and then the switch has its turn.
		{"a drop, a switch", drop, switchTo, true, "1 true, 2 true, 3 true, 4 true; 1, 2"},
		{"a switch, a drop", func() error { return db.Switch(t.Context(), 1, "back") },
			func() error { return db.DropGeneration(t.Context(), 1) }, true, "1 true, 2 true, 3 true, 4 true; 1, 2, 1"},
		{"two switches", switchTo, switchTo, true, "1 true, 2 true, 3 true, 4 true; 1, 2, 1, 2"},
	} {
		before := query[string](t, url, state)
		release := hold(t, url, "LOCK keeper.generation_switch IN SHARE ROW EXCLUSIVE MODE")
		ended := make(chan error, 2)
		for i, verb := range []func() error{c.first, c.second} {
			go func() { ended <- verb() }()
			awaitTrue(t, url, fmt.Sprintf(waiting, i+1)+fmt.Sprintf(" OR (%s) <> '%s'", state, before))
		}
		if now := query[string](t, url, state); now != before {
			t.Errorf("%s: done beside somebody else's change: %s", c.name, now)
		}
		release()
		if err := errors.Join(<-ended, <-ended); pg.Refused(err) != c.refused || err != nil && !c.refused {
			t.Errorf("%s: %v", c.name, err)
		}
		if now := query[string](t, url, state); now != c.want {
			t.Errorf("%s: %s, want %s", c.name, now, c.want)
		}
	}
}

// copiedHistory is a history in generation 1, and its copy in the generation that is returned.
func copiedHistory(t *testing.T) (url string, db *pg.DB, copied int) {
	t.Helper()
	url = pgtest.URL(t)
	db = open(t, url)
	finalHistory(t, db)
	all, err := export(t.Context(), url, db)
	must(t, err)
	copied, err = db.Restore(t.Context(), 2, all.rows, all.into(-1))
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
		{"the copy that one partition folds with", "UPDATE state_g2.parameter SET part = 1",
			[]perp.Table{perp.Parameters}},
	} {
		execute(t, url, c.change)
		found, err := db.Compare(t.Context(), 1, copied)
		must(t, err)
		if !found.SamePlace() || !slices.Equal(found.Differing(), c.want) {
			t.Errorf("%s: differing %v, want %v", c.name, found.Differing(), c.want)
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
