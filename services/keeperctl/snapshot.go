package keeperctl

import (
	"context"
	"fmt"
	"io"
	"time"

	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/snapshot"
	"perpkeeper/pkg/operator/text"
)

// snapshots takes, lists, verifies and restores snapshots of the state (PIPE-8).
func snapshots(ctx context.Context, s *session, args []string) error {
	d := snapshotCommands{s}
	return verbs{"create": d.create, "list": d.list, "verify": d.verify, "restore": d.restore}.do(ctx, "snapshot", args)
}

// snapshotCommands is one invocation of the command.
type snapshotCommands struct{ *session }

func (d snapshotCommands) create(ctx context.Context, args []string) error {
	db, err := d.database(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	name, m, err := snapshot.In(args[0]).Create(ctx, db, d.Postgres, d.Keeper.ChainID)
	if err != nil {
		return err
	}
	return sayf(d.out, "snapshot %s: %d rows, in %s\n", name, m.Total(), time.Since(began).Round(time.Millisecond))
}

func (d snapshotCommands) list(_ context.Context, args []string) error {
	in := snapshot.In(args[0])
	names, err := in.List()
	if err != nil {
		return err
	}
	rows := newTable("snapshot", "taken", "generation", "layout", "final block", "rows", "usable")
	rows.empty = "no snapshots (keeperctl snapshot create takes one)"
	for _, name := range names {
		m, err := in.Read(name)
		usable := "yes"
		if err == nil {
			err = m.Fits(d.Keeper.ChainID, d.Keeper.LogPartitions)
		}
		if err != nil {
			usable = "no: " + err.Error()
		}
		rows.add(name, text.Moment(m.Taken), m.Generation, m.Layout, m.Block, m.Total(), usable)
	}
	return d.out.table(rows)
}

// chosen is the folder, and the snapshot that is named or the newest.
func chosen(args []string) (in snapshot.Folder, name string, err error) {
	in = snapshot.In(args[0])
	if len(args) > 1 {
		return in, args[1], nil
	}
	name, err = in.Newest()
	return in, name, err
}

func (d snapshotCommands) verify(ctx context.Context, args []string) error {
	in, name, err := chosen(args)
	if err != nil {
		return err
	}
	m, err := in.Verify(ctx, name)
	if err != nil {
		return err
	}
	return sayf(d.out, "snapshot %s has the %d rows that its manifest names, up to final block %d\n", name, m.Total(),
		m.Block)
}

// restore makes a generation of a snapshot, and has statevm bring it up to the end of the topic.
func (d snapshotCommands) restore(ctx context.Context, args []string) error {
	in, name, err := chosen(args)
	if err != nil {
		return err
	}
	client, err := d.kafka()
	if err != nil {
		return err
	}
	db, err := d.anyDatabase(ctx)
	if err != nil {
		return err
	}
	return d.rebuilder(db, client).Restore(ctx, in, name, d.out)
}

// Restore makes a generation of a snapshot, follows it to the end of the topic, and compares it with the active one.
func (r Rebuilder) Restore(ctx context.Context, in snapshot.Folder, name string, out io.Writer) error {
	m, err := in.Read(name)
	if err != nil {
		return err
	}
	if err := m.Fits(r.Keeper.ChainID, r.Keeper.LogPartitions); err != nil {
		return fmt.Errorf("snapshot %s: %w", name, err)
	}
	if err := r.continues(ctx, m); err != nil {
		return fmt.Errorf("snapshot %s: %w", name, err)
	}
	if err := r.await(ctx); err != nil {
		return err
	}
	if err := r.room(ctx); err != nil {
		return err
	}
	began := time.Now()
	filling, err := in.Restore(ctx, r.DB, name)
	if err != nil {
		return err
	}
	if err := sayf(out, "generation %d holds the %d rows of snapshot %s, after %s\n", filling, m.Total(), name,
		time.Since(began).Round(time.Millisecond)); err != nil {
		return err
	}
	return r.finish(ctx, filling, out)
}

// continues refuses a snapshot whose offsets the topic does not have.
func (r Rebuilder) continues(ctx context.Context, m snapshot.Manifest) error {
	ctx, cancel := r.patient(ctx)
	defer cancel()
	for partition, next := range m.Next {
		first, end, err := r.Topic.Bounds(ctx, wire.LogTopic(r.Keeper.ChainID), partition)
		if err != nil {
			return err
		}
		if next < first || next > end {
			return fmt.Errorf("it goes on at record %d of partition %d, and the log topic has records %d to %d: it "+
				"cannot be brought up to date (take a newer one)", next, partition, first, end-1)
		}
	}
	return nil
}
