// Package programs builds the module's binaries for tests that run them as an operator does.
package programs

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// Names are the programs there are.
var Names = []string{"scanner", "statevm", "planner", "sender", "keeperctl", "devnet"}

// Folder builds every program once per test binary and returns the folder they are in.
var Folder = sync.OnceValues(func() (string, error) { return build("plain", Names) })

// Mortal builds scanner and statevm, once per test binary, so that they can be told to kill themselves at a labelled point (see pkg/failpoint), and
// returns the folder they are in.
var Mortal = sync.OnceValues(func() (string, error) { return build("failpoint", []string{"scanner", "statevm"}, "-tags=failpoint") })

func build(kind string, names []string, flags ...string) (string, error) {
	folder := filepath.Join(root(), ".cache", "programs", kind)
	own := inherited()
	if slices.Contains(own, "-race=true") {
		folder += "-race"
	}
	args := slices.Concat([]string{"build", "-ldflags=-s -w", "-o", folder + string(filepath.Separator)}, own, flags)
	for _, name := range names {
		args = append(args, "./services/"+name+"/cmd/"+name)
	}
	cmd := exec.CommandContext(context.Background(), "go", args...)
	cmd.Dir = root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", strings.Join(names, ", "), err, out)
	}
	return folder, nil
}

// inherited are the flags that this test binary was compiled with. Programs compiled with others would need every package anew, dependencies and all,
// which costs more than the tests; and so tests under the race detector have it in their programs too.
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
