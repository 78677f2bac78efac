// Package programs builds the module's binaries for tests that run them as an operator does.
package programs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// names are the programs there are.
var names = []string{"scanner", "statevm", "planner", "sender", "console", "keeperctl", "devnet"}

// chain is the one program that stands for what is not ours. It is never under the race detector: there a devnet takes
// a whole core to make three blocks a second, and what the keeper is given is no chain any more.
const chain = "devnet"

// Folder builds every program once per test binary and returns the folder they are in.
var Folder = sync.OnceValues(func() (string, error) {
	folder, err := build("plain", ours(), inherited()...)
	if err == nil {
		err = buildInto(root(), folder, []string{chain}, "-race=false")
	}
	return folder, err
})

// Mortal builds scanner and statevm, once per test binary, so that they can be told to kill themselves at a labelled
// point (see pkg/instrument/failpoint), and returns the folder they are in.
var Mortal = sync.OnceValues(func() (string, error) {
	return build("failpoint", []string{"scanner", "statevm"}, append(inherited(), "-tags=failpoint")...)
})

// build builds programs with flags into the folder of their kind, and returns it.
func build(kind string, names []string, flags ...string) (string, error) {
	folder := filepath.Join(root(), ".cache", "programs", kind)
	if slices.Contains(flags, "-race=true") {
		folder += "-race"
	}
	return folder, buildInto(root(), folder, names, flags...)
}

// buildInto builds programs of the module in a tree.
func buildInto(tree, folder string, names []string, flags ...string) error {
	args := slices.Concat([]string{"build", "-ldflags=-s -w", "-o", folder + string(filepath.Separator)}, flags)
	for _, name := range names {
		folder := "./services/"
		if name == "devnet" || name == "demo" {
			folder = "./lab/"
		}
		args = append(args, folder+name+"/cmd/"+name)
	}
	release, err := alone(filepath.Dir(folder))
	if err != nil {
		return err
	}
	defer release()
	cmd := exec.CommandContext(context.Background(), "go", args...)
	cmd.Dir = tree
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", strings.Join(names, ", "), err, out)
	}
	return nil
}

// alone waits until no other test binary builds programs: the next one finds them built, and nobody starts one that is
// being replaced.
func alone(folder string) (release func(), err error) {
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return nil, fmt.Errorf("making the programs' folder: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(filepath.Clean(folder), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the programs' folder: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking the programs' folder: %w", err), lock.Close())
	}
	return func() { _ = lock.Close() }, nil // closing it lets it go
}

// inherited are the flags that this test binary was compiled with. Programs compiled with others would need every
// package anew, dependencies and all, which costs more than the tests; and so tests under the race detector have it in
// their programs too.
func inherited() (flags []string) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	for _, s := range info.Settings {
		if s.Key == "-race" || s.Key == "-gcflags" {
			flags = append(flags, s.Key+"="+s.Value)
		}
	}
	return flags
}

// root is the module's folder, found from this file.
func root() string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "..", "..")
}
