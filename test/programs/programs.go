// Package programs builds the module's binaries for tests that run them as an operator does.
package programs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
)

// Names are the programs there are.
var Names = []string{"scanner", "statevm", "planner", "sender", "keeperctl", "devnet"}

// Folder builds every program once per test binary and returns the folder they are in. With KEEPER_E2E they have the race detector in them.
var Folder = sync.OnceValues(func() (string, error) {
	if os.Getenv("KEEPER_E2E") != "" {
		return build("race", Names, "-race")
	}
	return build("plain", Names)
})

// Mortal builds scanner and statevm, once per test binary, so that they can be told to kill themselves at a labelled point (see pkg/failpoint), and
// returns the folder they are in.
var Mortal = sync.OnceValues(func() (string, error) { return build("failpoint", []string{"scanner", "statevm"}, "-tags=failpoint") })

func build(kind string, names []string, flags ...string) (string, error) {
	flags = append([]string{"build"}, flags...)
	folder := filepath.Join(root(), ".cache", "programs", kind)
	for _, name := range names {
		args := slices.Concat(flags, []string{"-o", filepath.Join(folder, name), "./services/" + name + "/cmd/" + name})
		cmd := exec.CommandContext(context.Background(), "go", args...)
		cmd.Dir = root()
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building %s: %w\n%s", name, err, out)
		}
	}
	return folder, nil
}

// root is the module's folder, found from this file.
func root() string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(here), "..", "..")
}
