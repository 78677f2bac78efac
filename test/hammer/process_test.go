package hammer

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// process is one sender. The test supervises and disturbs it; an end that nobody asked for fails the test.
type process struct {
	t    *testing.T
	name string
	path string
	env  []string
	file string

	cmd   *exec.Cmd
	ended chan error

	kills, freezes atomic.Int64
}

func newProcess(t *testing.T, folder, name, path string, env []string) *process {
	t.Helper()
	p := &process{t: t, name: name, path: path, env: env, file: filepath.Join(folder, name+".log")}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("--- the end of %s's log:\n%s", name, p.tail(15))
		}
	})
	return p
}

func (p *process) start() error {
	out, err := os.OpenFile(p.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the process has it too
	cmd := exec.CommandContext(context.Background(), p.path)
	cmd.Env = slices.Concat(environ(), p.env)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	p.cmd, p.ended = cmd, ended
	go func() { ended <- cmd.Wait() }()
	return nil
}

// environ is this process's environment without settings, which are the rig's alone.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "PERPKEEPER_") })
}

// kill ends the process at once (SIGKILL), if it runs.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended meanwhile, which is what was wanted
	<-p.ended
	p.cmd = nil
}

// stop asks the process to end (SIGTERM) and demands that it does so without complaint.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Errorf("asking %s to end: %v", p.name, err)
	}
	select {
	case err := <-p.ended:
		if err != nil {
			p.t.Errorf("%s was asked to end: %v", p.name, err)
		}
		p.cmd = nil
	case <-time.After(patience):
		p.t.Errorf("%s was asked to end and goes on", p.name)
	}
}

// disturb disturbs a process until ctx ends: it is frozen for longer than its lease lasts, and from then on
// left alone for a while, and frozen for a shorter or longer time, or killed and started again. It runs in the end.
func (p *process) disturb(ctx context.Context, random *rand.Rand, h disturbance) error {
	wait(ctx, between(random, h.ttl/5, h.ttl))
	if err := p.freeze(ctx, between(random, h.ttl*11/10, h.ttl*3/2)); err != nil {
		return err
	}
	for {
		wait(ctx, between(random, h.calm/4, h.calm))
		if err := p.check(); err != nil || ctx.Err() != nil {
			return err
		}
		var err error
		if random.IntN(3) == 0 {
			p.kills.Add(1)
			p.kill()
			err = p.start()
		} else {
			err = p.freeze(ctx, between(random, h.ttl/10, h.ttl*3/2))
		}
		if err != nil {
			return err
		}
	}
}

// freeze stops the process (SIGSTOP) for a while, as a machine that is moved would, whatever it was about to do.
func (p *process) freeze(ctx context.Context, d time.Duration) error {
	p.freezes.Add(1)
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	wait(ctx, d)
	return p.cmd.Process.Signal(syscall.SIGCONT)
}

// disturbance is how often and for how long a process is disturbed.
type disturbance struct {
	ttl  time.Duration // of the leases
	calm time.Duration // the longest that a process is left alone
}

// between is a random time from one to another.
func between(random *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(random.Int64N(int64(to-from)))
}

// check tells whether the process has ended unasked.
func (p *process) check() error {
	select {
	case err := <-p.ended:
		p.cmd = nil
		return errors.Join(errors.New(p.name+" ended by itself"), err)
	default:
		return nil
	}
}

// tail returns the last lines of the process's log, without those that list its whole configuration.
func (p *process) tail(lines int) string {
	all := slices.DeleteFunc(bytes.Split(bytes.TrimSpace(p.log()), []byte("\n")),
		func(line []byte) bool { return bytes.Contains(line, []byte(`"config":{`)) })
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

func (p *process) log() []byte {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// countLogged counts how often the log holds a text.
func (p *process) countLogged(text string) int { return bytes.Count(p.log(), []byte(text)) }
