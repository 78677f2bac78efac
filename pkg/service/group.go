package service

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
)

// errFinished ends a group that has nothing left to do.
var errFinished = fmt.Errorf("all work is done: %w", context.Canceled)

// group runs the members of a process: goroutines that live and end together.
type group struct {
	ctx    context.Context //nolint:containedctx // the group's own: it ends when the process is to stop
	cancel context.CancelCauseFunc
	idle   chan struct{} // closed when the last member has ended

	mu       sync.Mutex
	running  []string
	failures []error // in the order they came; the first one is why the group stopped, unless it was asked to
}

func newGroup(parent context.Context) *group {
	ctx, cancel := context.WithCancelCause(parent)
	return &group{ctx: ctx, cancel: cancel, idle: make(chan struct{})}
}

// member is a goroutine of a group.
type member struct {
	name  string
	start bool // the start function: it may end without being asked to, and its errors have no need of a name
}

// start runs fn as a member. It does nothing once the group is stopping: fn would find its context ended.
func (g *group) start(m member, fn func(context.Context) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ctx.Err() != nil {
		return
	}
	g.running = append(g.running, m.name)
	spawn(func() error { return fn(g.ctx) }, func(err error) { g.ended(m, err) })
}

// ended judges how a member came to its end.
func (g *group) ended(m member, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if stopping := g.ctx.Err() != nil; !stopping && !m.start && err == nil {
		err = errors.New("ended without being asked to")
	} else if stopping && g.echo(err) {
		err = nil
	}
	if err != nil && !m.start {
		err = fmt.Errorf("%s: %w", m.name, err)
	}
	if err != nil {
		g.fail(err)
	}
	at := slices.Index(g.running, m.name)
	g.running = slices.Delete(g.running, at, at+1)
	if len(g.running) == 0 {
		g.cancel(errFinished)
		close(g.idle)
	}
}

// echo reports whether an error only repeats that the group is stopping.
func (g *group) echo(err error) bool {
	return errors.Is(err, g.ctx.Err()) || errors.Is(err, context.Cause(g.ctx))
}

// fail keeps an error and stops the group. The caller holds mu.
func (g *group) fail(err error) {
	g.failures = append(g.failures, err)
	g.cancel(err)
}

// abort stops the group for a failure outside its members.
func (g *group) abort(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fail(err)
}

// wait returns when all members have ended, or names those that have not when ctx ends.
func (g *group) wait(ctx context.Context) error {
	if len(g.members()) == 0 { // None was ever started.
		return nil
	}
	select {
	case <-g.idle:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("still running at the end of the grace period: %s", strings.Join(g.members(), ", "))
	}
}

// members are the names of the members that have not ended.
func (g *group) members() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.running)
}

// failed returns the failures so far.
func (g *group) failed() []error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.failures)
}

// panicError is the error that a panic in a member or in a clean-up becomes.
type panicError struct {
	Value any
	At    string // the function and line that panicked
	Stack []byte
}

// Error is one line: the value and the place. The stack is for the log.
func (p *panicError) Error() string { return fmt.Sprintf("panic: %v (in %s)", p.Value, p.At) }

// Unwrap gives the panic's value if it is an error.
func (p *panicError) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

var errExited = errors.New("its goroutine was ended from within")

// spawn calls fn in a goroutine of its own and hands its error to done, also when fn panics or ends its goroutine.
func spawn(fn func() error, done func(error)) {
	go func() {
		err := errExited
		defer func() {
			if value := recover(); value != nil {
				err = &panicError{Value: value, At: panicSite(), Stack: debug.Stack()}
			}
			done(err)
		}()
		err = fn()
	}()
}

// panicSite finds the frame that panicked. It is called by the deferred function that has recovered.
func panicSite() string {
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs[:])])
	panicking := false
	for {
		frame, more := frames.Next()
		inRuntime := strings.HasPrefix(frame.Function, "runtime.")
		if panicking && !inRuntime {
			return fmt.Sprintf("%s, %s:%d", filepath.Base(frame.Function), filepath.Base(frame.File), frame.Line)
		}
		panicking = panicking || frame.Function == "runtime.gopanic"
		if !more {
			return "unknown place"
		}
	}
}
