package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/perp"
)

var (
	// lockImport keeps two processes from making generations of copies at the same time. It is let go with the
	// transaction.
	lockImport = Register("lock import", `SELECT pg_try_advisory_xact_lock(hashtext('perpkeeper import'))`)
	// selectRemains finds what imports have left that were killed: schemas that no generation of the list has.
	selectRemains = Register("remains of imports", `SELECT number FROM keeper.generation
		WHERE dropped_at IS NOT NULL AND to_regnamespace('state_g' || number) IS NOT NULL ORDER BY number`)
	// reserveGeneration takes a number for a generation that nobody sees yet: it looks like one that was dropped, and
	// stays so if what makes it fails.
	reserveGeneration = Register("reserve generation", `INSERT INTO keeper.generation (number, layout, partitions,
		dropped_at) VALUES ($1, $2, $3, clock_timestamp())`)
	publishGeneration = Register("publish generation",
		`UPDATE keeper.generation SET dropped_at = NULL, followed = true WHERE number = $1`)
	// selectIndexes reads of each table of a generation what takes its indexes away, what gives them back, primary keys
	// first, and the columns that they ask for.
	selectIndexes = Register("indexes of a generation", `SELECT t.relname,
		string_agg(CASE WHEN c.oid IS NULL THEN format('DROP INDEX %I.%I', n.nspname, i.relname)
			ELSE format('ALTER TABLE %I.%I DROP CONSTRAINT %I', n.nspname, t.relname, c.conname) END, '; '),
		string_agg(CASE WHEN c.oid IS NULL THEN pg_get_indexdef(i.oid)
			ELSE format('ALTER TABLE %I.%I ADD CONSTRAINT %I %s', n.nspname, t.relname, c.conname,
				pg_get_constraintdef(c.oid)) END, '; ' ORDER BY c.oid IS NULL, i.relname),
		(SELECT string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum) FROM pg_attribute a
			WHERE a.attrelid = t.oid AND EXISTS (SELECT FROM pg_depend d
				WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = t.oid AND d.refobjsubid = a.attnum
				AND d.objid = ANY (array_agg(i.oid) || array_agg(c.oid))))
		FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
			JOIN pg_namespace n ON n.oid = t.relnamespace
			LEFT JOIN pg_constraint c ON c.conindid = i.oid AND c.contype = 'p'
		WHERE t.relnamespace = '{state}'::regnamespace AND t.relname = ANY ($1) GROUP BY t.oid, t.relname`)
	// loading is for the transactions that bring rows. Nobody waits for the disk at their end: the one that publishes
	// waits for all.
	loading = Register("load", limitsOff.SQL()+`, set_config('synchronous_commit', 'off', true)`)
	// releaseOffsets takes a copy from whoever owned the partitions of the original.
	releaseOffsets = Register("release offsets", `UPDATE {state}.stream_offset SET owner = gen_random_uuid(),
		owner_label = '', claimed_at = NULL, updated_at = clock_timestamp()`)
)

// copyIn is copyOut's other end.
const copyIn = `COPY {state}.{table} FROM STDIN (FORMAT binary)`

const (
	// importers is how many connections bring rows, and then build indexes, at the same time.
	importers = 4
	// fewRows is for how many rows a table keeps its indexes while they come: to take them away and build them again
	// takes longer than they do.
	fewRows = 500
)

// Import is a generation that is being made of a copy.
type Import struct {
	db         *DB
	generation int
	partitions int

	mutex   sync.Mutex
	indexes []tableIndexes      // that are not built yet
	ready   chan<- tableIndexes // to be built
}

// Import makes a generation of a copy for a log topic of so many partitions: copyPart brings the rows of one of them,
// and is called for several at the same time. rows is how many each table gets, as far as that is known. The generation
// is there with all its rows, and kept up to date from the copy's offsets on, when Import returns; after an error there
// is nothing of it but a number that is not given again. Nobody sees it before, not even where the process is killed:
// what that leaves the next call removes. What serves meanwhile is not held up. It is refused while another process is
// at it.
func (db *DB) Import(ctx context.Context, partitions int, rows map[string]int64,
	copyPart func(ctx context.Context, part int, to *Import) error) (generation int, err error) {
	if err := db.dropRemains(ctx); err != nil {
		return 0, err
	}
	err = pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		alone, err := mayImport(ctx, tx)
		if err != nil {
			return err
		}
		if !alone {
			return Refusef("another process is making a generation of a copy (wait for its end)")
		}
		if err := lift(ctx, tx, limitsOff); err != nil {
			return err
		}
		var indexes []tableIndexes
		if generation, indexes, err = db.reserve(ctx, partitions, rows); err != nil {
			return err
		}
		if err := db.load(ctx, generation, partitions, indexes, copyPart); err != nil {
			return err
		}
		return publish(ctx, tx, generation, partitions)
	})
	if err != nil {
		return 0, errors.Join(err, db.dropRemains(context.WithoutCancel(ctx)))
	}
	return generation, nil
}

// mayImport takes the lock of those who import, or returns an error if another process has it.
func mayImport(ctx context.Context, tx pgx.Tx) (alone bool, err error) {
	if err = tx.QueryRow(ctx, lockImport.SQL()).Scan(&alone); err != nil {
		err = fmt.Errorf("locking the making of generations: %w", err)
	}
	return alone, err
}

// dropRemains removes what an import has left that came to no end, unless another one is under way, which may be its.
func (db *DB) dropRemains(ctx context.Context) error {
	return db.Write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if alone, err := mayImport(ctx, tx); err != nil || !alone {
			return err
		}
		left, err := Select(ctx, tx, pgx.RowTo[int], selectRemains.SQL())
		if err != nil {
			return fmt.Errorf("looking for what imports have left: %w", err)
		}
		for _, number := range left {
			_, err := tx.Exec(ctx, "DROP SCHEMA "+schemaName(number)+" CASCADE")
			if HasCode(err, codeCanceled) {
				return Refusef("what a process that was killed began in generation %d is still under way in the "+
					"database (wait for its end)", number)
			}
			if err != nil {
				return fmt.Errorf("removing what is left of generation %d: %w", number, err)
			}
		}
		return nil
	})
}

// reserve gives a generation its number and makes its tables, the large ones without indexes, in a transaction of its
// own: the lock on numbers is not held for as long as copying takes.
func (db *DB) reserve(ctx context.Context, partitions int, rows map[string]int64) (number int,
	indexes []tableIndexes, err error) {
	err = db.withGenerations(ctx, func(tx pgx.Tx) error {
		if err := tx.QueryRow(ctx, selectNextNumber.SQL()).Scan(&number); err != nil {
			return fmt.Errorf("numbering a generation: %w", err)
		}
		if _, err := tx.Exec(ctx, reserveGeneration.SQL(), number, stateLayout, partitions); err != nil {
			return fmt.Errorf("reserving generation %d: %w", number, err)
		}
		if _, err := tx.Exec(ctx, stateDDL(number)); err != nil {
			return fmt.Errorf("creating generation %d: %w", number, err)
		}
		indexes, err = dropIndexes(ctx, tx, number, rows)
		return err
	})
	return number, indexes, err
}

// tableIndexes are the indexes of a table: statements that take them away and build them, and their columns.
type tableIndexes struct {
	Table, Drop, Build, Columns string

	arrived int // partitions whose rows are there
}

// dropIndexes takes all indexes from the large tables of a generation that has no rows yet, and returns what gives them
// back when the rows are there: sorting once takes a fraction of the time of keeping an index row by row.
func dropIndexes(ctx context.Context, tx pgx.Tx, generation int, rows map[string]int64) ([]tableIndexes, error) {
	large := slices.DeleteFunc(StateTables(), func(table string) bool {
		n, known := rows[table]
		return known && n <= fewRows
	})
	indexes, err := Select(ctx, tx, pgx.RowToStructByPos[tableIndexes], selectIndexes.In(generation), large)
	if err != nil {
		return nil, fmt.Errorf("reading the indexes of generation %d: %w", generation, err)
	}
	var drop strings.Builder
	for _, x := range indexes {
		drop.WriteString(x.Drop + ";\n")
	}
	if _, err := tx.Exec(ctx, drop.String()); err != nil {
		return nil, fmt.Errorf("loading generation %d without indexes: %w", generation, err)
	}
	return indexes, nil
}

// unhurriedly runs f in a transaction of its own, however long that takes.
func (db *DB) unhurriedly(ctx context.Context, f func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		if err := lift(ctx, tx, loading); err != nil {
			return err
		}
		return f(tx)
	})
}

// load brings the rows, several partitions at the same time, and builds the indexes of a table as soon as all its rows
// are there.
func (db *DB) load(ctx context.Context, generation, partitions int, indexes []tableIndexes,
	copyPart func(context.Context, int, *Import) error) error {
	work, ctx := errgroup.WithContext(ctx)
	ready := make(chan tableIndexes, len(indexes))
	for range importers {
		work.Go(func() error {
			for x := range ready {
				if err := db.index(ctx, generation, x); err != nil {
					return err
				}
			}
			return nil
		})
	}
	work.Go(func() error {
		defer close(ready)
		to := &Import{db: db, generation: generation, partitions: partitions, indexes: indexes, ready: ready}
		parts, ctx := errgroup.WithContext(ctx)
		parts.SetLimit(importers)
		for part := range partitions {
			parts.Go(func() error { return copyPart(ctx, part, to) })
		}
		if err := parts.Wait(); err != nil {
			return err
		}
		for _, x := range to.indexes { // no rows came, or not of every partition
			ready <- x
		}
		return nil
	})
	return work.Wait()
}

// index gives a table its indexes and statistics.
func (db *DB) index(ctx context.Context, generation int, x tableIndexes) error {
	return db.unhurriedly(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, x.Build+x.analyze(generation)); err != nil {
			return fmt.Errorf("building the indexes of table %s of generation %d: %w", x.Table, generation, err)
		}
		return nil
	})
}

// analyze has the server count what a table of rows holds in the columns that are asked for, so that it plans for
// tables of their real size; of the others it knows enough by their indexes. It looks at a tenth of the rows that it
// usually takes: each costs as much as loading it, and the server counts again by itself within minutes.
func (x tableIndexes) analyze(generation int) string {
	if _, ofRows := layouts[perp.Table(x.Table)]; !ofRows {
		return ""
	}
	return fmt.Sprintf("; SET LOCAL default_statistics_target = 10; ANALYZE %s.%s (%s)", schemaName(generation),
		pgx.Identifier{x.Table}.Sanitize(), x.Columns)
}

// publish makes a generation whose rows are there one that is kept up to date.
func publish(ctx context.Context, tx pgx.Tx, generation, partitions int) error {
	if _, err := tx.Exec(ctx, lockGenerations.SQL()); err != nil {
		return fmt.Errorf("locking the generations: %w", err)
	}
	if err := shareGeneration(ctx, tx, generation); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, releaseOffsets.In(generation)); err != nil {
		return fmt.Errorf("releasing the partitions of generation %d: %w", generation, err)
	}
	if _, err := tx.Exec(ctx, publishGeneration.SQL(), generation); err != nil {
		return fmt.Errorf("publishing generation %d: %w", generation, err)
	}
	at, err := standing(ctx, tx, generation)
	if err != nil {
		return err
	}
	if len(at.Offsets) != partitions || !at.HasView() {
		return Refusef("the copy holds offsets of %d partitions and must hold %d, with a block in common",
			len(at.Offsets), partitions)
	}
	if _, err := tx.Exec(ctx, notifyGeneration.SQL()); err != nil {
		return fmt.Errorf("telling of generation %d: %w", generation, err)
	}
	return nil
}

// Copy brings the rows of a table that one partition has, in the binary form of COPY, and returns how many they were.
func (i *Import) Copy(ctx context.Context, table string, from io.Reader) (rows int64, err error) {
	err = i.db.unhurriedly(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Conn().PgConn().CopyFrom(ctx, from, copyText(copyIn, i.generation, table, 0))
		rows = tag.RowsAffected()
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("copying into table %s: %w", table, err)
	}
	i.arrive(table)
	return rows, nil
}

// arrive has the indexes of a table built when the rows of all partitions are there.
func (i *Import) arrive(table string) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	at := slices.IndexFunc(i.indexes, func(x tableIndexes) bool { return x.Table == table })
	if at < 0 {
		return
	}
	if i.indexes[at].arrived++; i.indexes[at].arrived == i.partitions {
		i.ready <- i.indexes[at]
		i.indexes = slices.Delete(i.indexes, at, at+1)
	}
}
