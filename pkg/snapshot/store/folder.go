package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// folder keeps files below a path.
type folder string

// unfinished is what the name of a file ends in while it is being written.
const unfinished = ".writing"

// Put implements [snapshot.Store]: written under another name, synced, renamed, and the folder synced.
func (f folder) Put(ctx context.Context, name string, content io.Reader) (err error) {
	path := f.path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	//nolint:gosec // the group may fetch it; the state of the chain is no secret
	file, err := os.OpenFile(path+unfinished, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o640)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, &interruptible{ctx, content})
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(path+unfinished))
	}
	if err := os.Rename(path+unfinished, path); err != nil {
		return err
	}
	return errors.Join(syncFolder(filepath.Dir(path)), syncFolder(string(f)))
}

// syncFolder makes names last over a loss of power.
func syncFolder(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Open implements [snapshot.Source].
func (f folder) Open(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(f.path(name))
}

// List implements [snapshot.Source]. A folder that is not there has no files.
func (f folder) List(ctx context.Context) (names []string, err error) {
	err = filepath.WalkDir(string(f), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(string(f), path)
		names = append(names, filepath.ToSlash(name))
		return errors.Join(err, ctx.Err())
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return names, err
}

// Delete implements [snapshot.Store]. A folder goes with its last file.
func (f folder) Delete(_ context.Context, name string) error {
	if err := os.Remove(f.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if dir, _, nested := strings.Cut(name, "/"); nested {
		_ = os.Remove(f.path(dir)) // refused while there are others
	}
	return nil
}

func (f folder) path(name string) string { return filepath.Join(string(f), filepath.FromSlash(name)) }

// interruptible is content that ends with its context.
type interruptible struct {
	ctx context.Context //nolint:containedctx // of the one Put that reads it: io.Reader has no place for it
	io.Reader
}

func (i *interruptible) Read(p []byte) (int, error) {
	if i.ctx.Err() != nil {
		return 0, fmt.Errorf("interrupted: %w", context.Cause(i.ctx))
	}
	return i.Reader.Read(p)
}
