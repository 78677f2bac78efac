package pg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/perp"
)

// StateLayout is the version of the tables of a generation, as this build makes them.
var StateLayout = stateLayout

// The tables of a generation besides those of rows.
const offsetTable = "stream_offset"

var streamTables = []string{offsetTable, "kept_block", "unproven", "undo"}

// StateTables names all tables of a generation, in the order of copying. Each has a column part, the partition that
// writes the row.
func StateTables() []string {
	tables := slices.Clone(streamTables)
	for _, t := range perp.Tables() {
		tables = append(tables, string(t))
	}
	return tables
}

var (
	// lockExport keeps two processes from copying the state at the same time. It is let go with the transaction.
	lockExport = Register("lock export", `SELECT pg_try_advisory_xact_lock(hashtext('perpkeeper export'))`)
	// selectReach finds the partitions whose rows cannot be taken back to their finalized block.
	selectReach = Register("partitions beyond their finalized block",
		`SELECT o.part FROM {state}.stream_offset o WHERE NOT (o.block <= o.finalized) AND NOT EXISTS (
			SELECT FROM {state}.kept_block k WHERE k.part = o.part AND k.block = o.finalized AND k.hash = o.finalized_hash)
		ORDER BY o.part`)
)

// ErrExporting is why a copy is not begun: another process is at it.
var ErrExporting = errors.New("another process is copying the state")

// Export is the active generation as of one instant, to be copied out of the database.
type Export struct {
	Standing
	conn *pgx.Conn
}

// Export runs copyRows over the active generation, all of it as of one instant, while it goes on being written.
// Offsets, journal and kept blocks are part of it: who goes on from a copy takes back what the topic takes back, as
// deep as the finalized block of each partition and below.
//
// It is refused while there is no view of the state (see [Standing.HasView]), and while a partition knows no finalized
// block that it could go back to; ErrExporting means that another process is at it.
func (db *DB) Export(ctx context.Context, copyRows func(context.Context, *Export) error) error {
	return pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			var alone bool
			if err := tx.QueryRow(ctx, lockExport.SQL()).Scan(&alone); err != nil {
				return fmt.Errorf("locking the copying of the state: %w", err)
			}
			if !alone {
				return ErrExporting
			}
			if err := lift(ctx, tx, limitsOff); err != nil {
				return err
			}
			at, err := ActiveStanding(ctx, tx)
			if err != nil {
				return err
			}
			if err := mayExport(ctx, tx, at); err != nil {
				return err
			}
			return copyRows(ctx, &Export{Standing: at, conn: tx.Conn()})
		})
}

func mayExport(ctx context.Context, tx pgx.Tx, at Standing) error {
	if !at.HasView() {
		return Refusef("generation %d has no state to copy now: it is halted (%q), or its partitions have no block in "+
			"common", at.Generation, at.Halted)
	}
	for _, o := range at.Offsets {
		if o.Finalized.Hash.IsZero() {
			return Refusef("partition %d of generation %d has not heard of a finalized block yet", o.Partition,
				at.Generation)
		}
	}
	beyond, err := Select(ctx, tx, pgx.RowTo[int], selectReach.In(at.Generation))
	if err != nil {
		return fmt.Errorf("asking for the finalized blocks: %w", err)
	}
	if len(beyond) > 0 {
		return Refusef("partitions %v of generation %d cannot be taken back to the block that is final", beyond,
			at.Generation)
	}
	return nil
}

// limitsOff is for transactions that take as long as copying takes, and wait meanwhile for who stores the copy. Of a
// process that is killed they end within a second, and hold nobody up.
var limitsOff = Register("no limits", `SELECT set_config('statement_timeout', '0', true),
	set_config('idle_in_transaction_session_timeout', '0', true),
	set_config('client_connection_check_interval', '1s', true)`)

// lift lifts limits of a transaction.
func lift(ctx context.Context, tx pgx.Tx, limits *Statement) error {
	if _, err := tx.Exec(ctx, limits.SQL()); err != nil {
		return fmt.Errorf("lifting the time limits: %w", err)
	}
	return nil
}

// COPY cannot be prepared, and takes no parameters; see statement_test.go. Columns are those of the layout, in its
// order.
//
//nolint:unqueryvet // a copy has every column; which they are is what the layout's version says
const copyOut = `COPY (SELECT * FROM {state}.{table} WHERE part = {part}) TO STDOUT (FORMAT binary)`

func copyText(text string, generation int, table string, part int) string {
	return strings.NewReplacer("{state}", schemaName(generation), "{table}", pgx.Identifier{table}.Sanitize(),
		"{part}", strconv.Itoa(part)).Replace(text)
}

// Copy writes the rows of a table that a partition writes, in the binary form of COPY, and returns how many they are.
func (e *Export) Copy(ctx context.Context, part int, table string, to io.Writer) (rows int64, err error) {
	tag, err := e.conn.PgConn().CopyTo(ctx, to, copyText(copyOut, e.Generation, table, part))
	if err != nil {
		return 0, fmt.Errorf("copying table %s of partition %d: %w", table, part, err)
	}
	return tag.RowsAffected(), nil
}
