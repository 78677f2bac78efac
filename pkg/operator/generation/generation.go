// Package generation fills, compares and switches generations of the state (PIPE-8), for the command line and the
// console alike. Statevm does the work of filling; nothing here holds a generation's rows.
//
// Guaranteed: two generations are compared, and a switch without a reason is made, only while both stand at the same
// place. Not guaranteed: that they come to stand there; who asks says for how long to wait.
package generation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
)

// Topic returns which records a partition of a topic has.
type Topic interface {
	Bounds(ctx context.Context, topic string, partition int) (first, end int64, err error)
}

// HasBeginning reports whether the log topic still has its first records.
func HasBeginning(ctx context.Context, topic Topic, keeper wire.Config) (bool, error) {
	for partition := range keeper.LogPartitions {
		first, _, err := topic.Bounds(ctx, wire.LogTopic(keeper.ChainID), partition)
		if err != nil || first > 0 {
			return false, err
		}
	}
	return true, nil
}

// IsFilled reports whether a generation is being filled from a log topic of so many partitions.
func IsFilled(g pg.Generation, partitions int) bool {
	return !g.Served && g.KeptUpToDate(partitions)
}

// Filling returns the number of the generation that is being filled from a log topic of so many partitions, 0 where
// none is.
func Filling(all []pg.Generation, partitions int) (number int) {
	for _, g := range all {
		if IsFilled(g, partitions) {
			number = g.Number
		}
	}
	return number
}

// Fill returns the number of the generation that is being filled from the beginning of the log topic: there is one
// already, or one is made. patience bounds how long the topic is asked.
func Fill(ctx context.Context, db *pg.DB, topic Topic, keeper wire.Config, patience time.Duration) (int, error) {
	all, err := db.Generations(ctx)
	if err != nil {
		return 0, err
	}
	if filling := Filling(all, keeper.LogPartitions); filling != 0 {
		return filling, nil
	}
	asking, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("gave up after %s", patience))
	defer cancel()
	whole, err := HasBeginning(asking, topic, keeper)
	if err != nil {
		return 0, err
	}
	if !whole {
		return 0, errors.New("the log topic no longer has its first records (keeper.log_retention): fill the " +
			"generation from a snapshot (keeperctl snapshot restore)")
	}
	return db.AddGeneration(ctx, func(g pg.Generation) bool { return IsFilled(g, keeper.LogPartitions) })
}

// Active returns the generation that readers use.
func Active(ctx context.Context, db *pg.DB) (pg.Generation, error) {
	all, err := db.Generations(ctx)
	if err != nil {
		return pg.Generation{}, err
	}
	return ActiveOf(all)
}

// ActiveOf returns the generation of a list that readers use.
func ActiveOf(all []pg.Generation) (pg.Generation, error) {
	i := slices.IndexFunc(all, func(g pg.Generation) bool { return g.Active })
	if i < 0 {
		return pg.Generation{}, errors.New("the database has no active generation (run keeperctl prepare)")
	}
	return all[i], nil
}

// MustExist refuses a number that no generation has.
func MustExist(ctx context.Context, db *pg.DB, number int) error {
	all, err := db.Generations(ctx)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(g pg.Generation) bool { return g.Number == number }) {
		return nil
	}
	return fmt.Errorf("generation %d does not exist (keeperctl generations list shows those that do)", number)
}

// Compare compares two generations as soon as both stand at the same place, see [pg.DB.Compare]. It reads all rows of
// both. patience is for how long they may come to stand there; comparing takes as long as it takes.
func Compare(ctx context.Context, db *pg.DB, a, b int, patience time.Duration) (c pg.Comparison, err error) {
	for _, number := range []int{a, b} {
		if err := MustExist(ctx, db, number); err != nil {
			return c, err
		}
	}
	err = whenLevel(ctx, db, patience, func(ctx context.Context) error {
		if c, err = db.Compare(ctx, a, b); err == nil && !c.SamePlace() {
			err = pg.ErrApart
		}
		return err
	})
	return c, err
}

// Switch has readers use another generation. Without a reason the two have to be equal, see [pg.DB.Switch].
func Switch(ctx context.Context, db *pg.DB, to int, reason string, patience time.Duration) error {
	if err := MustExist(ctx, db, to); err != nil {
		return err
	}
	return whenLevel(ctx, db, patience, func(ctx context.Context) error { return db.Switch(ctx, to, reason) })
}

// whenLevel tries again at every change for as long as two generations have not read equally far. What tries is not
// held to the patience: how long whole tables take is no matter of it.
func whenLevel(ctx context.Context, db *pg.DB, patience time.Duration, try func(context.Context) error) error {
	waiting, cancel := context.WithTimeoutCause(ctx, patience,
		fmt.Errorf("gave up after %s (is one of the two not kept up to date?)", patience))
	defer cancel()
	changes := db.Listener()
	defer changes.Close()
	for {
		err := try(ctx)
		if !errors.Is(err, pg.ErrApart) {
			return err
		}
		if changes.WaitChange(waiting) != nil {
			return fmt.Errorf("%w: %w", err, context.Cause(waiting))
		}
	}
}

// Progress is how far the filling of a generation is, in records of the log topic.
type Progress struct {
	Generation int   `json:"generation"`
	Done       int64 `json:"done"`
	Total      int64 `json:"total"`
	PerSecond  int64 `json:"per_second"`
	// Left is the time until the end at this pace, in seconds; -1 while nobody knows.
	Left int64 `json:"left_s"`

	at, since time.Time
	from      int64 // Done at since
}

// Look asks how far a generation is.
func Look(ctx context.Context, db *pg.DB, topic Topic, keeper wire.Config, generation int) (p Progress, err error) {
	at, err := db.ProgressOf(ctx, generation)
	if err != nil {
		return p, err
	}
	p = Progress{Generation: generation, Left: -1, at: time.Now()}
	for _, o := range at.Offsets {
		p.Done += o.Next
	}
	for partition := range keeper.LogPartitions {
		_, end, err := topic.Bounds(ctx, wire.LogTopic(keeper.ChainID), partition)
		if err != nil {
			return p, err
		}
		p.Total += end
	}
	return p, nil
}

// Next takes in a later look: the pace is that since the first one.
func (p Progress) Next(now Progress) Progress {
	now.since, now.from, now.Left = p.since, p.from, -1
	if p.since.IsZero() {
		now.since, now.from = now.at, now.Done
	}
	if passed := now.at.Sub(now.since); passed > 0 {
		now.PerSecond = int64(float64(now.Done-now.from) / passed.Seconds())
	}
	if now.PerSecond > 0 {
		now.Left = max(now.Total-now.Done, 0) / now.PerSecond
	}
	return now
}
