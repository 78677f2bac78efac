package pg

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/perp"
)

var (
	insertRestored = Register("insert restored generation",
		`INSERT INTO keeper.generation (number, layout, partitions, followed) VALUES ($1, $2, $3, true)`)
	// releaseOffsets takes a copy from whoever owned the partitions of the original.
	releaseOffsets = Register("release offsets", `UPDATE {state}.stream_offset SET owner = gen_random_uuid(),
		owner_label = '', claimed_at = NULL, updated_at = clock_timestamp()`)
)

// restoring is the schema of a generation that has no number yet. One is made at a time: another one waits.
const restoring = "state_restoring"

// keysDDL takes the keys of the tables of rows, and gives them back: sorting once is faster than keeping an index row
// by row.
func keysDDL(what string) string {
	var text strings.Builder
	for _, t := range perp.Tables() {
		fmt.Fprintf(&text, "ALTER TABLE "+restoring+".%s "+what+";\n", t, t)
	}
	return text.String()
}

// Restoring is a generation that is being made of a copy.
type Restoring struct {
	tx   pgx.Tx
	rows map[string]int64
}

// Restore makes a generation of a copy for a log topic of so many partitions: bring brings the rows, and rows is how
// many each table has to get. The generation is there with all its rows, and kept up to date from the copy's offsets
// on, when Restore returns; after an error, or where the process is killed, nothing of it is: it is one transaction.
// What serves meanwhile is not held up.
func (db *DB) Restore(ctx context.Context, partitions int, rows map[string]int64,
	bring func(context.Context, *Restoring) error) (generation int, err error) {
	err = pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error {
		if err := lift(ctx, tx, limitsOff); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, tablesDDL(restoring)+keysDDL("DROP CONSTRAINT %s_pkey")); err != nil {
			return fmt.Errorf("creating a generation: %w", err)
		}
		to := &Restoring{tx: tx, rows: map[string]int64{}}
		if err := bring(ctx, to); err != nil {
			return err
		}
		for _, table := range StateTables() {
			if to.rows[table] != rows[table] {
				return Refusef("table %s has %d rows in the copy and must have %d", table, to.rows[table],
					rows[table])
			}
		}
		indexes := keysDDL("ADD CONSTRAINT %s_pkey PRIMARY KEY (key, part)") + indexesDDL(restoring)
		if _, err := tx.Exec(ctx, indexes); err != nil {
			return fmt.Errorf("building the indexes of a generation: %w", err)
		}
		generation, err = publish(ctx, tx, partitions)
		return err
	})
	return generation, err
}

// Copy brings rows of a table in the text form of COPY, for the columns that are listed as SQL lists them, and returns
// how many they were.
func (r *Restoring) Copy(ctx context.Context, table, columns string, from io.Reader) (int64, error) {
	if !slices.Contains(StateTables(), table) {
		return 0, Refusef("%q is no table of a generation", table)
	}
	name := pgx.Identifier{restoring, table}.Sanitize()
	tag, err := r.tx.Conn().PgConn().CopyFrom(ctx, from, "COPY "+name+" ("+columns+") FROM STDIN (FREEZE)")
	if err == nil {
		// The server plans for tables of their real size at once. A tenth of the usual sample will do until it counts
		// itself.
		_, err = r.tx.Exec(ctx, "SET LOCAL default_statistics_target = 10; ANALYZE "+name)
	}
	if err != nil {
		return 0, fmt.Errorf("copying into table %s: %w", table, err)
	}
	r.rows[table] += tag.RowsAffected()
	return tag.RowsAffected(), nil
}

// publish makes a generation whose rows are there one that is kept up to date.
func publish(ctx context.Context, tx pgx.Tx, partitions int) (number int, err error) {
	if _, err := tx.Exec(ctx, lockGenerations.SQL()); err != nil {
		return 0, fmt.Errorf("locking the generations: %w", err)
	}
	if err := tx.QueryRow(ctx, selectNextNumber.SQL()).Scan(&number); err != nil {
		return 0, fmt.Errorf("numbering a generation: %w", err)
	}
	if _, err := tx.Exec(ctx, "ALTER SCHEMA "+restoring+" RENAME TO "+schemaName(number)); err != nil {
		return 0, fmt.Errorf("naming generation %d: %w", number, err)
	}
	if _, err := tx.Exec(ctx, insertRestored.SQL(), number, stateLayout, partitions); err != nil {
		return 0, fmt.Errorf("publishing generation %d: %w", number, err)
	}
	if err := shareGeneration(ctx, tx, number); err != nil {
		return 0, err
	}
	if _, err := tx.Exec(ctx, releaseOffsets.In(number)); err != nil {
		return 0, fmt.Errorf("releasing the partitions of generation %d: %w", number, err)
	}
	at, err := progress(ctx, tx, number)
	if err != nil {
		return 0, err
	}
	if len(at.Offsets) != partitions || !at.HasView() {
		return 0, Refusef("the copy holds offsets of %d partitions and must hold %d, with a block in common",
			len(at.Offsets), partitions)
	}
	if _, err := tx.Exec(ctx, notifyGeneration.SQL()); err != nil {
		return 0, fmt.Errorf("telling of generation %d: %w", number, err)
	}
	return number, nil
}
