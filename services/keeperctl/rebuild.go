package keeperctl

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/generation"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
)

// rebuild fills a new generation from the beginning of the log topic and compares it with the active one (PIPE-8).
func rebuild(ctx context.Context, s *session, _ []string) error {
	client, err := s.kafka()
	if err != nil {
		return err
	}
	db, err := s.unasked(ctx)
	if err != nil {
		return err
	}
	return s.rebuilder(db, client).Run(ctx, s.out)
}

// showProgress is over one line for a person, and a line each time for a program.
func (s *session) showProgress() func(generation.Progress) {
	if s.terminal != nil && !s.out.json {
		return progressTo(s.terminal, true)
	}
	return progressTo(s.out, false)
}

func (s *session) rebuilder(db *pg.DB, topic generation.Topic) Rebuilder {
	return Rebuilder{DB: db, Topic: topic, Keeper: s.Keeper, Patience: s.Own.Patience,
		Disks: s.Own.Disks, Show: s.showProgress()}
}

// Rebuilder watches over the filling of a generation. Statevm does the work, all of its instances together; killed and
// started again, a rebuilder goes on with the generation that is being filled.
type Rebuilder struct {
	DB       *pg.DB
	Topic    generation.Topic
	Keeper   wire.Config
	Patience time.Duration // how long nothing may go on
	Disks    []string      // folders of the file systems that the state may be on
	Show     func(generation.Progress)
}

// The time between two looks at the progress: it doubles from look to look, so that what takes a moment ends with it.
const (
	firstPause = 50 * time.Millisecond
	showEvery  = time.Second
)

// Run returns when the generation has caught up with the topic's end and equals the active one, or has given up on it.
func (r Rebuilder) Run(ctx context.Context, out io.Writer) error {
	if err := r.await(ctx); err != nil {
		return err
	}
	if err := r.room(ctx); err != nil {
		return err
	}
	filling, err := generation.Fill(ctx, r.DB, r.Topic, r.Keeper, r.Patience)
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

// spared is what has to be left of a disk beside a second state: Kafka and Postgres write on meanwhile.
const spared = 1 << 30

// room refuses to begin a second state where there is no room for it: a full disk stops what serves as well.
func (r Rebuilder) room(ctx context.Context) error {
	all, err := r.DB.Generations(ctx)
	if err != nil || generation.Filling(all, r.Keeper.LogPartitions) != 0 {
		return err
	}
	state, err := r.DB.StateBytes(ctx)
	if err != nil {
		return err
	}
	return roomFor(state, r.Disks, space)
}

func roomFor(state uint64, disks []string, space func(path string) (free, total uint64, err error)) error {
	for _, path := range disks {
		if free, _, err := space(path); err == nil && free < state+spared {
			return fmt.Errorf("%s has %d MB left, and another state takes up to %d MB (give the volume more, or drop "+
				"a generation)", path, free>>20, (state+spared)>>20)
		}
	}
	return nil
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
	active, err := generation.Active(ctx, r.DB)
	if err != nil {
		return err
	}
	if !active.Fits() {
		return sayf(out, "generation %d is filled; generation %d is of another layout and cannot be compared "+
			"(keeperctl generations switch %d, with a reason)\n", filling, active.Number, filling)
	}
	if !active.Reads(r.Keeper.LogPartitions) {
		return r.otherPartitions(ctx, filling, active, out)
	}
	c, err := generation.Compare(ctx, r.DB, active.Number, filling, r.Patience)
	if err != nil {
		return err
	}
	if tables := c.Differing(); len(tables) > 0 {
		return fmt.Errorf("generation %d differs from generation %d at block %d in %v", filling, active.Number,
			c.A.Watermark.Number, tables)
	}
	return sayf(out, "generation %d holds what generation %d holds, at block %d (keeperctl generations switch %d)\n",
		filling, active.Number, c.A.Watermark.Number, filling)
}

// otherPartitions ends the filling from a topic that took the place of another one, of another number of partitions:
// what was filled from that stands still, and the new one has to come as far.
func (r Rebuilder) otherPartitions(ctx context.Context, filling int, active pg.Generation, out io.Writer) error {
	now, err := r.DB.ProgressOf(ctx, filling)
	if err != nil {
		return err
	}
	before, err := r.DB.ProgressOf(ctx, active.Number)
	if err != nil {
		return err
	}
	stood := before.Watermark.Number + before.Skew() // the foremost partition's, also where none is common to all
	if now.Watermark.Number < stood {
		return fmt.Errorf("generation %d has all that the log topic has, up to block %d, and generation %d has block "+
			"%d: the scanner is still writing history (run this again)", filling, now.Watermark.Number, active.Number,
			stood)
	}
	return sayf(out, "generation %d is filled, up to block %d; generation %d stands at block %d of a topic of %d "+
		"partitions and cannot be compared (keeperctl generations switch %d, with a reason)\n", filling,
		now.Watermark.Number, active.Number, stood, active.Partitions, filling)
}

// follow shows how the filling goes on until it has reached the topic's end.
func (r Rebuilder) follow(ctx context.Context, filling int) error {
	var p generation.Progress
	moved := time.Now()
	for pause := firstPause; ; pause = min(2*pause, showEvery) {
		now, err := generation.Look(ctx, r.DB, r.Topic, r.Keeper, filling)
		if err != nil {
			return err
		}
		if now.Done > p.Done {
			moved = time.Now()
		}
		p = p.Next(now)
		r.Show(p)
		switch {
		case p.Done >= p.Total:
			return nil
		case time.Since(moved) > r.Patience:
			return fmt.Errorf("generation %d has stood at record %d of %d for %s (is statevm running, and is it "+
				"halted? /readyz and its log say so)",
				filling, p.Done, p.Total, r.Patience)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// progressTo shows progress to a person, on one line that is written over, or to a program, as a line of JSON each
// time.
func progressTo(out io.Writer, terminal bool) func(generation.Progress) {
	return func(p generation.Progress) {
		if !terminal {
			line, _ := json.Marshal(p) // numbers can always be written
			_, _ = fmt.Fprintf(out, "%s\n", line)
			return
		}
		left := "?"
		if p.Left >= 0 {
			left = (time.Duration(p.Left) * time.Second).String()
		}
		end := "\r"
		if p.Done >= p.Total {
			end = "\n"
		}
		_, _ = fmt.Fprintf(out, "generation %d: %5.1f %% (%d of %d records), %d records/s, %s left   %s",
			p.Generation, 100*float64(p.Done)/float64(max(p.Total, 1)), p.Done, p.Total, p.PerSecond, left, end)
	}
}
