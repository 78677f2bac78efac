package hammer

import (
	"bytes"
	"context"
	"math/rand/v2"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"perpkeeper/test/programs"
)

// process is one sender. The test supervises and disturbs it; an end that nobody asked for fails the test.
type process struct {
	*programs.Process
	kills, freezes atomic.Int64
}

// startProcess starts a program.
func startProcess(t *testing.T, name, path string, env []string) *process {
	t.Helper()
	p := &process{Process: programs.NewProcess(t, name, path, env)}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
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
		if err := p.Check(); err != nil || ctx.Err() != nil {
			return err
		}
		var err error
		if random.IntN(3) == 0 {
			p.kills.Add(1)
			p.Kill()
			err = p.Start()
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
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	wait(ctx, d)
	return p.Signal(syscall.SIGCONT)
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

// countLogged counts how often the log holds a text.
func (p *process) countLogged(text string) int { return bytes.Count(p.Log(), []byte(text)) }
