// Package backup takes snapshots of the state's active generation, and makes generations of them.
//
// # Guaranteed
//
//   - A snapshot is the generation as of one instant, with its offsets and its journal: a generation made of it goes on
//     with the next record of the log topic, and takes back what the topic takes back, to the block that was final when
//     the snapshot was taken and below it as far as the original could.
//   - Neither holds up what serves: taking reads, and restoring writes tables that nobody sees until all rows are there
//     and every checksum was right.
package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/snapshot"
)

// ErrFresh is why no snapshot is taken: there is one that is new enough.
var ErrFresh = errors.New("there is a snapshot that is new enough")

// Take takes a snapshot of the active generation. Unless age is zero it does so only where the newest snapshot is older
// than that; ErrFresh says that it is not. For errors of the database see [pg.DB.Export].
func Take(ctx context.Context, db *pg.DB, to snapshot.Store, chainID uint64, age time.Duration) (m snapshot.Manifest,
	err error) {
	err = db.Export(ctx, func(ctx context.Context, e *pg.Export) error {
		now := time.Now().UTC().Truncate(time.Second)
		if err := fresh(ctx, to, now.Add(-age), age); err != nil {
			return err
		}
		m, err = snapshot.Write(ctx, to, manifestOf(e.Standing, chainID, now),
			func(ctx context.Context, part int, w *snapshot.Writer) error {
				for _, table := range pg.StateTables() {
					rows := func(out io.Writer) (int64, error) { return e.Copy(ctx, part, table, out) }
					if err := w.Table(table, rows); err != nil {
						return err
					}
				}
				return nil
			})
		return err
	})
	return m, err
}

// fresh is asked while nobody else takes a snapshot.
func fresh(ctx context.Context, in snapshot.Source, since time.Time, age time.Duration) error {
	if age == 0 {
		return nil
	}
	newest, err := Newest(ctx, in)
	if err == nil && newest.After(since) {
		return ErrFresh
	}
	return err
}

// Newest is when the newest snapshot was taken; zero where there is none.
func Newest(ctx context.Context, in snapshot.Source) (at time.Time, err error) {
	names, err := snapshot.List(ctx, in)
	if err == nil && len(names) > 0 {
		at, _ = snapshot.TakenAt(names[len(names)-1])
	}
	return at, err
}

func manifestOf(s pg.Standing, chainID uint64, now time.Time) snapshot.Manifest {
	m := snapshot.Manifest{Layout: pg.StateLayout, ChainID: chainID, Generation: s.Generation, Taken: now}
	for _, o := range s.Offsets {
		m.Parts = append(m.Parts, snapshot.Part{Partition: o.Partition, Next: o.Next, Tip: o.Tip.BlockRef,
			Final: lower(o.Tip.BlockRef, o.Finalized)})
	}
	return m
}

// lower is the finalized block, or the tip where that is below it.
func lower(tip, finalized chain.BlockRef) chain.BlockRef {
	if tip.Number < finalized.Number {
		return tip
	}
	return finalized
}

// Fits returns an error, in one line, if a snapshot is not for this build or this keeper.
func Fits(m snapshot.Manifest, chainID uint64, partitions int) error {
	switch {
	case m.Layout != pg.StateLayout:
		return fmt.Errorf("snapshot %s has state layout %d, this build needs %d (restore it with the build that took "+
			"it, or rebuild from the log topic)", m.Name(), m.Layout, pg.StateLayout)
	case m.ChainID != chainID:
		return fmt.Errorf("snapshot %s is of chain %d, this keeper of chain %d", m.Name(), m.ChainID, chainID)
	case len(m.Parts) != partitions:
		return fmt.Errorf("snapshot %s is of a log topic of %d partitions, this keeper's has %d", m.Name(),
			len(m.Parts), partitions)
	}
	return nil
}

// Restore makes a generation of a snapshot, beside those that there are. It is marked to be kept up to date, from the
// snapshot's offsets on. After an error there is no such generation.
func Restore(ctx context.Context, db *pg.DB, from snapshot.Source, m snapshot.Manifest) (generation int, err error) {
	bring := func(ctx context.Context, part int, to *pg.Import) error {
		return snapshot.ReadPart(ctx, from, m, part, func(table string, rows io.Reader) error {
			_, err := to.Copy(ctx, table, rows)
			return err
		})
	}
	return db.Import(ctx, len(m.Parts), m.TableRows(), bring)
}
