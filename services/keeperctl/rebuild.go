package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/wire"
)

// rebuild fills a new generation from the beginning of the log topic and compares it with the active one (PIPE-8).
func rebuild(ctx context.Context, s *session, _ []string) error {
	client, err := s.kafka()
	if err != nil {
		return err
	}
	defer client.Close()
	db, err := pg.Open(ctx, s.Postgres, program)
	if err != nil {
		return notAsked(fmt.Errorf("opening postgres: %w", err))
	}
	defer db.Close()
	r := Rebuilder{DB: db, Topic: client, Keeper: s.Keeper, Patience: s.Own.Patience, Show: s.showProgress()}
	return r.Run(ctx, s.out)
}

// showProgress is over one line for a person, and a line each time for a program.
func (s *session) showProgress() func(Progress) {
	if s.terminal != nil && !s.out.json {
		return progressTo(s.terminal, true)
	}
	return progressTo(s.out, false)
}

// Rebuilder watches over the filling of a generation. Statevm does the work, all of its instances together; killed and
// started again, a rebuilder goes on with the generation that is being filled.
type Rebuilder struct {
	DB       *pg.DB
	Topic    boundsOf
	Keeper   wire.Config
	Patience time.Duration // how long nothing may go on
	Show     func(Progress)
}

// showEvery is how long lies between two looks at the progress.
const showEvery = time.Second

// Run returns when the generation has caught up with the topic's end and equals the active one, or has given up on it.
func (r Rebuilder) Run(ctx context.Context, out io.Writer) error {
	if err := r.await(ctx); err != nil {
		return err
	}
	filling, err := r.generation(ctx)
	if err != nil {
		return err
	}
	return r.finish(ctx, filling, out)
}

// await waits for a database of this build's version.
func (r Rebuilder) await(ctx context.Context) error {
	ctx, cancel := r.patient(ctx)
	defer cancel()
	return r.DB.AwaitVersion(ctx, retry.Policy{Initial: 200 * time.Millisecond, Max: 2 * time.Second})
}

// patient is a context that ends when patience does.
func (r Rebuilder) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, r.Patience, fmt.Errorf("gave up after %s (keeperctl.patience)", r.Patience))
}

// finish follows a generation to the topic's end and compares it with the active one.
func (r Rebuilder) finish(ctx context.Context, filling int, out io.Writer) error {
	if err := r.follow(ctx, filling); err != nil {
		return err
	}
	active, err := r.active(ctx)
	if err != nil {
		return err
	}
	if !active.Fits() {
		_, err := fmt.Fprintf(out,
			"generation %d is filled; generation %d is of another layout and cannot be compared "+
				"(keeperctl generations switch %d, with a reason)\n",
			filling, active.Number, filling)
		return err
	}
	c, err := compareWhenLevel(ctx, r.DB, active.Number, filling, r.Patience)
	if err != nil {
		return err
	}
	if tables := c.Differing(); len(tables) > 0 {
		return fmt.Errorf("generation %d differs from generation %d at block %d in %v", filling, active.Number,
			c.A.Watermark.Number, tables)
	}
	_, err = fmt.Fprintf(out,
		"generation %d holds what generation %d holds, at block %d (keeperctl generations switch %d)\n",
		filling, active.Number, c.A.Watermark.Number, filling)
	return err
}

// active returns the generation that readers use.
func (r Rebuilder) active(ctx context.Context) (pg.Generation, error) {
	all, err := r.DB.Generations(ctx)
	if err != nil {
		return pg.Generation{}, err
	}
	i := slices.IndexFunc(all, func(g pg.Generation) bool { return g.Active })
	if i < 0 {
		return pg.Generation{}, errors.New("the database has no active generation (run keeperctl prepare)")
	}
	return all[i], nil
}

// generation returns the number of the generation to fill: the one that is being filled, or a new one.
func (r Rebuilder) generation(ctx context.Context) (filling int, err error) {
	all, err := r.DB.Generations(ctx)
	if err != nil {
		return 0, err
	}
	for _, g := range all {
		if g.Followed && !g.Served && g.Fits() {
			filling = g.Number
		}
	}
	if filling != 0 {
		return filling, nil
	}
	asking, cancel := r.patient(ctx)
	defer cancel()
	whole, err := hasBeginning(asking, r.Topic, r.Keeper)
	if err != nil {
		return 0, err
	}
	if !whole {
		return 0, errors.New("the log topic no longer has its first records (keeper.log_retention): fill the " +
			"generation from a snapshot (keeperctl snapshot restore latest)")
	}
	return r.DB.AddGeneration(ctx)
}

// follow shows how the filling goes on until it has reached the topic's end.
func (r Rebuilder) follow(ctx context.Context, generation int) error {
	tick := time.NewTicker(showEvery)
	defer tick.Stop()
	var p Progress
	moved := time.Now()
	for {
		now, err := r.look(ctx, generation)
		if err != nil {
			return err
		}
		if now.Done > p.Done {
			moved = time.Now()
		}
		p = p.next(now)
		r.Show(p)
		switch {
		case p.Done >= p.Total:
			return nil
		case time.Since(moved) > r.Patience:
			return fmt.Errorf("generation %d has stood at record %d of %d for %s (is statevm running, and is it "+
				"halted? /readyz and its log say so)",
				generation, p.Done, p.Total, r.Patience)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// look asks how far a generation is.
func (r Rebuilder) look(ctx context.Context, generation int) (p Progress, err error) {
	at, err := r.DB.StandingOf(ctx, generation)
	if err != nil {
		return p, err
	}
	p = Progress{Generation: generation, at: time.Now()}
	for _, o := range at.Offsets {
		p.Done += o.Next
	}
	for partition := range r.Keeper.LogPartitions {
		_, end, err := r.Topic.Bounds(ctx, wire.LogTopic(r.Keeper.ChainID), partition)
		if err != nil {
			return p, err
		}
		p.Total += end
	}
	return p, nil
}

// compareWhenLevel compares two generations as soon as both stand at the same place.
func compareWhenLevel(ctx context.Context, db *pg.DB, a, b int, patience time.Duration) (c pg.Comparison, err error) {
	err = whenLevel(ctx, db, patience, func(ctx context.Context) error {
		if c, err = db.Compare(ctx, a, b); err == nil && !c.SamePlace() {
			err = pg.ErrApart
		}
		return err
	})
	return c, err
}

// whenLevel tries again at every change for as long as two generations have not read equally far.
func whenLevel(ctx context.Context, db *pg.DB, patience time.Duration, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience,
		fmt.Errorf("gave up after %s (is one of the two not kept up to date?)", patience))
	defer cancel()
	changes := db.Listener()
	defer changes.Close()
	for {
		err := try(ctx)
		if !errors.Is(err, pg.ErrApart) {
			return err
		}
		if changes.WaitChange(ctx) != nil {
			return fmt.Errorf("%w: %w", err, context.Cause(ctx))
		}
	}
}
