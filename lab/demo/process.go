package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/retry"
)

// healthyRun is how long a process must have run for its end to count as a first one.
const healthyRun = 5 * time.Second

// badConfig is the exit code of a process whose configuration is wrong: starting it again cannot help.
const badConfig = 2

// Process is one supervised child: when it ends unasked it is started again, as a container runtime would.
type Process struct {
	Name string
	// HTTP is the address of its health and metrics pages.
	HTTP string

	path string
	args []string
	env  []string
	log  zerolog.Logger
	file string

	mu       sync.Mutex
	cmd      *exec.Cmd
	held     chan struct{} // not nil while the process is kept down; closed when it may start again
	armed    []string      // environment of the next start alone
	restarts int
}

// Run keeps the process running until ctx ends, then asks it to stop and waits. It returns an error only when starting
// again is useless.
func (p *Process) Run(ctx context.Context) error {
	backoff := retry.New(retry.Policy{Initial: 200 * time.Millisecond, Max: 5 * time.Second})
	for backoff.Next(ctx) && p.released(ctx) {
		began := time.Now()
		if err := p.review(ctx, p.once(ctx)); err != nil {
			return err
		}
		if time.Since(began) > healthyRun {
			backoff.Reset()
		}
	}
	return nil
}

// review notes an end nobody asked for. It returns an error when starting again is useless.
func (p *Process) review(ctx context.Context, ended error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // an end that was asked for is no error
	}
	var exit *exec.ExitError
	if errors.As(ended, &exit) && exit.ExitCode() == badConfig {
		return fmt.Errorf("%s refuses its configuration:\n%s", p.Name, p.Tail(10))
	}
	p.mu.Lock()
	p.restarts++
	p.mu.Unlock()
	p.log.Warn().Str("process", p.Name).AnErr("ended", ended).Msg("process ended, starting it again")
	return nil
}

func (p *Process) once(ctx context.Context) error {
	out, err := os.OpenFile(p.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the log of %s: %w", p.Name, err)
	}
	defer func() { _ = out.Close() }()
	cmd := exec.CommandContext(ctx, p.program(), p.args...)
	cmd.Env = slices.Concat(os.Environ(), p.env, p.disarm())
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = dieWithParent()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	p.mu.Lock()
	p.cmd = cmd
	if p.held != nil { // it was to be kept down while it was being started
		_ = cmd.Process.Kill()
	}
	p.mu.Unlock()
	err = cmd.Wait()
	p.mu.Lock()
	p.cmd = nil
	p.mu.Unlock()
	return err
}

// released waits while the process is held down. It reports whether the process may run.
func (p *Process) released(ctx context.Context) bool {
	p.mu.Lock()
	held := p.held
	p.mu.Unlock()
	if held == nil {
		return true
	}
	select {
	case <-held:
		return true
	case <-ctx.Done():
		return false
	}
}

// Kill ends the process at once (SIGKILL); the supervisor starts it again.
func (p *Process) Kill() { p.signal(syscall.SIGKILL) }

// End asks the process to stop (SIGTERM); the supervisor starts it again.
func (p *Process) End() { p.signal(syscall.SIGTERM) }

// Exchange asks the process to stop (SIGTERM); the supervisor starts the program of the same name in another folder in
// its place, now and ever after.
func (p *Process) Exchange(folder string) error {
	path, err := binary(folder, filepath.Base(p.program()))
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.path = path
	p.mu.Unlock()
	p.End()
	return nil
}

func (p *Process) program() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.path
}

// Arm adds to the environment of the process's next start, and of no other.
func (p *Process) Arm(env ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = env
}

func (p *Process) disarm() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	env := p.armed
	p.armed = nil
	return env
}

// Hold kills the process and keeps it down until the returned function is called.
func (p *Process) Hold() (release func()) {
	p.mu.Lock()
	held := make(chan struct{})
	p.held = held
	p.mu.Unlock()
	p.Kill()
	return sync.OnceFunc(func() {
		p.mu.Lock()
		p.held = nil
		p.mu.Unlock()
		close(held)
	})
}

func (p *Process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Signal(s) // it may have ended meanwhile, which is what was wanted
	}
}

// Restarts counts how often the process ended unasked.
func (p *Process) Restarts() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restarts
}

// Tail returns the last lines of the process's log.
func (p *Process) Tail(lines int) string {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// binary finds a program of this module beside the running one.
func binary(folder, name string) (string, error) {
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("the program %s is missing (run make build): %w", path, err)
	}
	return path, nil
}
