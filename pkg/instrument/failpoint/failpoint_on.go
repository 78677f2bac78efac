//go:build failpoint

package failpoint

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
)

// chosen is the point this process dies at.
var chosen = fromEnvironment()

// hits counts how often it was reached.
var hits atomic.Int64

// Hit kills the process if the label is the chosen point and this is the chosen time. It may be called from several
// goroutines at once.
func Hit(label string) {
	if label != chosen.name || hits.Add(1) != chosen.count {
		return
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal comes when it comes; nothing behind this point may run before
}

func fromEnvironment() point {
	p, err := parse(os.Getenv(Env))
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", Env, err)
		os.Exit(1)
	}
	return p
}
