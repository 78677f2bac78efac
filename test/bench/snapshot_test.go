package bench

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/generation"
	"perpkeeper/pkg/operator/snapshot"
	"perpkeeper/services/keeperctl"
)

// newFolder is a folder of snapshots, where there is pg_dump to make them.
func newFolder(tb testing.TB) (in snapshot.Folder, path string) {
	tb.Helper()
	if _, err := exec.LookPath("pg_dump"); err != nil {
		tb.Skip("PostgreSQL's client programs are not on this machine")
	}
	path = tb.TempDir()
	return snapshot.In(path), path
}

// PIPE-8: a snapshot is taken while the chain goes on, with blocks above the final one that are taken back later; the
// log topic then drops its beginning. A generation made of the snapshot and the rest of the topic equals the live one,
// which serves meanwhile; from the topic alone none can be made, and that is said.
func TestRestoreWithoutABeginning(t *testing.T) {
	n := newBench(t, 2)
	for range 60 {
		n.venue.publish(n.venue.next())
	}
	final := n.venue.tip
	n.venue.everywhere(wire.Finalized{Block: final})
	asked := n.venue.asked
	for range 3 {
		n.venue.publish(n.venue.next())
	}
	defer n.run()()
	n.await(1)
	in, path := newFolder(t)
	name, m, err := in.Create(t.Context(), n.db, n.cfg.Postgres, chainID)
	if err != nil {
		t.Fatal(err)
	}
	if m.Block != final.Number || m.Total() == 0 {
		t.Errorf("the snapshot is %+v", m)
	}
	// What was not final when the snapshot was taken leaves the chain.
	n.venue.everywhere(wire.Reorg{Reorg: chain.Reorg{Ancestor: final, OldTip: n.venue.tip}})
	n.venue.tip, n.venue.asked = final, asked
	for range 5 {
		n.venue.publish(n.venue.next())
	}
	n.await(1)
	for partition, next := range m.Next {
		if err := n.kafka.DeleteRecords(wire.LogTopic(chainID), partition, next); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	r := keeperctl.Rebuilder{DB: n.db, Topic: n.client, Keeper: n.cfg.Keeper, Patience: patience,
		Show: func(generation.Progress) { n.venue.publish(n.venue.next()) }}
	if err := r.Run(t.Context(), &out); err == nil || !strings.Contains(err.Error(), "snapshot restore") {
		t.Errorf("a rebuild from the topic alone: %v", err)
	}
	if err := r.Restore(t.Context(), in, name, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "generation 2 holds what generation 1 holds") {
		t.Errorf("it said %q", out.String())
	}
	n.switchTo(2)
	n.venue.publish(n.venue.next())
	n.await(1)
	n.await(2)

	refuse(t, n, r, in, path, name)
}

// refuse tries snapshots that cannot be used: one that was torn, and one that the topic no longer goes on from.
func refuse(t *testing.T, n *bench, r keeperctl.Rebuilder, in snapshot.Folder, path, name string) {
	t.Helper()
	restored := func(because string) {
		t.Helper()
		err := r.Restore(t.Context(), in, name, new(bytes.Buffer))
		if err == nil || !strings.Contains(err.Error(), because) {
			t.Errorf("got %v, want %q", err, because)
		}
	}
	if err := os.Truncate(filepath.Join(path, name, "toc.dat"), 100); err != nil {
		t.Fatal(err)
	}
	restored("nothing of it is in the database")
	m, err := in.Read(name)
	if err == nil {
		err = n.kafka.DeleteRecords(wire.LogTopic(chainID), 1, m.Next[1]+1)
	}
	if err != nil {
		t.Fatal(err)
	}
	restored("cannot be brought up to date")
	all, err := n.db.Generations(t.Context())
	if err != nil || len(all) != 2 {
		t.Errorf("there are generations %v, %v", all, err)
	}
}
