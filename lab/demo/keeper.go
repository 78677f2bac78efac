package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"perpkeeper/lab/embedded/broker"
	"perpkeeper/lab/embedded/postgres"
)

// Keeper is one complete keeper: its own broker, its own Postgres, its own signers and its four services. In production
// it is a region.
type Keeper struct {
	// Tier is its place among the keepers; 1 is the Master, and 0 the shadow's, which has none.
	Tier      int
	Brokers   []string // addresses
	Postgres  string   // URL of its database, with the password
	Processes []*Process
	// Also, set before Start, are settings of this keeper alone, by their names in the environment without the prefix.
	Also map[string]string
	// ConsoleLink opens the keeper's console in a browser of this machine, signed in; empty where it has none.
	ConsoleLink string

	stack   *Stack
	dir     string
	env     []string
	closers []func() error
}

// Name is keeper-1 for the Master, and so on.
func (k *Keeper) Name() string {
	if k.isShadow() {
		return "shadow"
	}
	return fmt.Sprintf("keeper-%d", k.Tier)
}

func (k *Keeper) isShadow() bool { return k.Tier == 0 }

// Role is what people call its tier.
func (k *Keeper) Role() string { return roleOf(k.Tier) }

// roleOf names a tier: Master, Backup-1, Backup-2, …; tier 0 is nobody's.
func roleOf(tier int) string {
	switch tier {
	case 0:
		return "others"
	case 1:
		return "Master"
	default:
		return fmt.Sprintf("Backup-%d", tier-1)
	}
}

// Process returns the process with a name: copies of statevm are statevm-1, statevm-2, ….
func (k *Keeper) Process(name string) *Process {
	for _, p := range k.Processes {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// Hold kills all services of the keeper at once and keeps them down until the returned function is called: a region
// without power. Its broker and its database stay, as disks do.
func (k *Keeper) Hold() (release func()) {
	releases := make([]func(), 0, len(k.Processes))
	for _, p := range k.Processes {
		releases = append(releases, p.Hold())
	}
	return func() {
		for _, release := range releases {
			release()
		}
	}
}

// Keeperctl runs the operator's tool on this keeper and returns what it prints.
func (k *Keeper) Keeperctl(ctx context.Context, args ...string) (string, error) {
	path, err := binary(k.stack.binaries, "keeperctl")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), k.env...)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// startStores starts the keeper's Postgres and its broker, unless the configuration names ones that run already.
func (k *Keeper) startStores(context.Context) error {
	settings := k.stack.settings
	if k.Brokers = settings.Brokers; len(k.Brokers) == 0 {
		b, err := broker.Start(broker.Config{DataDir: filepath.Join(k.dir, "kafka")})
		if err != nil {
			return err
		}
		k.closers = append(k.closers, func() error { b.Close(); return nil })
		k.Brokers = []string{b.Addr()}
	}
	if settings.Postgres.IsSet() {
		k.Postgres = settings.Postgres.Reveal()
		return nil
	}
	server, err := postgres.Start(postgres.Config{})
	if err != nil {
		return err
	}
	k.closers = append(k.closers, server.Stop)
	k.Postgres = server.URL("")
	return nil
}

// prepare runs keeperctl as an operator would.
func (k *Keeper) prepare(ctx context.Context) error {
	var err error
	if k.env, err = k.environment(); err != nil {
		return err
	}
	if err := k.writeEnvironment(); err != nil {
		return fmt.Errorf("writing the configuration of %s: %w", k.Name(), err)
	}
	if out, err := k.Keeperctl(ctx, "prepare"); err != nil {
		return fmt.Errorf("%s: %w", out, err)
	}
	return nil
}

func (k *Keeper) startServices(ctx context.Context) error {
	config, err := k.writeConfig()
	if err != nil {
		return err
	}
	settings := k.stack.settings
	for _, service := range []struct {
		name   string
		copies int
	}{{"scanner", settings.Scanner}, {"statevm", settings.Statevm}, {"planner", settings.Planner},
		{"sender", settings.Sender}} {
		for i := range service.copies {
			name := service.name
			if service.copies > 1 {
				name = fmt.Sprintf("%s-%d", service.name, i+1)
			}
			if err := k.start(ctx, name, service.name, "--config", config); err != nil {
				return err
			}
		}
	}
	if k.Tier == 1 && k.stack.Console {
		return k.startConsole(ctx, config)
	}
	return nil
}

// start supervises one process from here on.
func (k *Keeper) start(ctx context.Context, name, program string, args ...string) error {
	path, err := binary(k.stack.binaries, program)
	if err != nil {
		return err
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	p := &Process{
		Name: name, HTTP: address, path: path, args: args, log: k.stack.log.With().Str("keeper", k.Name()).Logger(),
		file: filepath.Join(k.dir, "logs", name+".log"),
		env:  append([]string{"PERPKEEPER_HTTP_LISTEN=" + address, "PERPKEEPER_LOG_FORMAT=json"}, k.env...),
	}
	k.Processes = append(k.Processes, p)
	k.stack.supervise(ctx, k, p)
	return nil
}

// close stops the keeper's own server and broker, after its processes have ended.
func (k *Keeper) close() error {
	var problems []error
	for _, closer := range slices.Backward(k.closers) {
		problems = append(problems, closer())
	}
	k.closers = nil
	return errors.Join(problems...)
}

// freeAddress picks a port that is free now, below those that connections take for themselves: one of these would be in
// use, for as long as a connection lasts, when the process comes to it. Another program may still be faster; the
// process then says so in its log and is started again.
func freeAddress(ctx context.Context) (string, error) {
	const first, ports, tries = 20_000, 12_000, 100
	var last error
	for range tries {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.IntN(ports))) //nolint:gosec // no secret
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
		if err != nil {
			last = err
			continue
		}
		return address, l.Close()
	}
	return "", fmt.Errorf("looking for a free port: %w", last)
}
