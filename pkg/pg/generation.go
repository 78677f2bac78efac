package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

var (
	selectActive = Register("active generation", `SELECT generation FROM keeper.active_generation`)
	// selectActiveLayout selects the layout of the active generation.
	selectActiveLayout = Register("layout of the active generation",
		`SELECT g.number, g.layout FROM keeper.active_generation a JOIN keeper.generation g ON g.number = a.generation`)
	upsertActive = Register("activate generation", `INSERT INTO keeper.active_generation (generation) VALUES ($1)
		ON CONFLICT (one) DO UPDATE SET generation = excluded.generation, since = clock_timestamp()`)
	insertSwitch = Register("record switch",
		`INSERT INTO keeper.generation_switch (generation, reason) VALUES ($1, $2)`)
	notifyGeneration = Register("notify switch", `SELECT pg_notify('state_changed', ''), pg_notify('generation_changed',
		'')`)
	selectGenerations = Register("generations",
		`SELECT g.number, g.layout, coalesce(g.partitions, 0), a.generation IS NOT NULL, g.followed,
		EXISTS (SELECT FROM keeper.generation_switch s WHERE s.generation = g.number)
		FROM keeper.generation g LEFT JOIN keeper.active_generation a ON a.generation = g.number
			WHERE g.dropped_at IS NULL ORDER BY g.number`)
	followGeneration = Register("follow generation",
		`UPDATE keeper.generation SET followed = $2 WHERE number = $1 AND dropped_at IS NULL`)
	followActive = Register("follow the active generation", `UPDATE keeper.generation SET followed = true
		WHERE number IN (SELECT generation FROM keeper.active_generation)`)
	selectNextNumber = Register("next generation", `SELECT coalesce(max(number), 0) + 1 FROM keeper.generation`)
)

// Generation is one rendering of the log topic into state.
type Generation struct {
	Number int
	// Layout is the version of the state schema it was created with.
	Layout int
	// Partitions is how many partitions the log topic has; 0 until the first claim.
	Partitions int
	Active     bool
	// Followed is true when statevm keeps it up to date although it may not be active: because it is being filled, or
	// kept for the way back.
	Followed bool
	// Served is true when it is or was active.
	Served bool
}

// Role is what a generation is there for: "active", "kept" for the way back, "filling", or "left" by statevm.
func (g Generation) Role() string {
	switch {
	case g.Active:
		return "active"
	case g.Followed && g.Served:
		return "kept"
	case g.Followed:
		return "filling"
	}
	return "left"
}

// Fits reports whether this build can read and write the generation.
func (g Generation) Fits() bool { return g.Layout == stateLayout }

// Reads reports whether it is filled from a log topic of so many partitions, or not filled at all yet.
func (g Generation) Reads(partitions int) bool {
	return g.Partitions == 0 || g.Partitions == partitions
}

// KeptUpToDate reports whether statevm keeps it so, from a log topic of so many partitions.
func (g Generation) KeptUpToDate(partitions int) bool {
	return (g.Active || g.Followed) && g.Fits() && g.Reads(partitions)
}

// Generations lists all generations that have not been dropped, oldest first.
func (db *DB) Generations(ctx context.Context) ([]Generation, error) {
	return List(ctx, db, "listing generations", pgx.RowToStructByPos[Generation], selectGenerations.SQL())
}

// AddGeneration creates the next generation, empty, and lets statevm fill it from the topic's beginning. Where there is
// one that will do, if that is given, it returns that one: however many ask at once get the same.
func (db *DB) AddGeneration(ctx context.Context, willDo func(Generation) bool) (number int, err error) {
	err = db.withGenerations(ctx, func(tx pgx.Tx) error {
		all, err := listGenerations(ctx, tx)
		if err != nil {
			return err
		}
		for _, g := range all {
			if willDo != nil && willDo(g) {
				number = g.Number
				return nil
			}
		}
		if err := tx.QueryRow(ctx, selectNextNumber.SQL()).Scan(&number); err != nil {
			return fmt.Errorf("numbering a generation: %w", err)
		}
		if err := createGeneration(ctx, tx, number); err != nil {
			return err
		}
		return follow(ctx, tx, number, true)
	})
	return number, err
}

// follow marks a generation to be kept up to date, or no longer.
func follow(ctx context.Context, tx pgx.Tx, number int, followed bool) error {
	tag, err := tx.Exec(ctx, followGeneration.SQL(), number, followed)
	if err == nil && tag.RowsAffected() == 0 {
		return Refusef("generation %d does not exist (see `keeperctl generations list`)", number)
	}
	if err == nil {
		_, err = tx.Exec(ctx, notifyGeneration.SQL())
	}
	if err != nil {
		return fmt.Errorf("marking generation %d: %w", number, err)
	}
	return nil
}

// ActiveGeneration returns the generation that readers use.
func (db *DB) ActiveGeneration(ctx context.Context) (int, error) {
	ctx, cancel := db.Bounded(ctx)
	defer cancel()
	return activeGeneration(ctx, db.pool)
}

// ErrApart is why two generations cannot be compared for the moment: they have not read equally far. Ask again.
var ErrApart = errors.New("the generations have not read equally far")

// Switch makes readers use another generation: one row changes, so that they see all of the old one or all of the new
// one. Both are kept up to date from then on, so that the way back is another call.
//
// Without a reason the two must be equal: the same rows in all tables, compared in the transaction that switches, with
// both standing at the same offsets; ErrApart means that they do not for the moment. A reason, which is recorded,
// switches without looking.
func (db *DB) Switch(ctx context.Context, to int, reason string) error {
	return db.lockedGenerations(ctx, pgx.RepeatableRead, func(tx pgx.Tx) error {
		if err := mayServe(ctx, tx, to); err != nil {
			return err
		}
		if reason == "" {
			from, err := activeGeneration(ctx, tx)
			if err != nil {
				return err
			}
			c, err := db.compare(ctx, tx, from, to)
			if err != nil {
				return err
			}
			if !c.SamePlace() {
				return ErrApart
			}
			if tables := c.Differing(); len(tables) > 0 {
				return Refusef("generation %d differs from generation %d in %v", to, from, tables)
			}
		}
		return activate(ctx, tx, to, reason)
	})
}

func mayServe(ctx context.Context, tx pgx.Tx, number int) error {
	all, err := listGenerations(ctx, tx)
	if err != nil {
		return err
	}
	for _, g := range all {
		switch {
		case g.Number != number:
		case !g.Fits():
			return Refusef("generation %d has state layout %d, this build needs %d", number, g.Layout, stateLayout)
		case g.Active:
			return Refusef("generation %d is the active one already", number)
		default:
			return nil
		}
	}
	return Refusef("generation %d does not exist (see `keeperctl generations list`)", number)
}

func listGenerations(ctx context.Context, tx pgx.Tx) ([]Generation, error) {
	all, err := Select(ctx, tx, pgx.RowToStructByPos[Generation], selectGenerations.SQL())
	if err != nil {
		return nil, fmt.Errorf("listing generations: %w", err)
	}
	return all, nil
}

func activate(ctx context.Context, tx pgx.Tx, generation int, reason string) error {
	for _, s := range []struct {
		*Statement
		args []any
	}{
		{followActive, nil},
		{upsertActive, []any{generation}},
		{followActive, nil},
		{insertSwitch, []any{generation, reason}},
		{notifyGeneration, nil},
	} {
		if _, err := tx.Exec(ctx, s.SQL(), s.args...); err != nil {
			return fmt.Errorf("switching to generation %d: %w", generation, err)
		}
	}
	return nil
}

// activeGeneration is the generation that readers use. It is ErrLayout where this build cannot read it: every look at
// the state asks here first, so that nothing is read of tables of another layout after a switch.
func activeGeneration(ctx context.Context, q Querier) (generation int, err error) {
	generation, layout, err := activeLayout(ctx, q)
	if err == nil && layout != stateLayout {
		return 0, fmt.Errorf("generation %d has state layout %d, this build needs %d: %w (fill a new generation from "+
			"the log topic, or start the build that made it)", generation, layout, stateLayout, ErrLayout)
	}
	return generation, err
}

func activeLayout(ctx context.Context, q Querier) (generation, layout int, err error) {
	err = q.QueryRow(ctx, selectActiveLayout.SQL()).Scan(&generation, &layout)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, fmt.Errorf("the database has no active generation: %w (run `keeperctl prepare`)", ErrSchema)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("reading the active generation: %w", err)
	}
	return generation, layout, nil
}
