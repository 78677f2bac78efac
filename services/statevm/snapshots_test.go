package statevm

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/snapshot"
	"perpkeeper/pkg/snapshot/store"
	"perpkeeper/pkg/snapshot/store/storetest"
)

// withState is a database with one partition whose block is final.
func withState(t *testing.T, s *site) {
	t.Helper()
	block := pg.Block{BlockRef: chain.BlockRef{Number: 7, Hash: chain.Hash{7}, Parent: chain.Hash{6}}}
	if err := claim(t, s.db, 1, 0, 1).Commit(t.Context(), pg.Commit{Next: 1, Finalized: block.BlockRef,
		Blocks: []pg.AppliedBlock{{Block: block}}}); err != nil {
		t.Fatal(err)
	}
}

// instance is a statevm that takes a snapshot a day.
func (s *site) instance(t *testing.T) *Statevm {
	t.Helper()
	cfg := s.config(1, s.dbURL)
	cfg.Snapshot.Every, cfg.Snapshot.Keep = 24*time.Hour, 2
	return New(cfg, zerolog.New(zerolog.NewTestWriter(t)), NewMetrics(prometheus.NewRegistry()), s.client, s.db)
}

// However many instances look at the same time, one takes the snapshot that is due, and none takes one that is not; the
// oldest go.
func TestOneInstanceTakesTheSnapshot(t *testing.T) {
	s := newSite(t)
	withState(t, s)
	in, err := store.Open(store.Config{Location: filepath.Join(t.TempDir(), "snapshots")})
	if err != nil {
		t.Fatal(err)
	}
	var instances []*Statevm
	for range 3 {
		instances = append(instances, s.instance(t))
	}
	for range 2 {
		var all sync.WaitGroup
		for _, i := range instances {
			all.Go(func() { i.takeSnapshot(t.Context(), in) })
		}
		all.Wait()
	}
	names, err := snapshot.List(t.Context(), in)
	if err != nil || len(names) != 1 {
		t.Fatalf("there are %v, %v", names, err)
	}
	if _, err := snapshot.Verify(t.Context(), in, names[0]); err != nil {
		t.Error(err)
	}
	var newest float64
	for _, i := range instances {
		newest = max(newest, testutil.ToFloat64(i.metrics.snapshots.newest))
		if n := testutil.ToFloat64(i.metrics.snapshots.failed); n != 0 {
			t.Errorf("%v failures are counted", n)
		}
	}
	if at, _ := snapshot.TakenAt(names[0]); newest != float64(at.Unix()) {
		t.Errorf("the newest is said to be of %v, and is of %s", newest, at)
	}
}

// The oldest snapshots go when one more is taken, and not before.
func TestOldSnapshotsGo(t *testing.T) {
	s := newSite(t)
	withState(t, s)
	memory := storetest.Memory{}
	for _, name := range []string{"20200101T000000Z-56-1", "20200102T000000Z-56-1", "20200103T000000Z-56-1"} {
		memory[name+"/manifest.json"], memory[name+"/partition-0.zst"] = nil, nil
	}
	i := s.instance(t)
	i.takeSnapshot(t.Context(), storetest.Failing{Store: memory, Err: errors.New("no space is left")})
	if names, _ := snapshot.List(t.Context(), memory); len(names) != 3 ||
		testutil.ToFloat64(i.metrics.snapshots.failed) != 1 {
		t.Errorf("after a failure there are %v", names)
	}
	i.takeSnapshot(t.Context(), memory)
	names, err := snapshot.List(t.Context(), memory)
	if err != nil || len(names) != 2 || names[0] != "20200103T000000Z-56-1" || len(memory) != 4 {
		t.Errorf("there are %v in %d files, %v", names, len(memory), err)
	}
}

// A keeper that has no state yet waits, and that is no failure.
func TestNoSnapshotOfNoState(t *testing.T) {
	s := newSite(t)
	i, memory := s.instance(t), storetest.Memory{}
	i.takeSnapshot(t.Context(), memory)
	if len(memory) != 0 || testutil.ToFloat64(i.metrics.snapshots.failed) != 0 {
		t.Errorf("there are %d files", len(memory))
	}
}
