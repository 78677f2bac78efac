package chaos

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"perpkeeper/pkg/instrument/failpoint"
	"perpkeeper/test/programs"
)

// process is one scanner or statevm. The test is its supervisor: it starts it again at once, as no container runtime
// would, and an end that nobody asked for fails the test.
type process struct {
	*programs.Process
	t *testing.T
}

// newProcess describes a process that is not running yet.
func newProcess(t *testing.T, name, program string, env []string) *process {
	t.Helper()
	binaries, err := programs.Mortal()
	if err != nil {
		t.Fatal(err)
	}
	return &process{programs.NewProcess(t, name, filepath.Join(binaries, program), env), t}
}

// armed is what makes a start end at the n-th time a point is reached.
func armed(label string, n int) string { return fmt.Sprintf("%s=%s:%d", failpoint.Env, label, n) }

// start starts the process with more in its environment.
func (p *process) start(env ...string) {
	p.t.Helper()
	if err := p.Start(env...); err != nil {
		p.t.Fatal(err)
	}
}

// restart kills the process and starts it again.
func (p *process) restart(env ...string) {
	p.t.Helper()
	p.Kill()
	p.start(env...)
}

// signal freezes the process (SIGSTOP), as a long garbage collection or a machine that is moved would, or lets it go on
// (SIGCONT).
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}
