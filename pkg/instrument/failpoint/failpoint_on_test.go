//go:build failpoint

package failpoint

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// hitting makes this binary a process that hits points, in place of running tests.
const hitting = "FAILPOINT_TEST_HITS"

func TestMain(m *testing.M) {
	if os.Getenv(hitting) == "" {
		os.Exit(m.Run())
	}
	for i := range 5 {
		Hit("another")
		fmt.Println("before", i+1)
		Hit("here")
	}
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() { Hit("together") })
	}
	wg.Wait()
	fmt.Println("alive")
}

// The process dies at the chosen time, by SIGKILL, and does nothing behind the point.
func TestHit(t *testing.T) {
	for at, want := range map[string]struct {
		killed bool
		last   string
	}{
		"": {false, "alive"}, "nowhere": {false, "alive"}, "here:6": {false, "alive"}, "here": {true, "before 1"},
		"here:3":      {true, "before 3"},
		"together:10": {true, "before 5"},
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), hitting+"=1", Env+"="+at)
		out, err := cmd.Output()
		killed := false
		if exit, is := errors.AsType[*exec.ExitError](err); is {
			killed = exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
		}
		if killed != want.killed || !strings.HasSuffix(strings.TrimSpace(string(out)), want.last) {
			t.Errorf("%q: %v, said %q; want killed %t behind %q", at, err, out, want.killed, want.last)
		}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), hitting+"=1", Env+"=here:x")
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "want name:n") {
		t.Errorf("a point that cannot be read: %v, %s", err, out)
	}
}
