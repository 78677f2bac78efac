// Package storetest is the test suite that every store of snapshots must pass, and stores in memory for tests.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"perpkeeper/pkg/snapshot"
)

// Memory is a store by name. It is for one goroutine at a time.
type Memory map[string][]byte

// Put implements [snapshot.Store].
func (m Memory) Put(_ context.Context, name string, content io.Reader) error {
	all, err := io.ReadAll(content)
	if err == nil {
		m[name] = all
	}
	return err
}

// Open implements [snapshot.Source].
func (m Memory) Open(_ context.Context, name string) (io.ReadCloser, error) {
	content, is := m[name]
	if !is {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(content)), nil
}

// List implements [snapshot.Source].
func (m Memory) List(context.Context) ([]string, error) { return slices.Collect(maps.Keys(m)), nil }

// Delete implements [snapshot.Store].
func (m Memory) Delete(_ context.Context, name string) error {
	delete(m, name)
	return nil
}

// Failing is a store that takes the beginning of a file and then fails.
type Failing struct {
	snapshot.Store
	Err error
}

// Put implements [snapshot.Store].
func (f Failing) Put(_ context.Context, _ string, content io.Reader) error {
	_, _ = io.CopyN(io.Discard, content, 10)
	return f.Err
}

// Run tries a store that is empty. large is how long a file has to be to need more than one of whatever the store sends
// at once.
func Run(t *testing.T, s snapshot.Store, large int) {
	t.Helper()
	ctx := t.Context()
	list := func(want ...string) {
		t.Helper()
		got, err := s.List(ctx)
		if slices.Sort(got); err != nil || !slices.Equal(got, want) {
			t.Errorf("there are %v, want %v, %v", got, want, err)
		}
	}
	read := func(name, want string) {
		t.Helper()
		in, err := s.Open(ctx, name)
		if err != nil {
			t.Errorf("opening %s: %v", name, err)
			return
		}
		defer func() { _ = in.Close() }()
		if got, err := io.ReadAll(in); err != nil || string(got) != want {
			t.Errorf("%s holds %d bytes, want %d, %v", name, len(got), len(want), err)
		}
	}
	put := func(name, content string) {
		t.Helper()
		if err := s.Put(ctx, name, strings.NewReader(content)); err != nil {
			t.Errorf("writing %s: %v", name, err)
		}
	}
	list()
	if _, err := s.Open(ctx, "a/none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	long := strings.Repeat("0123456789abcdef", large/16+1)
	put("a/1", "one")
	put("a/2", long)
	put("b/1", "")
	list("a/1", "a/2", "b/1")
	read("a/2", long)
	put("a/1", "another")
	read("a/1", "another")
	read("b/1", "")

	torn := errors.New("the content ends here")
	for _, content := range []string{"short", long} {
		broken := io.MultiReader(strings.NewReader(content), failingReader{torn})
		if err := s.Put(ctx, "a/1", broken); !errors.Is(err, torn) {
			t.Errorf("writing what fails: %v", err)
		}
		if err := s.Put(ctx, "c/1", io.MultiReader(strings.NewReader(content), failingReader{torn})); err == nil {
			t.Error("what fails was written")
		}
	}
	read("a/1", "another")
	list("a/1", "a/2", "b/1")
	for range 2 {
		if err := s.Delete(ctx, "a/2"); err != nil {
			t.Errorf("removing: %v", err)
		}
	}
	if err := s.Delete(ctx, "b/1"); err != nil {
		t.Errorf("removing: %v", err)
	}
	list("a/1")
}

type failingReader struct{ err error }

func (f failingReader) Read([]byte) (int, error) { return 0, f.err }
