package demo

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// script is a supervised shell script that notes each of its starts.
type script struct {
	*Process
	t      *testing.T
	starts string
	ended  chan error
}

func run(t *testing.T, body string) *script {
	t.Helper()
	dir := t.TempDir()
	s := &script{t: t, starts: filepath.Join(dir, "starts"), ended: make(chan error, 1)}
	s.Process = &Process{
		Name: "script", path: "/bin/sh", args: []string{"-c", `echo "start $WORD" >> "` + s.starts + `"; ` + body},
		file: filepath.Join(dir, "log"), log: zerolog.Nop(),
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() { cancel(); <-s.ended })
	go func() {
		s.ended <- s.Run(ctx)
		close(s.ended)
	}()
	return s
}

// await waits until the script has been started so often, and runs or not.
func (s *script) await(starts int, runs bool) string {
	s.t.Helper()
	hung := time.After(90 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		text, _ := os.ReadFile(s.starts) // not there before the first start
		s.mu.Lock()
		up := s.cmd != nil
		s.mu.Unlock()
		if strings.Count(string(text), "start") == starts && up == runs {
			return string(text)
		}
		select {
		case <-tick.C:
		case <-hung:
			s.t.Fatalf("started %q, up %v: want %d starts, up %v", text, up, starts, runs)
		}
	}
}

// A process that is killed comes back; one that is held down does not, until it is released.
func TestHeldProcessStaysDown(t *testing.T) {
	s := run(t, "exec sleep 600")
	s.await(1, true)
	s.Kill()
	s.await(2, true)
	release := s.Hold()
	s.await(2, false)
	s.Arm("WORD=armed")
	release()
	release() // once is enough
	if starts := s.await(3, true); !strings.HasSuffix(starts, "start armed\n") {
		t.Errorf("the third start was not armed: %q", starts)
	}
	if s.Restarts() != 2 {
		t.Errorf("%d restarts", s.Restarts())
	}
}

// A process that comes up while it is to be kept down is killed again.
func TestHeldWhileItStarts(t *testing.T) {
	p := &Process{Name: "script", path: "/bin/sh", args: []string{"-c", "exec sleep 600"},
		file: filepath.Join(t.TempDir(), "log"), log: zerolog.Nop()}
	defer p.Hold()()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second) // ends it with another signal, should nobody else
	defer cancel()
	if err := p.once(ctx); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("%v", err)
	}
}

// Starting again cannot mend a wrong configuration.
func TestRefusedConfiguration(t *testing.T) {
	s := run(t, "echo no such setting; exit 2")
	if err := <-s.ended; err == nil || !strings.Contains(err.Error(), "no such setting") {
		t.Errorf("%v", err)
	}
}
