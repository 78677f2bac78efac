package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// home is the directory a server lives in: data/ belongs to the server; password, log and lock to us.
type home struct {
	dir       string
	temporary bool
	// lock is held as long as the server may run. A directory whose lock is free has lost its owner.
	lock *os.File
	user account
}

const temporaryPattern = "perpkeeper-postgres-"

func (h home) data() string         { return filepath.Join(h.dir, "data") }
func (h home) logFile() string      { return filepath.Join(h.dir, "log") }
func (h home) passwordFile() string { return filepath.Join(h.dir, "password") }

// openHome makes and locks the directory.
func openHome(dir string) (home, error) {
	user, err := unprivileged()
	if err != nil {
		return home{}, err
	}
	h := home{dir: dir, temporary: dir == "", user: user}
	if h.temporary {
		sweep(os.TempDir(), sweepAge)
		h.dir, err = os.MkdirTemp("", temporaryPattern)
	} else {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return home{}, fmt.Errorf("making the server's directory: %w", err)
	}
	if h.dir, err = filepath.Abs(h.dir); err != nil {
		return home{}, fmt.Errorf("finding the server's directory: %w", err)
	}
	if err := user.own(h.dir); err != nil {
		return home{}, err
	}
	h.lock, err = lock(h.dir)
	return h, err
}

// close gives the directory up, and removes it if it was made for this server only.
func (h home) close() error {
	var err error
	if h.temporary {
		err = os.RemoveAll(h.dir)
	}
	if closing := h.lock.Close(); !errors.Is(closing, os.ErrClosed) {
		err = errors.Join(err, closing)
	}
	return err
}

// initialize runs initdb where no server has run before, and returns the superuser's password.
func (h home) initialize(bin string) (string, error) {
	_, err := os.Stat(filepath.Join(h.data(), "PG_VERSION"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return h.initdb(bin)
	case err != nil:
		return "", fmt.Errorf("looking for existing data: %w", err)
	}
	password, err := os.ReadFile(h.passwordFile())
	if err != nil {
		return "",
			fmt.Errorf("the data in %s was not made by this program (remove the directory, or choose another): %w",
				h.dir, err)
	}
	return strings.TrimSpace(string(password)), nil
}

func (h home) initdb(bin string) (string, error) {
	password := rand.Text()
	if err := os.WriteFile(h.passwordFile(), []byte(password+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("storing the password: %w", err)
	}
	if err := h.user.own(h.passwordFile()); err != nil {
		return "", err
	}
	// A directory that initdb left half made would be refused by the next initdb; initdb removes it itself when it
	// fails.
	cmd := exec.CommandContext(context.Background(), filepath.Join(bin, "initdb"), "--no-sync", "--no-instructions",
		"--username="+superuser, "--pwfile="+h.passwordFile(), "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C",
		"--pgdata="+h.data())
	cmd.Dir = h.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: h.user.credential()}
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("initdb in %s as user %s: %w: %s", h.dir, h.user.name, err,
			strings.TrimSpace(string(out)))
	}
	return password, nil
}

// lock takes the directory for this process; the operating system lets it go when the process ends, however it ends.
func lock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the server's directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s is in use by another process (choose another directory): %w", dir, err),
			f.Close())
	}
	return f, nil
}

// sweepAge is how old a throw-away directory must be to be swept away: a younger one may belong to a process that is
// about to lock it.
const sweepAge = time.Minute

// sweep removes throw-away directories whose owner was killed before it could. What cannot be removed is left to a
// later sweep.
func sweep(tempDir string, age time.Duration) {
	dirs, _ := filepath.Glob(filepath.Join(tempDir, temporaryPattern+"*")) // The pattern is a constant and well formed.
	for _, dir := range dirs {
		if info, err := os.Stat(filepath.Join(dir, "lock")); err != nil || time.Since(info.ModTime()) < age {
			continue // Being made just now, or not ours to read.
		}
		if f, err := lock(dir); err == nil {
			_ = os.RemoveAll(dir)
			_ = f.Close()
		}
	}
}
