package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

var (
	selectActive = register("active generation", `SELECT generation FROM keeper.active_generation`)
	upsertActive = register("activate generation", `INSERT INTO keeper.active_generation (generation) VALUES ($1)
		ON CONFLICT (one) DO UPDATE SET generation = excluded.generation, since = clock_timestamp()`)
	insertSwitch      = register("record switch", `INSERT INTO keeper.generation_switch (generation) VALUES ($1)`)
	notifyGeneration  = register("notify switch", `SELECT pg_notify('state_changed', 'generation')`)
	selectGenerations = register("generations", `SELECT g.number, g.layout, coalesce(g.partitions, 0), a.generation IS NOT NULL
		FROM keeper.generation g LEFT JOIN keeper.active_generation a ON a.generation = g.number ORDER BY g.number`)
)

// Generation is one rendering of the log topic into state.
type Generation struct {
	Number int
	// Layout is the version of the state schema it was created with.
	Layout int
	// Partitions is how many partitions the log topic has; 0 until the first claim.
	Partitions int
	Active     bool
}

// Generations lists all generations, oldest first.
func (db *DB) Generations(ctx context.Context) ([]Generation, error) {
	ctx, cancel := db.bounded(ctx)
	defer cancel()
	rows, err := db.pool.Query(ctx, selectGenerations.sql())
	if err != nil {
		return nil, fmt.Errorf("listing generations: %w", err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Generation])
	if err != nil {
		return nil, fmt.Errorf("listing generations: %w", err)
	}
	return all, nil
}

// ActiveGeneration returns the generation that readers use.
func (db *DB) ActiveGeneration(ctx context.Context) (int, error) {
	ctx, cancel := db.bounded(ctx)
	defer cancel()
	return activeGeneration(ctx, db.pool)
}

// Activate makes readers use another generation. The switch is one row: readers see all of the old one or all of the new one, and the way
// back is another call.
func (db *DB) Activate(ctx context.Context, generation int) error {
	ctx, cancel := db.bounded(ctx)
	defer cancel()
	return pgx.BeginFunc(ctx, db.pool, func(tx pgx.Tx) error { return activate(ctx, tx, generation) })
}

func activate(ctx context.Context, tx pgx.Tx, generation int) error {
	for _, s := range []*statement{upsertActive, insertSwitch} {
		if _, err := tx.Exec(ctx, s.sql(), generation); err != nil {
			return fmt.Errorf("switching to generation %d: %w", generation, err)
		}
	}
	if _, err := tx.Exec(ctx, notifyGeneration.sql()); err != nil {
		return fmt.Errorf("announcing generation %d: %w", generation, err)
	}
	return nil
}

// rowQuerier is what a pool and a transaction have in common.
type rowQuerier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

func activeGeneration(ctx context.Context, q rowQuerier) (generation int, err error) {
	err = q.QueryRow(ctx, selectActive.sql()).Scan(&generation)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("the database has no active generation: %w (run `keeperctl prepare`)", ErrSchema)
	}
	if err != nil {
		return 0, fmt.Errorf("reading the active generation: %w", err)
	}
	return generation, nil
}
