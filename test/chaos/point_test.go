package chaos

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// point is a labelled place in a process at which it can be made to kill itself.
type point struct{ process, label string }

// points reads the labels from the sources, so that a new one is exercised without being listed. Those of pkg/pg are
// statevm's.
func points(t *testing.T) (all []point) {
	t.Helper()
	call := regexp.MustCompile(`failpoint\.Hit\("([^"]+)"\)`)
	for folder, process := range map[string]string{"services/scanner": "scanner", "services/statevm": "statevm",
		"pkg/pg": "statevm"} {
		err := filepath.WalkDir(filepath.Join("..", "..", folder),
			func(path string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") ||
					strings.HasSuffix(path, "_test.go") {
					return err
				}
				text, err := os.ReadFile(path)
				for _, m := range call.FindAllStringSubmatch(string(text), -1) {
					all = append(all, point{process, m[1]})
				}
				return err
			})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(all, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.process, b.process),
			cmp.Compare(a.label, b.label))
	})
	return slices.Compact(all)
}

// Both processes have at least twelve points at which they can be killed (PIPE-2, PIPE-3).
func TestPoints(t *testing.T) {
	count := map[string]int{}
	for _, at := range points(t) {
		count[at.process]++
	}
	for _, process := range []string{"scanner", "statevm"} {
		if count[process] < 12 {
			t.Errorf("%s has %d points", process, count[process])
		}
	}
}
