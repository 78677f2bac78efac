package bench

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/generation"
	"perpkeeper/pkg/operator/snapshot"
	"perpkeeper/pkg/pg"
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

// PIPE-8: how long a generation takes from a snapshot, and from the first record of the topic, while both come to hold
// the same; the chain goes on meanwhile, at three blocks a second. BLOCKS= is how long the history is.
func BenchmarkRestore(b *testing.B) {
	n, blocks := newBench(b, 4), 4000
	if text := os.Getenv("BLOCKS"); text != "" {
		var err error
		if blocks, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	for range blocks {
		n.venue.publish(n.venue.next())
	}
	n.venue.everywhere(wire.Finalized{Block: n.venue.tip})
	stop := n.run()
	defer stop()
	n.await(1)
	in, path := newFolder(b)
	began := time.Now()
	name, m, err := in.Create(b.Context(), n.db, n.cfg.Postgres, chainID)
	if err != nil {
		b.Fatal(err)
	}
	taking := time.Since(began)
	ctx, cancel := context.WithCancel(b.Context())
	load := make(chan struct{})
	go func() {
		defer close(load)
		tick := time.NewTicker(333 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				n.venue.publish(n.venue.next())
			}
		}
	}()
	var importing, restoring, replaying time.Duration
	var restored, replayed int
	for b.Loop() {
		began = time.Now()
		if restored, err = in.Restore(b.Context(), n.db, name); err != nil {
			b.Fatal(err)
		}
		importing += time.Since(began)
		equal(b, n.db, restored)
		restoring += time.Since(began)
		began = time.Now()
		if replayed, err = n.db.AddGeneration(b.Context(), nil); err != nil {
			b.Fatal(err)
		}
		equal(b, n.db, replayed)
		replaying += time.Since(began)
	}
	cancel()
	<-load
	n.sameChecksums(1, restored, replayed)
	b.ReportMetric(taking.Seconds(), "take-s")
	b.ReportMetric(float64(bytesIn(b, path))/float64(m.Total()), "bytes/row")
	b.ReportMetric(float64(m.Total()), "rows")
	b.ReportMetric(importing.Seconds()/float64(b.N), "import-s")
	b.ReportMetric(restoring.Seconds()/float64(b.N), "restore-s")
	b.ReportMetric(replaying.Seconds()/float64(b.N), "replay-s")
	b.ReportMetric(replaying.Seconds()/restoring.Seconds(), "x")
	b.ReportMetric(0, "ns/op")
}

// bytesIn is how large the files below a folder are.
func bytesIn(b *testing.B, path string) (bytes int64) {
	b.Helper()
	files, err := filepath.Glob(filepath.Join(path, "*", "*"))
	for _, file := range files {
		info, statErr := os.Stat(file)
		if err = errors.Join(err, statErr); err == nil {
			bytes += info.Size()
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	return bytes
}

// sameChecksums awaits that generations stand at the venue's last block, and wants their checksums to be the same.
func (n *bench) sameChecksums(generations ...int) {
	n.tb.Helper()
	var want pg.Checksums
	for _, generation := range generations {
		n.await(generation)
		sums, _, err := n.db.Checksums(context.Background(), generation)
		if err != nil {
			n.tb.Fatal(err)
		}
		if want != nil && !maps.Equal(sums, want) {
			n.tb.Errorf("generation %d has the checksums %v, want %v", generation, sums, want)
		}
		want = sums
	}
}

// equal returns when a generation holds what generation 1 holds.
func equal(b *testing.B, db *pg.DB, generation int) {
	b.Helper()
	l := db.Listener()
	defer l.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		c, err := db.Compare(ctx, 1, generation)
		if err != nil {
			b.Fatal(err)
		}
		if c.SamePlace() {
			if tables := c.Differing(); len(tables) > 0 {
				b.Fatalf("generation %d differs in %v", generation, tables)
			}
			return
		}
		if err := l.WaitChange(ctx); err != nil {
			b.Fatalf("generation %d: %v", generation, err)
		}
	}
}
