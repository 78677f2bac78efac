package keeperctl

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/generation"
	"perpkeeper/pkg/operator/snapshot"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// A second state is begun only where every disk that can be asked has room for it.
func TestRoomForAnotherState(t *testing.T) {
	const state = 50 << 30
	for name, c := range map[string]struct {
		free    uint64
		err     error
		refused bool
	}{
		"room":                     {free: state + spared},
		"a byte too little":        {free: state + spared - 1, refused: true},
		"a disk that is not there": {err: errors.New("planted")},
	} {
		err := roomFor(state, []string{"/"}, func(string) (free, total uint64, err error) { return c.free, 0, c.err })
		if (err != nil) != c.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// emptyTopic is a log topic without records.
type emptyTopic struct{}

func (emptyTopic) Bounds(context.Context, string, int) (first, end int64, err error) {
	return 0, 0, nil
}

// A kind of accident: a second state that fills the disk stops the first one too. Neither a rebuild nor a restore
// begins where a disk has no room.
func TestNoSecondStateOnAFullDisk(t *testing.T) {
	const full = "/proc" // nothing can be put there, ever
	if free, _, err := space(full); err != nil || free > 0 {
		t.Skip("there is no file system here that is always full")
	}
	db, folder := pgtest.DB(t), t.TempDir()
	keeper := wire.Config{ChainID: 56, LogPartitions: 1}
	const name = "20200101T000000Z-56-1"
	manifest, err := json.Marshal(snapshot.Manifest{ChainID: keeper.ChainID, Layout: pg.StateLayout, Next: []int64{0}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(folder, name), 0o700),
		os.WriteFile(filepath.Join(folder, name, "manifest.json"), manifest, 0o600)); err != nil {
		t.Fatal(err)
	}
	r := Rebuilder{DB: db, Topic: emptyTopic{}, Keeper: keeper, Patience: time.Minute, Disks: []string{full},
		Show: func(generation.Progress) {}}
	for what, begin := range map[string]func() error{
		"rebuild": func() error { return r.Run(t.Context(), io.Discard) },
		"restore": func() error { return r.Restore(t.Context(), snapshot.In(folder), name, io.Discard) },
	} {
		if err := begin(); err == nil || !strings.Contains(err.Error(), "/proc has 0 MB left") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if all, err := db.Generations(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("there are %+v, %v", all, err)
	}
}
