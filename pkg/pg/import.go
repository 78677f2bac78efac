package pg

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
)

var (
	// reserveGeneration takes a number for a generation that nobody sees yet: it looks like one that was dropped, and
	// stays so if what makes it fails.
	reserveGeneration = Register("reserve generation", `INSERT INTO keeper.generation (number, layout, partitions,
		dropped_at) VALUES ($1, $2, $3, clock_timestamp())`)
	publishGeneration = Register("publish generation",
		`UPDATE keeper.generation SET dropped_at = NULL, followed = true WHERE number = $1`)
	// analyzeTables has the server count what is there, so that it plans for tables of their real size.
	analyzeTables = perTable("statistics of", `ANALYZE {state}.{table}`)
	// selectKeys reads the primary keys of a generation's tables, as they are written in SQL.
	selectKeys = Register("primary keys", `SELECT t.relname, c.conname, pg_get_constraintdef(c.oid) FROM pg_constraint c
		JOIN pg_class t ON t.oid = c.conrelid
		WHERE c.contype = 'p' AND c.connamespace = '{state}'::regnamespace ORDER BY t.relname`)
	// releaseOffsets takes a copy from whoever owned the partitions of the original.
	releaseOffsets = Register("release offsets", `UPDATE {state}.stream_offset SET owner = gen_random_uuid(),
		owner_label = '', claimed_at = NULL, updated_at = clock_timestamp()`)
)

// copyIn is copyOut's other end. FREEZE spares the server to look at every row again; it is allowed for tables of the
// same transaction.
const copyIn = `COPY {state}.{table} FROM STDIN (FORMAT binary, FREEZE)`

// Import is a generation that is being made of a copy.
type Import struct {
	generation int
	tx         pgx.Tx
}

// Import makes a generation of a copy for a log topic of so many partitions: copyRows brings the rows. It is there with
// all its rows, and kept up to date from the copy's offsets on, when Import returns; after an error there is nothing of
// it but a number that is not given again. What serves meanwhile is not held up.
func (db *DB) Import(ctx context.Context, partitions int,
	copyRows func(context.Context, *Import) error) (generation int, err error) {
	if generation, err = db.reserve(ctx, partitions); err != nil {
		return 0, err
	}
	err = pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		if err := liftLimits(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, tablesDDL(generation)); err != nil {
			return fmt.Errorf("creating generation %d: %w", generation, err)
		}
		addKeys, err := dropKeys(ctx, tx, generation)
		if err != nil {
			return err
		}
		if err := copyRows(ctx, &Import{generation: generation, tx: tx}); err != nil {
			return err
		}
		if err := addKeys(ctx); err != nil {
			return err
		}
		return publish(ctx, tx, generation, partitions)
	})
	if err != nil {
		return 0, err
	}
	return generation, nil
}

// reserve gives a generation its number, in a transaction of its own: the lock on numbers is not held for as long as
// copying takes.
func (db *DB) reserve(ctx context.Context, partitions int) (number int, err error) {
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
		return nil
	})
	return number, err
}

// dropKeys takes the primary keys from the tables of a generation that has no rows yet, and returns what gives them
// back when the rows are there: sorting once takes a fraction of the time of keeping an index row by row.
func dropKeys(ctx context.Context, tx pgx.Tx, generation int) (addKeys func(context.Context) error, err error) {
	rows, err := tx.Query(ctx, selectKeys.In(generation))
	if err != nil {
		return nil, fmt.Errorf("reading the keys of generation %d: %w", generation, err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Table, Name, Definition string }])
	if err != nil {
		return nil, fmt.Errorf("reading the keys of generation %d: %w", generation, err)
	}
	var drop, add strings.Builder
	for _, k := range keys {
		table, name := schemaName(generation)+"."+pgx.Identifier{k.Table}.Sanitize(), pgx.Identifier{k.Name}.Sanitize()
		fmt.Fprintf(&drop, "ALTER TABLE %s DROP CONSTRAINT %s;\n", table, name)
		fmt.Fprintf(&add, "ALTER TABLE %s ADD CONSTRAINT %s %s;\n", table, name, k.Definition)
	}
	if _, err := tx.Exec(ctx, drop.String()); err != nil {
		return nil, fmt.Errorf("loading generation %d without keys: %w", generation, err)
	}
	return func(ctx context.Context) error {
		if _, err := tx.Exec(ctx, add.String()); err != nil {
			return fmt.Errorf("building the keys of generation %d: %w", generation, err)
		}
		return nil
	}, nil
}

// publish makes a generation whose rows are there one that is kept up to date.
func publish(ctx context.Context, tx pgx.Tx, generation, partitions int) error {
	// After the rows: an index is built several times as fast as it is kept.
	if _, err := tx.Exec(ctx, indexesDDL(generation)); err != nil {
		return fmt.Errorf("building the indexes of generation %d: %w", generation, err)
	}
	for table, s := range analyzeTables {
		if _, err := tx.Exec(ctx, s.In(generation)); err != nil {
			return fmt.Errorf("analyzing table %s of generation %d: %w", table, generation, err)
		}
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

// Copy brings rows of a table, in the binary form of COPY, and says how many they were.
func (i *Import) Copy(ctx context.Context, table string, from io.Reader) (rows int64, err error) {
	tag, err := i.tx.Conn().PgConn().CopyFrom(ctx, from, copyText(copyIn, i.generation, table, 0))
	if err != nil {
		return 0, fmt.Errorf("copying into table %s: %w", table, err)
	}
	return tag.RowsAffected(), nil
}
