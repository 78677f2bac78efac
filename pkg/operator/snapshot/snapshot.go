// Package snapshot takes snapshots of the state's active generation with PostgreSQL's own pg_dump, and makes generations
// of them with pg_restore (PIPE-8). A snapshot is a folder of pg_dump with a manifest in it.
//
// # Guaranteed
//
//   - A snapshot is the generation as of one instant, with its offsets and its journal: a generation made of it goes on
//     with the next record of the log topic, and takes back what the topic takes back.
//   - The manifest comes last: without one a folder is no snapshot. Names ahead of now are none either.
//   - What takes or gives no bytes for a minute ends, and is an error. A generation is there whole, or not at all.
//
// # Not guaranteed
//
// Snapshots are not signed: who can write to the folder can write one.
package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"perpkeeper/pkg/pg"
)

const (
	// mute is for how long a program may neither write nor read a byte. The database keeps all old rows for it.
	mute = time.Minute
	// longest is for how long it may do so at all: the largest state takes minutes.
	longest = 2 * time.Hour
)

// Manifest says what a snapshot holds.
type Manifest struct {
	Taken   time.Time `json:"taken"`
	ChainID uint64    `json:"chain_id"`
	// Layout is the version of the state's tables; rows of another one cannot be restored.
	Layout     int `json:"layout"`
	Generation int `json:"generation"`
	// Block is final in all partitions: the rows can be taken back to it.
	Block uint64 `json:"block"`
	// Next is, of each partition of the log topic, the offset of the first record that is not in it.
	Next []int64 `json:"next_offsets"`
	// Rows is how many each table has.
	Rows map[string]int64 `json:"rows"`
}

// Total is how many rows all tables have.
func (m Manifest) Total() (n int64) {
	for _, rows := range m.Rows {
		n += rows
	}
	return n
}

// Fits returns an error, in one line, if a snapshot is not for this build or this keeper.
func (m Manifest) Fits(chainID uint64, partitions int) error {
	switch {
	case m.Layout != pg.StateLayout:
		return fmt.Errorf("it has state layout %d, this build needs %d (restore it with the build that took it, or "+
			"rebuild from the log topic)", m.Layout, pg.StateLayout)
	case m.ChainID != chainID:
		return fmt.Errorf("it is of chain %d, this keeper of chain %d", m.ChainID, chainID)
	case len(m.Next) != partitions:
		return fmt.Errorf("it is of a log topic of %d partitions, this keeper's has %d", len(m.Next), partitions)
	}
	return nil
}

// Folder is where snapshots of one keeper are kept.
type Folder struct {
	path          string
	mute, longest time.Duration
}

// In is the folder of that path.
func In(path string) Folder { return Folder{path: path, mute: mute, longest: longest} }

// timeLayout is how a name begins. Names in their order are snapshots in theirs.
const timeLayout = "20060102T150405Z"

var validName = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-[0-9]+-[0-9]+$`)

const manifestFile = "manifest.json"

// List names the snapshots, oldest first.
func (f Folder) List() (names []string, err error) {
	manifests, err := filepath.Glob(filepath.Join(f.path, "*", manifestFile))
	if _, missing := os.Stat(f.path); err == nil {
		err = missing
	}
	if err != nil {
		return nil, fmt.Errorf("listing snapshots: %w", err)
	}
	now := time.Now().UTC().Format(timeLayout)
	for _, m := range manifests {
		if name := filepath.Base(filepath.Dir(m)); validName.MatchString(name) && name[:len(now)] <= now {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Newest names the newest snapshot.
func (f Folder) Newest() (string, error) {
	names, err := f.List()
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("there are no snapshots in %s (keeperctl snapshot create takes one)", f.path)
	}
	if err != nil {
		return "", err
	}
	return names[len(names)-1], nil
}

// Read reads the manifest of a snapshot.
func (f Folder) Read(name string) (m Manifest, err error) {
	if !validName.MatchString(name) {
		return m, fmt.Errorf("%q is no name of a snapshot (keeperctl snapshot list shows them)", name)
	}
	text, err := os.ReadFile(filepath.Join(f.path, name, manifestFile))
	if errors.Is(err, os.ErrNotExist) {
		return m, fmt.Errorf("there is no snapshot %s in %s", name, f.path)
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, fmt.Errorf("snapshot %s: reading its manifest: %w", name, err)
	}
	return m, nil
}

// Create takes a snapshot of the active generation and returns its name. For what is refused see [pg.DB.Export].
func (f Folder) Create(ctx context.Context, db *pg.DB, at pg.Config, chainID uint64) (name string, m Manifest,
	err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, f.longest, fmt.Errorf("gave up after %s", f.longest))
	defer cancel()
	err = db.Export(ctx, func(ctx context.Context, e pg.Export) error {
		m = Manifest{Taken: time.Now().UTC().Truncate(time.Second), ChainID: chainID, Layout: pg.StateLayout,
			Generation: e.Generation, Block: min(e.Finalized().Number, e.Watermark.Number), Rows: e.Rows}
		for _, o := range e.Offsets {
			m.Next = append(m.Next, o.Next)
		}
		name = fmt.Sprintf("%s-%d-%d", m.Taken.Format(timeLayout), chainID, m.Block)
		path := filepath.Join(f.path, name)
		if err := os.Mkdir(path, 0o700); err != nil {
			return err
		}
		err := f.dump(ctx, path, at, e)
		if err == nil {
			err = m.write(path)
		}
		if err != nil && !errors.Is(err, errMute) {
			err = errors.Join(err, os.RemoveAll(path)) // a mute disk would keep this, too
		}
		return err
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return "", m, fmt.Errorf("taking a snapshot: %w", err)
	}
	return name, m, nil
}

// write puts the manifest beside a dump that is complete.
func (m Manifest) write(path string) error {
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	begun := filepath.Join(path, "manifest.begun")
	if err := os.WriteFile(begun, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(begun, filepath.Join(path, manifestFile))
}

// Verify reads all of a snapshot and holds it against its manifest. It asks no database.
func (f Folder) Verify(ctx context.Context, name string) (Manifest, error) {
	m, err := f.Read(name)
	if err != nil {
		return m, err
	}
	found := map[string]int64{}
	err = f.read(ctx, name, func(_ context.Context, t table) error {
		rows, err := t.count()
		found[t.name] += rows
		return err
	})
	for t, rows := range m.Rows {
		if err == nil && found[t] != rows {
			err = fmt.Errorf("table %s has %d rows and must have %d", t, found[t], rows)
		}
	}
	if err != nil {
		return m, fmt.Errorf("snapshot %s: %w", name, err)
	}
	return m, nil
}

// Restore makes a generation of a snapshot, beside those that there are. It is marked to be kept up to date, from the
// snapshot's offsets on. After an error there is no such generation.
func (f Folder) Restore(ctx context.Context, db *pg.DB, name string) (generation int, err error) {
	m, err := f.Read(name)
	if err != nil {
		return 0, err
	}
	generation, err = db.Restore(ctx, len(m.Next), m.Rows, func(ctx context.Context, to *pg.Restoring) error {
		return f.read(ctx, name, func(ctx context.Context, t table) error {
			_, err := to.Copy(ctx, t.name, t.columns, t)
			return err
		})
	})
	if err != nil {
		return 0, fmt.Errorf("restoring snapshot %s (nothing of it is in the database): %w", name, err)
	}
	return generation, nil
}
