package pg

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/perp"
)

// StateLayout is the version of the tables of a generation, as this build makes them.
var StateLayout = stateLayout

// The tables of a generation besides those of rows.
var streamTables = []string{"stream_offset", "kept_block", "undo"}

// StateTables names all tables of a generation.
func StateTables() []string {
	tables := slices.Clone(streamTables)
	for _, t := range perp.Tables() {
		tables = append(tables, string(t))
	}
	return tables
}

var (
	// selectReach finds the partitions whose rows cannot be taken back to their finalized block.
	selectReach = Register("partitions beyond their finalized block",
		`SELECT o.part FROM {state}.stream_offset o WHERE NOT (o.block <= o.finalized) AND NOT EXISTS (
			SELECT FROM {state}.kept_block k WHERE k.part = o.part AND k.block = o.finalized AND k.hash = o.finalized_hash)
		ORDER BY o.part`)
	// endSessions ends what a program that was given up may have left: one that hangs on a disk keeps its connection.
	endSessions = Register("end sessions", `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE application_name = $1 AND usename = current_user`)
)

var exportSnapshot = Register("export snapshot", `SELECT pg_export_snapshot()`)

// Export is the active generation as of one instant, for pg_dump.
type Export struct {
	Progress

	// Schema is the generation's, Snapshot the instant, as pg_dump takes them.
	Schema, Snapshot string
	// Application is what pg_dump has to call itself, so that its connection ends with the export.
	Application string
	// Rows is how many each table has.
	Rows map[string]int64
}

// Export runs dump over the active generation as of one instant, while it goes on being written. Offsets, journal and
// kept blocks are part of it: who goes on from a copy takes back what the topic takes back, as deep as the finalized
// block of each partition and below.
//
// It is refused while there is no view of the state (see [Progress.HasView]), and while a partition knows no finalized
// block that it could go back to.
func (db *DB) Export(ctx context.Context, dump func(context.Context, Export) error) error {
	e := Export{Application: "keeperctl snapshot " + uuid.NewString()}
	err := pgx.BeginTxFunc(ctx, db.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly},
		func(tx pgx.Tx) error {
			if err := lift(ctx, tx, limitsOff); err != nil {
				return err
			}
			if err := e.look(ctx, tx); err != nil {
				return err
			}
			return dump(ctx, e)
		})
	if err == nil {
		return nil
	}
	ending, cancel := db.Bounded(context.WithoutCancel(ctx))
	defer cancel()
	_, _ = db.pool.Exec(ending, endSessions.SQL(), e.Application) // where that fails, the connection is gone too
	return err
}

// look fills in what is exported, if it may be.
func (e *Export) look(ctx context.Context, tx pgx.Tx) (err error) {
	if e.Progress, err = ActiveProgress(ctx, tx); err != nil {
		return err
	}
	if err := mayExport(ctx, tx, e.Progress); err != nil {
		return err
	}
	e.Schema, e.Rows = fmt.Sprintf("state_g%d", e.Generation), map[string]int64{}
	for _, table := range StateTables() {
		var rows int64
		err := tx.QueryRow(ctx, "SELECT count(*) FROM "+pgx.Identifier{e.Schema, table}.Sanitize()).Scan(&rows)
		if err != nil {
			return fmt.Errorf("counting the rows of table %s: %w", table, err)
		}
		e.Rows[table] = rows
	}
	if err := tx.QueryRow(ctx, exportSnapshot.SQL()).Scan(&e.Snapshot); err != nil {
		return fmt.Errorf("naming the instant of a copy: %w", err)
	}
	return nil
}

func mayExport(ctx context.Context, tx pgx.Tx, at Progress) error {
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
