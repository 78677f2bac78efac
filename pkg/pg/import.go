package pg

import (
	"context"
	"errors"
	"fmt"
	"io"

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
	// analyzeTables has the server count what is there, so that it plans for tables of their real size.
	analyzeTables = perTable("statistics of", `ANALYZE {state}.{table}`)
	// roughly has it count a tenth of the rows that it usually takes: each of them costs as much as loading it, and the
	// server counts again by itself within minutes.
	roughly = Register("rough statistics", `SELECT set_config('default_statistics_target', '10', true)`)
	// selectIndexes reads what takes each index of a generation away, and what gives it back, primary keys first.
	selectIndexes = Register("indexes of a generation", `SELECT t.relname,
		CASE WHEN c.oid IS NULL THEN format('DROP INDEX %I.%I', n.nspname, i.relname)
			ELSE format('ALTER TABLE %I.%I DROP CONSTRAINT %I', n.nspname, t.relname, c.conname) END,
		CASE WHEN c.oid IS NULL THEN pg_get_indexdef(i.oid)
			ELSE format('ALTER TABLE %I.%I ADD CONSTRAINT %I %s', n.nspname, t.relname, c.conname,
				pg_get_constraintdef(c.oid)) END
		FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
			JOIN pg_namespace n ON n.oid = t.relnamespace
			LEFT JOIN pg_constraint c ON c.conindid = i.oid AND c.contype = 'p'
		WHERE t.relnamespace = '{state}'::regnamespace ORDER BY t.relname, c.oid IS NULL, i.relname`)
	// releaseOffsets takes a copy from whoever owned the partitions of the original.
	releaseOffsets = Register("release offsets", `UPDATE {state}.stream_offset SET owner = gen_random_uuid(),
		owner_label = '', claimed_at = NULL, updated_at = clock_timestamp()`)
)

// copyIn is copyOut's other end.
const copyIn = `COPY {state}.{table} FROM STDIN (FORMAT binary)`

// importers is how many connections bring rows, and then build indexes, at the same time.
const importers = 4

// Import is one partition of a generation that is being made of a copy.
type Import struct {
	generation int
	tx         pgx.Tx
}

// Import makes a generation of a copy for a log topic of so many partitions: copyPart brings the rows of one of them,
// and is called for several at the same time. The generation is there with all its rows, and kept up to date from the
// copy's offsets on, when Import returns; after an error there is nothing of it but a number that is not given again.
// Nobody sees it before, not even where the process is killed: what that leaves the next call removes. What serves
// meanwhile is not held up. It is refused while another process is at it.
func (db *DB) Import(ctx context.Context, partitions int,
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
		if err := liftLimits(ctx, tx); err != nil {
			return err
		}
		var build tableIndexes
		if generation, build, err = db.reserve(ctx, partitions); err != nil {
			return err
		}
		if err := db.load(ctx, generation, partitions, copyPart); err != nil {
			return err
		}
		if err := db.index(ctx, generation, build); err != nil {
			return err
		}
		return publish(ctx, tx, generation, partitions)
	})
	if err != nil {
		return 0, errors.Join(err, db.dropRemains(context.WithoutCancel(ctx)))
	}
	return generation, nil
}

// mayImport takes the lock of those who import, or says that another process has it.
func mayImport(ctx context.Context, tx pgx.Tx) (alone bool, err error) {
	if err = tx.QueryRow(ctx, lockImport.SQL()).Scan(&alone); err != nil {
		err = fmt.Errorf("locking the making of generations: %w", err)
	}
	return alone, err
}

// dropRemains removes what an import has left that came to no end, unless another one is under way, which may be its.
func (db *DB) dropRemains(ctx context.Context) error {
	ctx, cancel := db.Bounded(ctx)
	defer cancel()
	return pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		if alone, err := mayImport(ctx, tx); err != nil || !alone {
			return err
		}
		rows, err := tx.Query(ctx, selectRemains.SQL())
		if err != nil {
			return fmt.Errorf("looking for what imports have left: %w", err)
		}
		left, err := pgx.CollectRows(rows, pgx.RowTo[int])
		if err != nil {
			return fmt.Errorf("looking for what imports have left: %w", err)
		}
		for _, number := range left {
			if _, err := tx.Exec(ctx, "DROP SCHEMA "+schemaName(number)+" CASCADE"); err != nil {
				return fmt.Errorf("removing what is left of generation %d: %w", number, err)
			}
		}
		return nil
	})
}

// reserve gives a generation its number and makes its tables, without indexes, in a transaction of its own: the lock on
// numbers is not held for as long as copying takes.
func (db *DB) reserve(ctx context.Context, partitions int) (number int, build tableIndexes, err error) {
	err = pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockGenerations.SQL()); err != nil {
			return fmt.Errorf("locking the generations: %w", err)
		}
		if err := tx.QueryRow(ctx, selectNextNumber.SQL()).Scan(&number); err != nil {
			return fmt.Errorf("numbering a generation: %w", err)
		}
		if _, err := tx.Exec(ctx, reserveGeneration.SQL(), number, stateLayout, partitions); err != nil {
			return fmt.Errorf("reserving generation %d: %w", number, err)
		}
		if _, err := tx.Exec(ctx, stateDDL(number)); err != nil {
			return fmt.Errorf("creating generation %d: %w", number, err)
		}
		build, err = dropIndexes(ctx, tx, number)
		return err
	})
	return number, build, err
}

// tableIndexes are the statements that build the indexes of each table.
type tableIndexes map[string]string

// dropIndexes takes all indexes from the tables of a generation that has no rows yet, and returns what gives them back
// when the rows are there: sorting once takes a fraction of the time of keeping an index row by row.
func dropIndexes(ctx context.Context, tx pgx.Tx, generation int) (build tableIndexes, err error) {
	rows, err := tx.Query(ctx, selectIndexes.In(generation))
	if err != nil {
		return nil, fmt.Errorf("reading the indexes of generation %d: %w", generation, err)
	}
	indexes, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Table, Drop, Build string }])
	if err != nil {
		return nil, fmt.Errorf("reading the indexes of generation %d: %w", generation, err)
	}
	build, drop := tableIndexes{}, ""
	for _, x := range indexes {
		build[x.Table] += x.Build + ";\n"
		drop += x.Drop + ";\n"
	}
	if _, err := tx.Exec(ctx, drop); err != nil {
		return nil, fmt.Errorf("loading generation %d without indexes: %w", generation, err)
	}
	return build, nil
}

// unhurriedly runs f in a transaction of its own, however long that takes.
func (db *DB) unhurriedly(ctx context.Context, f func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		if err := liftLimits(ctx, tx); err != nil {
			return err
		}
		return f(tx)
	})
}

// load brings the rows, several partitions at the same time.
func (db *DB) load(ctx context.Context, generation, partitions int,
	copyPart func(context.Context, int, *Import) error) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(importers)
	for part := range partitions {
		work.Go(func() error {
			return db.unhurriedly(ctx, func(tx pgx.Tx) error {
				return copyPart(ctx, part, &Import{generation: generation, tx: tx})
			})
		})
	}
	return work.Wait()
}

// index gives the tables their indexes and statistics, several tables at the same time.
func (db *DB) index(ctx context.Context, generation int, build tableIndexes) error {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(importers)
	for table, statements := range build {
		work.Go(func() error {
			return db.unhurriedly(ctx, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, statements); err != nil {
					return fmt.Errorf("building the indexes of table %s of generation %d: %w", table, generation, err)
				}
				return analyze(ctx, tx, generation, perp.Table(table))
			})
		})
	}
	return work.Wait()
}

// analyze counts what a table of rows holds; of the others the server knows enough by their indexes.
func analyze(ctx context.Context, tx pgx.Tx, generation int, table perp.Table) error {
	s, ofRows := analyzeTables[table]
	if !ofRows {
		return nil
	}
	_, err := tx.Exec(ctx, roughly.SQL())
	if err == nil {
		_, err = tx.Exec(ctx, s.In(generation))
	}
	if err != nil {
		return fmt.Errorf("analyzing table %s of generation %d: %w", table, generation, err)
	}
	return nil
}

// publish makes a generation whose rows are there one that is kept up to date.
func publish(ctx context.Context, tx pgx.Tx, generation, partitions int) error {
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

// Copy brings rows of a table, in the binary form of COPY, and says how many they were.
func (i *Import) Copy(ctx context.Context, table string, from io.Reader) (rows int64, err error) {
	tag, err := i.tx.Conn().PgConn().CopyFrom(ctx, from, copyText(copyIn, i.generation, table, 0))
	if err != nil {
		return 0, fmt.Errorf("copying into table %s: %w", table, err)
	}
	return tag.RowsAffected(), nil
}
