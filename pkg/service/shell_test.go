package service_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/service"
)

// journal records in which order things happen.
type journal struct {
	mu      sync.Mutex
	entries []string
}

func (j *journal) add(entry string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.entries = append(j.entries, entry)
}

// cleanup returns a clean-up that is recorded and fails with err.
func (j *journal) cleanup(name string, err error) func(context.Context) error {
	return func(ctx context.Context) error {
		if ctx.Err() != nil {
			name += " too late"
		}
		j.add("clean " + name)
		return err
	}
}

func (j *journal) want(t *testing.T, entries ...string) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if !slices.Equal(j.entries, entries) {
		t.Errorf("happened %q, want %q", j.entries, entries)
	}
}

// start runs a shell without HTTP until it ends by itself.
func start(ctx context.Context, fn func(*service.Shell) error) error {
	return service.Run(ctx, service.Options{Name: "scanner", Log: zerolog.Nop()}, fn)
}

// untilStopped is a member that does as it is told.
func untilStopped(ctx context.Context) error {
	<-ctx.Done()
	return fmt.Errorf("reading: %w", ctx.Err())
}

func TestStopEndsMembersThenCleansUpYoungestFirst(t *testing.T) {
	var j journal
	ctx, cancel := context.WithCancel(t.Context())
	err := start(ctx, func(sh *service.Shell) error {
		sh.OnStop("kafka", j.cleanup("kafka", nil))
		sh.OnStop("postgres", j.cleanup("postgres", nil))
		sh.Go("loop", func(ctx context.Context) error {
			err := untilStopped(ctx)
			j.add("loop ended")
			return err
		})
		cancel()
		return nil
	})
	if err != nil {
		t.Errorf("a stop that was asked for fails: %v", err)
	}
	j.want(t, "loop ended", "clean postgres", "clean kafka")
}

func TestFailedStartRollsBack(t *testing.T) {
	var j journal
	errLogin, errBusy := errors.New("connecting to postgres: login refused"), errors.New("busy")
	err := start(t.Context(), func(sh *service.Shell) error {
		sh.OnStop("kafka", j.cleanup("kafka", nil))
		sh.OnStop("files", j.cleanup("files", errBusy))
		sh.Go("loop", untilStopped)
		return errLogin
	})
	if !errors.Is(err, errLogin) || !errors.Is(err, errBusy) || err.Error() != "connecting to postgres: login "+
		"refused; files: busy" {
		t.Errorf("got %v", err)
	}
	j.want(t, "clean files", "clean kafka")
}

func TestFirstFailureStopsAllAndIsTheOneReported(t *testing.T) {
	errLost := errors.New("connection lost")
	err := start(t.Context(), func(sh *service.Shell) error {
		sh.Go("one", untilStopped)
		sh.Go("two", func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("giving up: %w", context.Cause(ctx)) // Only repeats why.
		})
		sh.Go("three", func(context.Context) error { return errLost })
		<-sh.Context().Done()
		return sh.Context().Err()
	})
	if !errors.Is(err, errLost) || err.Error() != "three: connection lost" {
		t.Errorf("got %v", err)
	}
}

func TestFailureWhileStoppingIsReported(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	errFlush := errors.New("flushing: disk full")
	err := start(ctx, func(sh *service.Shell) error {
		sh.Go("writer", func(ctx context.Context) error {
			<-ctx.Done()
			return errFlush
		})
		cancel()
		return nil
	})
	if err == nil || err.Error() != "writer: flushing: disk full" {
		t.Errorf("got %v", err)
	}
}

func TestHowMembersMayEnd(t *testing.T) {
	for _, c := range []struct {
		name string
		add  func(*service.Shell)
		want string // empty: no error
	}{
		{"nobody to run", func(*service.Shell) {}, ""},
		{"a loop just ends", func(sh *service.Shell) { sh.Go("loop", func(context.Context) error { return nil }) },
			"loop: ended without being asked to"},
		{"a loop cancels itself",
			func(sh *service.Shell) { sh.Go("loop", func(context.Context) error { return context.Canceled }) },
			"loop: context canceled"},
		{"a goroutine is ended", func(sh *service.Shell) {
			sh.Go("loop", func(context.Context) error { runtime.Goexit(); return nil })
		}, "loop: its goroutine was ended from within"},
		{"a panic", func(sh *service.Shell) { sh.Go("loop", func(context.Context) error { panic("boom") }) },
			"loop: panic: boom (in service_test."},
		{"a panic with an error", func(sh *service.Shell) {
			sh.Go("loop", func(context.Context) error { panic(errors.New("boom")) })
		}, "loop: panic: boom (in service_test."},
		{"a panic of the runtime", func(sh *service.Shell) {
			sh.Go("loop", func(context.Context) error { return []error{}[len(c0)] })
		}, "loop: panic: runtime error: index out of range"},
		{"a clean-up panics", func(sh *service.Shell) {
			sh.OnStop("store",
				func(context.Context) error { panic("boom") })
		}, "store: panic: boom (in service_test."},
	} {
		err := start(t.Context(), func(sh *service.Shell) error {
			c.add(sh)
			return nil
		})
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// c0 is an index that the compiler does not know.
var c0 = []int{1, 2, 3}

// A stop ends within the grace period, whatever members and clean-ups do, and names what it left behind.
func TestStopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		release := make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		begun := time.Now()
		err := service.Run(ctx, service.Options{Name: "scanner", Log: zerolog.Nop(), Grace: time.Minute},
			func(sh *service.Shell) error {
				sh.OnStop("oldest", j.cleanup("oldest", nil))
				sh.OnStop("hangs", func(context.Context) error { <-release; return nil })
				sh.OnStop("hangs too", func(context.Context) error { <-release; return nil })
				sh.OnStop("youngest", j.cleanup("youngest", nil))
				sh.Go("rock", func(context.Context) error { <-release; return nil })
				cancel()
				return nil
			})
		if took := time.Since(begun); took > time.Minute {
			t.Errorf("the stop took %s", took)
		}
		want := "still running at the end of the grace period: rock; hangs too: not cleaned up within the grace " +
			"period; hangs: not cleaned up within the grace period"
		if err == nil || err.Error() != want {
			t.Errorf("got %v", err)
		}
		j.want(t, "clean youngest", "clean oldest")
		close(release)
		synctest.Wait()
	})
}

// A start that ignores its context does not hold up the stop; what it acquires afterwards is cleaned up at once.
func TestLateStartIsLeftBehindCleanly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		var log lockedBuffer
		release, left := make(chan struct{}), make(chan struct{})
		ctx, cancel := context.WithCancel(t.Context())
		err := service.Run(ctx, service.Options{Name: "scanner", Log: zerolog.New(&log)},
			func(sh *service.Shell) error {
				defer close(left)
				cancel()
				<-release
				sh.Go("loop", func(context.Context) error { j.add("ran"); return nil })
				sh.OnStop("late", j.cleanup("late", errors.New("gone")))
				return nil
			})
		if err == nil || err.Error() != "still running at the end of the grace period: start" {
			t.Errorf("got %v", err)
		}
		close(release)
		<-left
		synctest.Wait()
		j.want(t, "clean late")
		if !strings.Contains(log.String(), `"error":"late: gone"`) {
			t.Errorf("the failed clean-up is not in the log: %s", log.String())
		}
		if strings.Contains(log.String(), "condition holds") {
			t.Errorf("the process was ready while stopping: %s", log.String())
		}
	})
}

func TestStopBeforeTheBeginning(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := start(ctx, func(*service.Shell) error { return errors.New("started") })
	if err != nil {
		t.Errorf("got %v", err)
	}
}
