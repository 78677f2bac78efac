package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Source is where snapshots are kept, for readers. Names are relative, with slashes.
type Source interface {
	// Open reads a file. The error is fs.ErrNotExist where there is none.
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	// List names all files.
	List(ctx context.Context) ([]string, error)
}

// Store is where snapshots are kept. A file is there as a whole or not at all.
type Store interface {
	Source
	// Put writes a file, in place of one that has the name. If content ends with an error nothing is written.
	Put(ctx context.Context, name string, content io.Reader) error
	// Delete removes a file; that there is none is no error.
	Delete(ctx context.Context, name string) error
}

// Write writes a snapshot: fill writes the tables of each partition that the manifest names, and what is known of files
// and tables is filled in. It is there when Write has returned without an error, and not before.
func Write(ctx context.Context, to Store, m Manifest, fill func(context.Context, int, *Writer) error) (Manifest,
	error) {
	m.Format = format
	m.Parts = slices.Clone(m.Parts)
	for i := range m.Parts {
		p := &m.Parts[i]
		p.File = fileOf(p.Partition)
		if err := writeFile(ctx, to, path.Join(m.Name(), p.File), p, fill); err != nil {
			return Manifest{}, fmt.Errorf("writing partition %d of snapshot %s: %w", p.Partition, m.Name(), err)
		}
	}
	text, err := m.encode()
	if err == nil {
		err = to.Put(ctx, path.Join(m.Name(), manifestFile), bytes.NewReader(text))
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("writing the manifest of snapshot %s: %w", m.Name(), err)
	}
	return m, nil
}

// writeFile writes one partition while the store takes it.
func writeFile(ctx context.Context, to Store, name string, p *Part,
	fill func(context.Context, int, *Writer) error) error {
	content, in := io.Pipe()
	stored := make(chan error, 1)
	go func() {
		err := to.Put(ctx, name, content)
		_ = content.CloseWithError(err) // whoever fills is told why nobody takes it any more
		stored <- err
	}()
	w, err := newWriter(in)
	if err == nil {
		err = fill(ctx, p.Partition, w)
	}
	if err == nil {
		err = w.close()
	}
	_ = in.CloseWithError(err) // without an error it is the end
	if putting := <-stored; err == nil {
		err = putting
	}
	if err == nil {
		p.Bytes, p.Sum, p.Tables = w.out.bytes, w.out.hex(), w.tables
	}
	return err
}

// Read reads what a snapshot is.
func Read(ctx context.Context, from Source, name string) (Manifest, error) {
	if !validName.MatchString(name) {
		return Manifest{}, fmt.Errorf("%q is no name of a snapshot (keeperctl snapshot list shows them)", name)
	}
	file, err := from.Open(ctx, path.Join(name, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, fmt.Errorf("there is no snapshot %s (keeperctl snapshot list shows them)", name)
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("opening the manifest of snapshot %s: %w", name, err)
	}
	defer func() { _ = file.Close() }()
	const most = 64 << 20 // far above what can be, and no more than memory has
	text, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return Manifest{}, fmt.Errorf("reading the manifest of snapshot %s: %w", name, err)
	}
	m, err := decodeManifest(text)
	if err != nil {
		return Manifest{}, fmt.Errorf("snapshot %s cannot be used: %w (take another one)", name, err)
	}
	return m, nil
}

// ReadPart reads one partition of a snapshot: take is given the rows of each table, in the order in which they were
// written. Only when ReadPart returns without an error were they what was written.
func ReadPart(ctx context.Context, from Source, m Manifest, partition int,
	take func(table string, rows io.Reader) error) error {
	p := m.Parts[partition]
	file, err := from.Open(ctx, path.Join(m.Name(), p.File))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("snapshot %s cannot be used: %s is missing (take another one)", m.Name(), p.File)
	}
	if err != nil {
		return fmt.Errorf("opening %s of snapshot %s: %w", p.File, m.Name(), err)
	}
	defer func() { _ = file.Close() }()
	if err := readFile(file, p, take); errors.Is(err, errTorn) {
		return fmt.Errorf("snapshot %s cannot be used: %s: %w (take another one)", m.Name(), p.File, err)
	} else if err != nil {
		return fmt.Errorf("reading %s of snapshot %s: %w", p.File, m.Name(), err)
	}
	return nil
}

// Verify reads all of a snapshot and reports whether it is what was written.
func Verify(ctx context.Context, from Source, name string) (Manifest, error) {
	m, err := Read(ctx, from, name)
	if err != nil {
		return m, err
	}
	for p := range m.Parts {
		if err := ReadPart(ctx, from, m, p, func(string, io.Reader) error { return ctx.Err() }); err != nil {
			return m, err
		}
	}
	return m, nil
}

// List names the snapshots, oldest first.
func List(ctx context.Context, from Source) ([]string, error) {
	files, err := from.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing snapshots: %w", err)
	}
	return whole(files), nil
}

// whole names the snapshots that have a manifest.
func whole(files []string) (names []string) {
	for _, f := range files {
		if name, file := path.Split(f); file == manifestFile && validName.MatchString(path.Clean(name)) {
			names = append(names, path.Clean(name))
		}
	}
	slices.Sort(names)
	return names
}

// tornAge is how old something without a manifest must be to be taken for what a killed process has left.
const tornAge = 24 * time.Hour

// Prune removes all snapshots but the newest, and what was begun a day before now and never finished. A manifest goes
// first: half of a snapshot is none.
func Prune(ctx context.Context, in Store, keep int, now time.Time) (removed []string, err error) {
	files, err := in.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing snapshots: %w", err)
	}
	names := whole(files)
	kept := names[max(0, len(names)-keep):]
	slices.SortStableFunc(files, func(a, b string) int { return last(b) - last(a) })
	for _, f := range files {
		name, _, _ := strings.Cut(f, "/")
		at, is := TakenAt(name)
		if !is || slices.Contains(kept, name) || !slices.Contains(names, name) && now.Sub(at) < tornAge {
			continue
		}
		if err := in.Delete(ctx, f); err != nil {
			return removed, fmt.Errorf("removing snapshot %s: %w", name, err)
		}
		if !slices.Contains(removed, name) {
			removed = append(removed, name)
		}
	}
	return removed, nil
}

// last is 1 for a file that goes before the others of its snapshot.
func last(file string) int {
	if path.Base(file) == manifestFile {
		return 1
	}
	return 0
}
