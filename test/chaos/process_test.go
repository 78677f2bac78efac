package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"perpkeeper/pkg/failpoint"
	"perpkeeper/test/programs"
)

// process is one scanner or statevm. The test is its supervisor: it starts it again at once, as no container runtime
// would, and an end that nobody asked for fails the test.
type process struct {
	name string
	http string // address of health and metrics

	t     *testing.T
	path  string
	env   []string
	file  string
	cmd   *exec.Cmd // nil while it is down
	ended chan error
}

// newProcess describes a process that is not running yet.
func newProcess(t *testing.T, folder, name, program string, env []string) *process {
	t.Helper()
	binaries, err := programs.Mortal()
	if err != nil {
		t.Fatal(err)
	}
	address := freeAddress(t)
	p := &process{
		t: t, name: name, http: address, path: filepath.Join(binaries, program),
		file: filepath.Join(folder, name+".log"),
		env:  append([]string{"PERPKEEPER_HTTP_LISTEN=" + address, "PERPKEEPER_LOG_FORMAT=json"}, env...),
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("--- the end of %s's log:\n%s", p.name, p.tail(25))
		}
	})
	return p
}

// start starts the process with more in its environment.
func (p *process) start(env ...string) {
	p.t.Helper()
	if p.cmd != nil {
		p.t.Fatalf("%s runs already", p.name)
	}
	out, err := os.OpenFile(p.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = out.Close() }() // the process has it too
	cmd := exec.CommandContext(context.Background(), p.path)
	cmd.Env = slices.Concat(environ(), p.env, env)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		p.t.Fatalf("starting %s: %v", p.name, err)
	}
	p.cmd, p.ended = cmd, make(chan error, 1)
	ended := p.ended
	go func() { ended <- cmd.Wait() }()
}

// environ is this process's environment without settings, which are the rig's alone, and without a point to die at.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "PERPKEEPER_") || strings.HasPrefix(e, failpoint.Env+"=")
	})
}

// armed is what makes a start end at the n-th time a point is reached.
func armed(label string, n int) string { return fmt.Sprintf("%s=%s:%d", failpoint.Env, label, n) }

// kill ends the process at once (SIGKILL), if it runs.
func (p *process) kill() {
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended meanwhile, which is what was wanted
	<-p.ended
	p.cmd = nil
}

// stop asks the process to end (SIGTERM) and waits until it has.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if err := <-p.ended; err != nil {
		p.t.Errorf("%s was asked to end: %v", p.name, err)
	}
	p.cmd = nil
}

// restart kills the process and starts it again.
func (p *process) restart(env ...string) {
	p.t.Helper()
	p.kill()
	p.start(env...)
}

// pause freezes the process (SIGSTOP), as a long garbage collection or a machine that is moved would.
func (p *process) pause() { p.signal(syscall.SIGSTOP) }

// resume lets it go on.
func (p *process) resume() { p.signal(syscall.SIGCONT) }

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("%s to %s: %v", s, p.name, err)
	}
}

// dies waits for the process to kill itself at the point it was armed with, for a bounded time, and calls kick every
// now and then meanwhile. It reports whether the process died; it is down afterwards in any case.
func (p *process) dies(within time.Duration, kick func(turn int)) bool {
	p.t.Helper()
	late := time.NewTimer(within)
	defer late.Stop()
	tick := time.NewTicker(300 * time.Millisecond)
	defer tick.Stop()
	for turn := 1; ; turn++ {
		select {
		case err := <-p.ended:
			p.cmd = nil
			if !bySIGKILL(err) {
				p.t.Fatalf("%s was to die at a point and ended by itself: %v\n%s", p.name, err, p.tail(10))
			}
			return true
		case <-late.C:
			p.kill()
			return false
		case <-tick.C:
			kick(turn)
		}
	}
}

func bySIGKILL(err error) bool {
	exit, is := errors.AsType[*exec.ExitError](err)
	if !is {
		return false
	}
	status, is := exit.Sys().(syscall.WaitStatus)
	return is && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// check fails the test if the process has ended unasked.
func (p *process) check() {
	p.t.Helper()
	if p.cmd == nil {
		return
	}
	select {
	case err := <-p.ended:
		p.cmd = nil
		p.t.Fatalf("%s ended by itself: %v\n%s", p.name, err, p.tail(10))
	default:
	}
}

// tail returns the last lines of the process's log, without those that list its whole configuration.
func (p *process) tail(lines int) string {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return err.Error()
	}
	all := slices.DeleteFunc(bytes.Split(bytes.TrimSpace(text), []byte("\n")),
		func(line []byte) bool { return bytes.Contains(line, []byte(`"config":{`)) })
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// metrics are the gauges and counters of a process, each summed over its labels; none while they cannot be had.
func (p *process) metrics(ctx context.Context) map[string]float64 {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.http+"/metrics", nil)
	if err != nil {
		return nil
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(text)))
	if err != nil {
		return nil
	}
	sums := map[string]float64{}
	for name, family := range families {
		for _, m := range family.GetMetric() {
			sums[name] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return sums
}

// freeAddress picks a port that is free now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
