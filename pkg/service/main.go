package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/service/config"
	"perpkeeper/pkg/setting/secret"
)

// Exit codes of every process.
const (
	ExitAsked  = 0 // asked to stop, or all work done
	ExitFailed = 1 // something failed
	ExitConfig = 2 // the configuration, or a tool's command line, makes no sense; nothing was started, or done
)

// Config is a service's configuration: a structure of sections (see package config) that holds the defaults until it is
// loaded.
type Config interface{ Validate() error }

// UsageError is a command line that makes no sense to a tool: with it a tool exits with ExitConfig.
type UsageError struct{ Err error }

// Error is what is wrong with the command line.
func (e UsageError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong with the command line.
func (e UsageError) Unwrap() error { return e.Err }

// Option adds something to a process.
type Option func(*program)

// About is one sentence that --help begins with.
func About(sentence string) Option { return func(p *program) { p.about = sentence } }

// Borrows names sections of other processes of which this one reads a part (see [config.Set.Borrow]).
func Borrows(sections ...string) Option { return func(p *program) { p.borrows = sections } }

// Metrics names what the process registers in its Registry, for --print-metrics. Give the packages' NewMetrics
// functions, wrapped to return nothing.
func Metrics(register ...func(prometheus.Registerer)) Option {
	return func(p *program) { p.metrics = append(p.metrics, register...) }
}

// Main is the main function of a service: it reads the configuration, wears the shell around start and exits. It does
// not return.
//
// start acquires what the service needs, registers each clean-up at the line after (Shell.OnStop), gives the shell its
// long-running members (Shell.Go) and returns; it does not block for the life of the service.
func Main[C Config](name string, defaults C, start func(*Shell, C) error, options ...Option) {
	cfg, own := defaults, serviceSettings{Log: LogSettings{Level: "info", Format: "auto"},
		HTTP: HTTPSettings{Listen: "127.0.0.1:0"}}
	p := &program{
		name: name, roots: []any{&cfg, &own}, log: &own.Log, http: &own.HTTP,
		start: func(sh *Shell, _ []string) error { return start(sh, cfg) },
	}
	p.exit(options)
}

// Tool is the main function of a command line tool: like Main, but it takes arguments (usage shows them, as in
// "<command> [id]"), serves no HTTP, logs nothing below warnings by default and for people wherever it writes to, and
// ends when run returns. Members that run has started are stopped then.
func Tool[C Config](name, usage string, defaults C, run func(sh *Shell, cfg C, args []string) error,
	options ...Option) {
	cfg, own := defaults, toolSettings{Log: LogSettings{Level: "warn", Format: "console"}}
	p := &program{
		name: name, usage: usage, roots: []any{&cfg, &own}, log: &own.Log, http: &HTTPSettings{},
		start: func(sh *Shell, args []string) error {
			err := run(sh, cfg, args)
			if err == nil {
				sh.group.cancel(errFinished)
			}
			return err
		},
	}
	p.exit(options)
}

// program is one process before it runs.
type program struct {
	name, about string
	usage       string // the arguments of a tool; empty for a service, which takes none
	metrics     []func(prometheus.Registerer)
	roots       []any // what Load fills
	borrows     []string
	log         *LogSettings
	http        *HTTPSettings
	start       func(*Shell, []string) error
}

func (p *program) exit(options []Option) {
	for _, option := range options {
		option(p)
	}
	os.Exit(p.run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is the life of the process; it returns the exit code.
func (p *program) run(args []string, stdout, stderr io.Writer) int {
	set, err := config.New(p.name, p.roots...)
	if err != nil {
		return p.refuse(stderr, err)
	}
	set.Borrow(p.borrows...)
	req, err := set.Load(args)
	if err == nil && p.usage == "" && len(req.Args) > 0 {
		err = fmt.Errorf("unexpected argument (settings are written --section.key=value; --help lists them)")
	}
	if err != nil {
		return p.refuse(stderr, err)
	}
	if show := p.printer(req, set); show != nil {
		if err := show(stdout); err != nil {
			_, _ = fmt.Fprintf(stderr, "%s: %v\n", p.name, err)
			return ExitFailed
		}
		return ExitAsked
	}
	return p.live(set, req.Args, stderr)
}

// refuse prints every problem of a configuration on a line of its own.
func (p *program) refuse(stderr io.Writer, err error) int {
	for line := range strings.SplitSeq(err.Error(), "\n") {
		_, _ = fmt.Fprintf(stderr, "%s: %s\n", p.name, line)
	}
	return ExitConfig
}

// printer is what a request to print something comes to; nil if the request is to run.
func (p *program) printer(req config.Request, set *config.Set) func(io.Writer) error {
	switch {
	case req.Help:
		return func(w io.Writer) error { return p.help(w, set) }
	case req.Version:
		return func(w io.Writer) error {
			_, err := fmt.Fprintln(w, ReadBuild(p.name))
			return err
		}
	case req.PrintMetrics:
		return p.printMetrics
	case req.PrintConfig:
		return set.WriteTOML
	default:
		return nil
	}
}

func (p *program) help(w io.Writer, set *config.Set) error {
	var b strings.Builder
	if p.about != "" {
		b.WriteString(p.about + "\n\n")
	}
	fmt.Fprintf(&b, "Usage: %s [flags]%s\n", p.name, strings.TrimRight(" "+p.usage, " "))
	b.WriteString(`
  --config FILE    read settings from a TOML file; several may be named, each wins over those before it
                   (else PERPKEEPER_CONFIG, separated by commas)
  --print-config   print the configuration in force as TOML, secrets masked, and exit
  --print-metrics  print the metrics of this program as rows of a markdown table and exit
  --version        print the version and exit
  --help           print this and exit

Every setting below can be given in the file, in the environment or as a flag. The environment wins over the file,
a flag over both.
A secret can be read from a file of its own: key_file in place of key, NAME_FILE in place of NAME.
`)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	return set.WriteHelp(w)
}

func (p *program) printMetrics(w io.Writer) error {
	rows, err := Catalogue(func(reg prometheus.Registerer) {
		registerBuild(reg, ReadBuild(p.name))
		newReadyGauge(reg)
		for _, register := range p.metrics {
			register(reg)
		}
	})
	if err != nil {
		return err
	}
	return WriteCatalogue(w, rows)
}

// live runs the process until it is asked to stop or fails.
func (p *program) live(set *config.Set, args []string, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal does not wait
	defer stop()
	kept := &recent{secrets: secret.Scrubber(set.Secrets()...)}
	log, console := newLog(p.name, *p.log, stderr, kept)
	announce(log.Output(&kept.started).Level(zerolog.InfoLevel), set, ReadBuild(p.name))
	announce(log, set, ReadBuild(p.name))
	err := Run(ctx, Options{Name: p.name, Log: log, HTTP: *p.http, recent: kept},
		func(sh *Shell) error { return p.start(sh, args) })
	if err == nil {
		return ExitAsked
	}
	p.report(log, console, stderr, err)
	if _, usage := errors.AsType[UsageError](err); usage {
		return ExitConfig
	}
	return ExitFailed
}

// announce logs what is running and the configuration in force.
func announce(log zerolog.Logger, set *config.Set, b Build) {
	settings := zerolog.Dict()
	set.Each(func(key, value string) { settings.Str(key, value) })
	log.Info().Str("version", b.Version).Str("revision", b.Revision).Dict("config", settings).Msg("starting")
}

// report reports why the process failed: one line for people, or one line of JSON.
func (p *program) report(log zerolog.Logger, console bool, stderr io.Writer, err error) {
	text := OneLine(strings.TrimSpace(err.Error()))
	fatal := log.WithLevel(zerolog.FatalLevel).Str("error", text) // Fatal itself would exit.
	panicked, ok := errors.AsType[*panicError](err)
	if ok {
		fatal.Bytes("stack", panicked.Stack)
	}
	if !console || ok {
		fatal.Msg("failed")
	}
	if console {
		_, _ = fmt.Fprintf(stderr, "%s: %s\n", p.name, text)
	}
}
