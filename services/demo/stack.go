package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/embedded/broker"
	"perpkeeper/pkg/embedded/postgres"
)

// Stack is everything a keeper consists of, running on this machine.
type Stack struct {
	Devnet    Devnet
	Brokers   []string // addresses
	Postgres  string   // URL of the keeper's database, with its password
	Processes []*Process

	settings Settings
	log      zerolog.Logger
	dir      string
	binaries string
	closers  []func() error
	running  sync.WaitGroup
	failed   chan error
	cancel   context.CancelFunc
	env      []string
}

// Start brings everything up, one part after the other, and tells of each. It returns when the four services have been started; whether they
// are ready is theirs to say. Close must be called also after an error.
func (s *Stack) Start(ctx context.Context, tell func(string)) error {
	ctx, s.cancel = context.WithCancel(ctx)
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"preparing a folder", s.openDir},
		{"starting Postgres", s.startPostgres},
		{"starting the Kafka-protocol broker", s.startBroker},
		{"starting the chain and deploying the exchange", s.startDevnet},
		{"creating topics and schema", s.prepare},
		{"starting scanner, statevm, planner and sender", s.startServices},
	} {
		tell(step.what)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// New describes a stack that is not running yet.
func New(settings Settings, log zerolog.Logger) *Stack {
	return &Stack{settings: settings, log: log, failed: make(chan error, 1)}
}

// Failed delivers the error of a process that cannot be started again.
func (s *Stack) Failed() <-chan error { return s.failed }

// Dir is the folder of data and logs.
func (s *Stack) Dir() string { return s.dir }

// Process returns the processes with a name: statevm's copies are statevm-1, statevm-2, ….
func (s *Stack) Process(name string) *Process {
	for _, p := range s.Processes {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Close stops everything, youngest first, and removes the folder unless it was named by the configuration.
func (s *Stack) Close() error {
	if s.cancel != nil {
		s.cancel()
	}
	s.running.Wait()
	var problems []error
	for _, closer := range slices.Backward(s.closers) {
		problems = append(problems, closer())
	}
	s.closers = nil
	return errors.Join(problems...)
}

func (s *Stack) openDir(context.Context) (err error) {
	if s.binaries = s.settings.Binaries; s.binaries == "" {
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("finding this program: %w", err)
		}
		s.binaries = filepath.Dir(self)
	}
	if s.dir = s.settings.Dir; s.dir != "" {
		return os.MkdirAll(filepath.Join(s.dir, "logs"), 0o700)
	}
	if s.dir, err = os.MkdirTemp("", "perpkeeper-demo-"); err != nil {
		return err
	}
	s.closers = append(s.closers, func() error { return os.RemoveAll(s.dir) })
	return os.MkdirAll(filepath.Join(s.dir, "logs"), 0o700)
}

func (s *Stack) startPostgres(context.Context) error {
	if s.settings.Postgres.IsSet() {
		s.Postgres = s.settings.Postgres.Reveal()
		return nil
	}
	server, err := postgres.Start(postgres.Config{})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, server.Stop)
	s.Postgres = server.URL("")
	return nil
}

func (s *Stack) startBroker(context.Context) error {
	if len(s.settings.Brokers) > 0 {
		s.Brokers = s.settings.Brokers
		return nil
	}
	b, err := broker.Start(broker.Config{DataDir: filepath.Join(s.dir, "kafka")})
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() error { b.Close(); return nil })
	s.Brokers = []string{b.Addr()}
	return nil
}

// prepare runs keeperctl as an operator would.
func (s *Stack) prepare(ctx context.Context) error {
	var err error
	if s.env, err = s.environment(); err != nil {
		return err
	}
	if out, err := s.Keeperctl(ctx, "prepare"); err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	return nil
}

// Keeperctl runs the operator's tool on this keeper and returns what it prints.
func (s *Stack) Keeperctl(ctx context.Context, args ...string) (string, error) {
	path, err := binary(s.binaries, "keeperctl")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), s.env...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (s *Stack) startServices(ctx context.Context) error {
	config, err := s.writeConfig()
	if err != nil {
		return err
	}
	for _, service := range []struct {
		name   string
		copies int
	}{{"scanner", s.settings.Scanner}, {"statevm", s.settings.Statevm}, {"planner", s.settings.Planner}, {"sender", s.settings.Sender}} {
		for i := range service.copies {
			name := service.name
			if service.copies > 1 {
				name = fmt.Sprintf("%s-%d", service.name, i+1)
			}
			if err := s.start(ctx, name, service.name, "--config", config); err != nil {
				return err
			}
		}
	}
	return nil
}

// start supervises one process from here on.
func (s *Stack) start(ctx context.Context, name, program string, args ...string) error {
	path, err := binary(s.binaries, program)
	if err != nil {
		return err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	p := &Process{
		Name: name, HTTP: address, path: path, args: args, log: s.log, file: filepath.Join(s.dir, "logs", name+".log"),
		env: append([]string{"PERPKEEPER_HTTP_LISTEN=" + address, "PERPKEEPER_LOG_FORMAT=json"}, s.env...),
	}
	s.Processes = append(s.Processes, p)
	s.running.Go(func() {
		if err := p.Run(ctx); err != nil {
			s.fail(err)
		}
	})
	return nil
}

// fail delivers the first failure.
func (s *Stack) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// freeAddress picks a port that is free now. Another program may take it before the process does; the process then says so in its log
// and is started again.
func freeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String(), nil
}
