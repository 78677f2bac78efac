package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"perpkeeper/pkg/backup"
	"perpkeeper/pkg/operator/generation"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/snapshot"
	"perpkeeper/pkg/snapshot/store"
	"perpkeeper/pkg/wire"
)

// snapshots takes, lists, verifies and restores snapshots of the state (PIPE-8).
func snapshots(ctx context.Context, s *session, args []string) error {
	in, err := store.Open(s.Snapshot)
	if err != nil {
		return notAsked(err)
	}
	d := snapshotCommands{s, in}
	return verbs{"create": d.create, "list": d.list, "verify": d.verify, "restore": d.restore}.do(ctx, "snapshot", args)
}

// snapshotCommands is one invocation of the command.
type snapshotCommands struct {
	*session

	in snapshot.Store
}

func (d snapshotCommands) create(ctx context.Context, _ []string) error {
	db, err := d.database(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	m, err := backup.Take(ctx, db, d.in, d.Keeper.ChainID, 0)
	if err != nil {
		return fmt.Errorf("taking a snapshot: %w", err)
	}
	removed, err := snapshot.Prune(ctx, d.in, d.Snapshot.Keep, time.Now())
	if err != nil {
		return fmt.Errorf("snapshot %s is taken, but: %w", m.Name(), err)
	}
	return sayf(d.out, "snapshot %s: %d rows, %d bytes, in %s; %d older removed (snapshot.keep)\n", m.Name(), m.Rows(),
		m.Bytes(), time.Since(began).Round(time.Millisecond), len(removed))
}

func (d snapshotCommands) list(ctx context.Context, _ []string) error {
	names, err := snapshot.List(ctx, d.in)
	if err != nil {
		return err
	}
	rows := newTable("snapshot", "taken", "generation", "layout", "final block", "rows", "bytes", "usable")
	rows.empty = "no snapshots (keeperctl snapshot create takes one, snapshot.every has statevm take them)"
	for _, name := range names {
		m, err := snapshot.Read(ctx, d.in, name)
		usable := "yes"
		if err == nil {
			err = backup.Fits(m, d.Keeper.ChainID, d.Keeper.LogPartitions)
		}
		if err != nil {
			usable = "no: " + err.Error()
		}
		at, _ := snapshot.TakenAt(name)
		rows.add(name, text.Moment(at), m.Generation, m.Layout, m.FinalBlock().Number, m.Rows(), m.Bytes(), usable)
	}
	return d.out.table(rows)
}

// name finds the newest for "latest".
func (d snapshotCommands) name(ctx context.Context, name string) (string, error) {
	if name != "latest" {
		return name, nil
	}
	names, err := snapshot.List(ctx, d.in)
	if err == nil && len(names) == 0 {
		err = errors.New("there are no snapshots (keeperctl snapshot create takes one)")
	}
	if err != nil {
		return "", err
	}
	return names[len(names)-1], nil
}

func (d snapshotCommands) verify(ctx context.Context, args []string) error {
	name, err := d.name(ctx, args[0])
	if err != nil {
		return err
	}
	m, err := snapshot.Verify(ctx, d.in, name)
	if err != nil {
		return err
	}
	return sayf(d.out, "snapshot %s is what was written: %d rows of %d partitions, up to final block %d\n", name,
		m.Rows(), len(m.Parts), m.FinalBlock().Number)
}

// restore makes a generation of a snapshot, and has statevm bring it up to the end of the topic.
func (d snapshotCommands) restore(ctx context.Context, args []string) error {
	client, err := d.kafka()
	if err != nil {
		return err
	}
	db, err := d.anyDatabase(ctx)
	if err != nil {
		return err
	}
	name, err := d.name(ctx, args[0])
	if err != nil {
		return err
	}
	return d.rebuilder(db, client).Restore(ctx, d.in, name, d.out)
}

// Restore makes a generation of a snapshot, follows it to the end of the topic, and compares it with the active one.
func (r Rebuilder) Restore(ctx context.Context, in snapshot.Source, name string, out io.Writer) error {
	m, err := snapshot.Read(ctx, in, name)
	if err != nil {
		return err
	}
	if err := backup.Fits(m, r.Keeper.ChainID, r.Keeper.LogPartitions); err != nil {
		return err
	}
	if err := r.continues(ctx, m); err != nil {
		return err
	}
	if err := r.await(ctx); err != nil {
		return err
	}
	began := time.Now()
	filling, err := backup.Restore(ctx, r.DB, in, m)
	if err != nil {
		return fmt.Errorf("restoring snapshot %s (nothing of it is in the database): %w", name, err)
	}
	if err := sayf(out, "generation %d holds the %d rows of snapshot %s, after %s\n", filling, m.Rows(), name,
		time.Since(began).Round(time.Millisecond)); err != nil {
		return err
	}
	return r.finish(ctx, filling, out)
}

// continues refuses a snapshot whose offsets the topic does not have.
func (r Rebuilder) continues(ctx context.Context, m snapshot.Manifest) error {
	ctx, cancel := r.patient(ctx)
	defer cancel()
	for _, p := range m.Parts {
		first, end, err := r.Topic.Bounds(ctx, wire.LogTopic(r.Keeper.ChainID), p.Partition)
		if err != nil {
			return err
		}
		if p.Next < first || p.Next > end {
			return fmt.Errorf("snapshot %s goes on at record %d of partition %d, and the log topic has records %d to "+
				"%d: it cannot be brought up to date (take a newer one)", m.Name(), p.Next, p.Partition, first, end-1)
		}
	}
	return nil
}

// checkRetention refuses a log topic that drops records where nothing is left to rebuild from.
func (s *session) checkRetention(ctx context.Context, topic generation.Topic) error {
	retention := s.Keeper.LogRetention
	if err := s.Snapshot.Allows(retention); err != nil || retention == 0 {
		return err
	}
	whole, err := generation.HasBeginning(ctx, topic, s.Keeper)
	if err != nil || whole {
		return err
	}
	in, err := store.Open(s.Snapshot)
	if err != nil {
		return err
	}
	newest, err := backup.Newest(ctx, in)
	if err == nil && time.Since(newest) > retention {
		age := "there is no snapshot"
		if !newest.IsZero() {
			age = "the newest snapshot is " + time.Since(newest).Round(time.Minute).String() + " old"
		}
		err = fmt.Errorf("the log topic has dropped its beginning (keeper.log_retention is %s), and %s: the state "+
			"could not be rebuilt (keeperctl snapshot create)", retention, age)
	}
	return err
}
