package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"perpkeeper/pkg/instrument/failpoint"
)

// Process is a program that a test starts, disturbs and ends, as often as it likes. It ends with the test; if the test
// failed, the end of its log is shown. It is for one goroutine at a time.
type Process struct {
	Name string
	HTTP string // address of health and metrics, for a program that has them

	tb    testing.TB
	path  string
	env   []string
	file  string
	cmd   *exec.Cmd // nil while it is down
	ended chan error
}

// stopWithin bounds the wait for a process that was asked to end.
const stopWithin = 2 * time.Minute

// NewProcess describes a program that is not running yet.
func NewProcess(tb testing.TB, name, path string, env []string) *Process {
	tb.Helper()
	p := &Process{Name: name, HTTP: FreeAddress(tb), tb: tb, path: path, env: env,
		file: filepath.Join(tb.TempDir(), name+".log")}
	tb.Cleanup(func() {
		p.Kill()
		if tb.Failed() {
			tb.Logf("--- the end of %s's log:\n%s", name, p.Tail(25))
		}
	})
	return p
}

// Start starts it with more in its environment.
func (p *Process) Start(env ...string) error {
	if p.cmd != nil {
		return fmt.Errorf("%s runs already", p.Name)
	}
	out, err := os.OpenFile(p.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the process has it too
	cmd := exec.CommandContext(context.Background(), p.path)
	cmd.Env = slices.Concat(environ(), []string{"PERPKEEPER_HTTP_LISTEN=" + p.HTTP, "PERPKEEPER_LOG_FORMAT=json"},
		p.env, env)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.Name, err)
	}
	ended := make(chan error, 1)
	p.cmd, p.ended = cmd, ended
	go func() { ended <- cmd.Wait() }()
	return nil
}

// environ is this process's environment without settings, which are the test's alone, and without a point to die at.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "PERPKEEPER_") || strings.HasPrefix(e, failpoint.Env+"=")
	})
}

// PID is the number of the running process.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// CPU is the processor time that a running process has used.
func CPU(tb testing.TB, pid int) (used time.Duration) {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	for _, field := range strings.Fields(rest)[11:13] {
		ticks, _ := strconv.ParseInt(field, 10, 64)
		used += time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100 on every Linux
	}
	return used
}

// Kill ends it at once (SIGKILL), if it runs.
func (p *Process) Kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended meanwhile, which is what was wanted
	<-p.ended                //nolint:errcheck // it says that it was killed
	p.cmd = nil
}

// Stop asks it to end (SIGTERM), and demands that it does so without complaint.
func (p *Process) Stop() {
	p.tb.Helper()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		p.tb.Error(err)
	}
	select {
	case err := <-p.ended:
		if p.cmd = nil; err != nil {
			p.tb.Errorf("%s was asked to end: %v", p.Name, err)
		}
	case <-time.After(stopWithin):
		p.tb.Errorf("%s was asked to end and goes on", p.Name)
	}
}

// Signal sends it a signal.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil {
		return fmt.Errorf("%s to %s: %w", s, p.Name, err)
	}
	return nil
}

// Check says whether it has ended unasked.
func (p *Process) Check() error {
	if p.cmd == nil {
		return nil
	}
	select {
	case err := <-p.ended:
		p.cmd = nil
		return errors.Join(errors.New(p.Name+" ended by itself"), err)
	default:
		return nil
	}
}

// Dies waits until it has killed itself (SIGKILL), at most for a time, and calls kick every now and then meanwhile. It
// tells whether it did; it is down afterwards in any case.
func (p *Process) Dies(within time.Duration, kick func()) bool {
	p.tb.Helper()
	late := time.NewTimer(within)
	defer late.Stop()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-p.ended:
			status, is := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
			if p.cmd = nil; !is || status.Signal() != syscall.SIGKILL {
				p.tb.Fatalf("%s was to kill itself, and ended with %v", p.Name, err)
			}
			return true
		case <-late.C:
			p.Kill()
			return false
		case <-tick.C:
			kick()
		}
	}
}

// Log is what it has said.
func (p *Process) Log() []byte {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// Tail returns the last lines of its log, without those that list its whole configuration.
func (p *Process) Tail(lines int) string {
	all := slices.DeleteFunc(bytes.Split(bytes.TrimSpace(p.Log()), []byte("\n")),
		func(line []byte) bool { return bytes.Contains(line, []byte(`"config":{`)) })
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// Metric is a gauge or counter summed over its labels; 0 while it cannot be had.
func (p *Process) Metric(name string) (sum float64) {
	for _, one := range p.Family(name) {
		sum += one.GetCounter().GetValue() + one.GetGauge().GetValue()
	}
	return sum
}

// Family is a metric by its labels; nothing while it cannot be had.
func (p *Process) Family(name string) []*dto.Metric {
	answer, err := http.Get("http://" + p.HTTP + "/metrics") //nolint:noctx // it ends with the process
	if err != nil {
		return nil
	}
	defer func() { _ = answer.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		return nil
	}
	return families[name].GetMetric()
}

// FreeAddress is one of this machine with a port that is free now.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	l, err := new(net.ListenConfig).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
