package service

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/rs/zerolog"
)

// Grace is how long a stop may take in all. It is shorter than the 10 s after which container runtimes kill.
const Grace = 8 * time.Second

// Shell is the environment of a service while it runs. Its methods are safe for concurrent use.
type Shell struct {
	Name     string
	Log      zerolog.Logger
	Registry *prometheus.Registry // of this process alone; what is registered here is served at /metrics

	group    *group
	cleanups cleanups
	ready    readiness
	mux      *http.ServeMux
	addr     string
	profiles string // address of /debug/pprof/; empty without
}

// Options are what Run needs to know; Main fills them from the configuration.
type Options struct {
	Name  string
	Log   zerolog.Logger
	HTTP  HTTPSettings  // an empty Listen means no HTTP at all
	Grace time.Duration // 0 means Grace

	recent *recent // what Log wrote lately, served at /log; nil = nobody keeps it
}

// Run wears the shell around start until ctx ends, a member fails, or start has returned and left no member. It is what
// Main runs, without flags, signals and exit codes: for tests, and for programs that embed several services.
//
// It returns when everything has stopped: nil if ctx ended or the work was done, otherwise all that failed, in order,
// the cause first.
func Run(ctx context.Context, o Options, start func(*Shell) error) error {
	sh := newShell(ctx, o)
	if o.HTTP.Listen != "" {
		if o.recent != nil {
			sh.Handle("GET /log", o.recent)
		}
		if err := sh.serve(o.HTTP); err != nil {
			return err
		}
	}
	own := sh.Ready(ownCondition)
	sh.group.start(member{name: "start", start: true}, func(context.Context) error {
		if err := start(sh); err != nil {
			return err
		}
		if sh.Context().Err() == nil {
			own.OK()
		}
		return nil
	})
	<-sh.Context().Done()
	return sh.stop(o.Grace)
}

func newShell(ctx context.Context, o Options) *Shell {
	sh := &Shell{Name: o.Name, Log: o.Log, Registry: prometheus.NewRegistry(), group: newGroup(ctx),
		mux: http.NewServeMux()}
	sh.ready.log = o.Log
	sh.ready.stopping = func() bool { return sh.Context().Err() != nil }
	sh.Registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registerBuild(sh.Registry, ReadBuild(o.Name))
	sh.ready.held = newReadyGauge(sh.Registry)
	return sh
}

// Context ends when the process is to stop. Members get the same one.
func (sh *Shell) Context() context.Context { return sh.group.ctx }

// Go runs fn as a long-running member of the process. fn returns when ctx ends. If it returns an error, or returns at
// all before it was asked to, or panics, the process stops and exits with 1. Once the process is stopping, Go does
// nothing.
func (sh *Shell) Go(name string, fn func(ctx context.Context) error) {
	sh.group.start(member{name: name}, fn)
}

// OnStop registers the clean-up of something that has just been acquired. Clean-ups run in the opposite order once all
// members have ended (or the grace period has nearly passed), also when the start fails. ctx is not the process's: it
// lives until the clean-up has had its time.
func (sh *Shell) OnStop(name string, fn func(ctx context.Context) error) {
	c := cleanup{name: name, fn: fn}
	if sh.cleanups.push(c) {
		return
	}
	// A start that outlived the grace period: nobody else will clean up, and nobody is left to return an error to.
	ctx, cancel := context.WithTimeout(context.Background(), Grace)
	defer cancel()
	if err := c.run(ctx); err != nil {
		sh.Log.Error().Err(err).Msg("late clean-up failed")
	}
}

// Ready returns the readiness condition of that name; a new one does not hold yet. /readyz answers 200 when all hold.
func (sh *Shell) Ready(name string) *Condition { return sh.ready.condition(name) }

// Handle serves a page of the service's own beside the shell's. The pattern is that of http.ServeMux; one that is taken
// panics.
func (sh *Shell) Handle(pattern string, handler http.Handler) { sh.mux.Handle(pattern, handler) }

// Addr is the address that HTTP is served at, host:port; empty without HTTP.
func (sh *Shell) Addr() string { return sh.addr }

// Profiles is the address that profiles are served at, host:port; empty without.
func (sh *Shell) Profiles() string { return sh.profiles }

// stop waits for the members, then cleans up, all within the grace period.
func (sh *Shell) stop(grace time.Duration) error {
	if grace == 0 {
		grace = Grace
	}
	begun := time.Now()
	sh.Log.Info().Msg("stopping")
	ctx, cancel := context.WithDeadline(context.Background(), begun.Add(grace*3/4))
	defer cancel()
	stuck := sh.group.wait(ctx)
	unclean := sh.cleanups.drain(begun.Add(grace))
	failures := sh.group.failed()
	if stuck != nil {
		failures = append(failures, stuck)
	}
	failures = append(failures, unclean...)
	sh.Log.Info().Dur("took_ms", time.Since(begun)).Int("failures", len(failures)).Msg("stopped")
	return joinFailures(failures)
}

// runErrors are the error of a process for which more than one thing went wrong, the cause first. They print in one
// line.
type runErrors []error

// joinFailures returns the failures as one error, or nil if there are none.
func joinFailures(failures []error) error {
	switch len(failures) {
	case 0:
		return nil
	case 1:
		return failures[0]
	default:
		return runErrors(failures)
	}
}

// Error joins the failures by semicolons.
func (f runErrors) Error() string {
	texts := make([]string, len(f))
	for i, err := range f {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap gives all failures to errors.Is and errors.As.
func (f runErrors) Unwrap() []error { return f }
