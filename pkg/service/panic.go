package service

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
)

// PanicError is the error that a panic in a member or in a clean-up becomes.
type PanicError struct {
	Value any
	At    string // the function and line that panicked
	Stack []byte
}

// Error is one line: the value and the place. The stack is for the log.
func (p *PanicError) Error() string { return fmt.Sprintf("panic: %v (in %s)", p.Value, p.At) }

// Unwrap gives the panic's value if it is an error.
func (p *PanicError) Unwrap() error {
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
				err = &PanicError{Value: value, At: panicSite(), Stack: debug.Stack()}
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
