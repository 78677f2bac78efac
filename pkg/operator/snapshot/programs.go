package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"perpkeeper/pkg/pg"
)

// errMute is why a program was ended.
var errMute = errors.New("no byte went on")

// running is pg_dump or pg_restore at work.
type running struct {
	*exec.Cmd

	said   bytes.Buffer  // read when it has ended
	ended  chan struct{} // closed when it has
	status error
}

// start starts a program of PostgreSQL's, which ends with ctx.
func start(ctx context.Context, out io.Writer, env []string, name string, args ...string) (*running, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%s is not on this machine (install PostgreSQL's client programs, of the server's "+
			"version or a newer one)", name)
	}
	r := &running{Cmd: exec.CommandContext(ctx, path, args...), ended: make(chan struct{})}
	r.Stdout, r.Stderr, r.Env = out, &r.said, append(os.Environ(), env...)
	if err := r.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		defer close(r.ended)
		r.status = r.Wait()
	}()
	return r, nil
}

// stop ends it. One that hangs on a disk ends when that answers, and is not waited for.
func (r *running) stop() {
	_ = r.Process.Kill()
	select {
	case <-r.ended:
	case <-time.After(time.Second):
	}
}

// failure is why one that has ended failed, with the last thing it said.
func (r *running) failure() error {
	if r.status == nil {
		return nil
	}
	text := strings.TrimSpace(r.said.String())
	return fmt.Errorf("%s: %w: %s", filepath.Base(r.Path), r.status, text[strings.LastIndexByte(text, '\n')+1:])
}

// dump has pg_dump write a generation to a folder. It ends when the folder does not grow for too long.
func (f Folder) dump(ctx context.Context, path string, at pg.Config, e pg.Export) error {
	address, password, err := at.Client()
	if err != nil {
		return err
	}
	r, err := start(ctx, nil, []string{"PGPASSWORD=" + password.Reveal(), "PGAPPNAME=" + e.Application}, "pg_dump",
		"--format=directory", "--schema="+e.Schema, "--snapshot="+e.Snapshot, "--compress=1", "--no-owner",
		"--no-privileges", "--no-password", "--file="+path, "--dbname="+address)
	if err != nil {
		return err
	}
	defer r.stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	grown := make(chan struct{})
	go watch(ctx, path, f.mute/60, grown)
	silence := time.NewTimer(f.mute)
	defer silence.Stop()
	for {
		select {
		case <-r.ended:
			return r.failure()
		case <-grown:
			silence.Reset(f.mute)
		case <-silence.C:
			return fmt.Errorf("%s has not grown for %s: %w", path, f.mute, errMute)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// watch tells whenever a folder has grown. It may hang for as long as the folder's disk does.
func watch(ctx context.Context, path string, every time.Duration, grown chan<- struct{}) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var before int64
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		now := size(path)
		if now <= before {
			continue
		}
		before = now
		select {
		case grown <- struct{}{}:
		case <-ctx.Done():
			return
		}
	}
}

// size is how many bytes a folder holds.
func size(path string) (bytes int64) {
	_ = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // what is gone again holds nothing
		}
		if info, err := d.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	return bytes
}

// read has pg_restore write the tables of a snapshot, and take read one after the other. It asks no database.
func (f Folder) read(ctx context.Context, name string, take func(context.Context, table) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, f.longest, fmt.Errorf("gave up after %s", f.longest))
	defer cancel()
	from, to, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	r, err := start(ctx, to, nil, "pg_restore", "--data-only", "--file=-", filepath.Join(f.path, name))
	_ = to.Close() // the program has its own
	if err != nil {
		return err
	}
	if err = tables(ctx, patient{from, f.mute}, take); err == nil {
		<-r.ended // it has closed its output
		return r.failure()
	}
	select {
	case <-r.ended:
		err = errors.Join(err, r.failure()) // which knows why there is no more
	case <-time.After(time.Second):
		r.stop()
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// patient reads a pipe, and fails when nothing comes for too long.
type patient struct {
	*os.File

	mute time.Duration
}

// Read reads.
func (p patient) Read(to []byte) (int, error) {
	if err := p.SetReadDeadline(time.Now().Add(p.mute)); err != nil {
		return 0, err
	}
	n, err := p.File.Read(to)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("nothing was read for %s: %w", p.mute, errMute)
	}
	return n, err
}
