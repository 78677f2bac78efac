package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

var errPortTaken = errors.New("the port is taken")

// process is the running postmaster.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// launch starts the server and waits until it accepts connections.
func launch(bin string, h home, settings []string) (*process, error) {
	log, err := os.OpenFile(h.logFile(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the server's log: %w", err)
	}
	defer func() { _ = log.Close() }() // the server has its own copy
	args := []string{"-D", h.data()}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	cmd := exec.CommandContext(context.Background(), filepath.Join(bin, "postgres"), args...) // it lives until stop
	cmd.Dir, cmd.Stdout, cmd.Stderr = h.dir, log, log
	// Its own process group: an interrupt at the terminal is for the keeper, which stops the server last.
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: h.user.credential(), Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
	p := &process{cmd: cmd, done: make(chan struct{})}
	if err := p.start(); err != nil {
		return nil, fmt.Errorf("starting the server: %w", err)
	}
	if err := p.awaitReady(h); err != nil {
		return nil, errors.Join(err, p.stop(true))
	}
	return p, nil
}

// start runs the child from a thread that lives as long as the child does: the kernel's notice of a parent's death is
// tied to the thread.
func (p *process) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // How it ended is in its log.
			close(p.done)
		}
	}()
	return <-started
}

// awaitReady watches the status line of postmaster.pid, as pg_ctl does.
func (p *process) awaitReady(h home) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.NewTimer(startTimeout)
	defer timeout.Stop()
	for !p.ready(h) {
		select {
		case <-tick.C:
		case <-p.done:
			return startFailure(tail(h.logFile()))
		case <-timeout.C:
			return fmt.Errorf("the database server did not get ready within %s: %s", startTimeout, tail(h.logFile()))
		}
	}
	return nil
}

func startFailure(log string) error {
	if strings.Contains(log, "Address already in use") {
		return fmt.Errorf("%w: %s", errPortTaken, log)
	}
	return fmt.Errorf("the database server ended at once: %s", log)
}

// ready reports whether this very process (not a predecessor's left-over file) says that it is.
func (p *process) ready(h home) bool {
	text, err := os.ReadFile(filepath.Join(h.data(), "postmaster.pid"))
	if err != nil {
		return false
	}
	const pidLine, statusLine = 0, 7
	lines := strings.Split(string(text), "\n")
	return len(lines) > statusLine && lines[pidLine] == fmt.Sprint(p.cmd.Process.Pid) &&
		slices.Contains([]string{"ready", "standby"}, strings.TrimSpace(lines[statusLine]))
}

// stop ends the server: at once where the data is not kept, with a checkpoint where it is; and by force when it does
// not obey.
func (p *process) stop(abandonData bool) error {
	polite := syscall.SIGINT
	if abandonData {
		polite = syscall.SIGQUIT
	}
	for _, signal := range []syscall.Signal{polite, syscall.SIGQUIT, syscall.SIGKILL} {
		if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return fmt.Errorf("stopping the database server: %w", err)
		}
		select {
		case <-p.done:
			return nil
		case <-time.After(stopTimeout):
		}
	}
	return fmt.Errorf("the database server (process %d) does not end", p.cmd.Process.Pid)
}

// pickPort returns the wanted port, or one that is free at this moment.
func pickPort(wanted int) (int, error) {
	if wanted != 0 {
		return wanted, nil
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("looking for a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	address, err := netip.ParseAddrPort(l.Addr().String())
	return int(address.Port()), err
}
