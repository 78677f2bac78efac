// Package keeperctl is the operator's command line: one binary with sub-commands, each in a file of its own.
//
// Results go to standard output, complaints to standard error as one line that says what is wrong, where, and what to do. The exit code
// is 0 for success, 1 for what failed on the way, 2 for a command line that makes no sense.
package keeperctl

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"perpkeeper/pkg/service"
)

// IO is what a command reads and writes.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
}

// command is one sub-command. Setup declares its flags and returns what runs once they are parsed. A command that works on a keeper is configured
// as the keeper's processes are (file, environment, flags) and has main instead, which reads the process's own command line and exits.
type command struct {
	name    string
	summary string
	setup   func(*flag.FlagSet) func(context.Context, IO) error
	main    func()
	parts   []string // if any, main is meant only where the first argument is one of them
	operand string   // what the one argument that is no flag means, before or after the flags; none is taken when empty
}

var commands = []command{
	{name: "fold", summary: "fold a recording of event logs and print the state it leaves, or the verdicts on cases", setup: foldCommand, operand: "logs"},
	{name: "gas", summary: "print the gas limits of executions under given words of the exchange", setup: gasCommand, operand: "cases"},
	{name: "events", summary: "list the contract events that are handled and those known and ignored", setup: eventsCommand},
	{name: "prepare", summary: "create missing topics and bring the database's schema up to date", main: func() {
		tool("prepare", DefaultPrepareConfig(), Prepare)
	}},
	{name: "rebuild", summary: "fill a new generation of the state from the log topic, beside the live one, and compare", main: func() {
		tool("rebuild", DefaultRebuildConfig(), Rebuild)
	}},
	{name: "generations", summary: "list, compare, switch or drop generations of the state", main: func() {
		tool(generationsUsage, DefaultGenerationsConfig(), Generations)
	}},
	{name: "why-not", summary: "say why a position, order or request is not executed now", main: func() {
		tool("why-not KEY", DefaultWhyNotConfig(), WhyNot)
	}},
	{name: "audit", summary: "say who executed which jobs, by the chain alone: ages, duplicates, gas won and lost, what sharing saved", main: func() {
		tool(auditUsage, DefaultAuditConfig(), Audit)
	}},
	{name: "delayed", summary: "run, list, show, retry or cancel delayed jobs", main: func() {
		tool(delayedUsage, DefaultLedgerConfig(), onDatabase(delayedJobs))
	}},
	{name: "wallet", summary: "list and verify what agents have earned", main: func() {
		tool(walletUsage, DefaultLedgerConfig(), onDatabase(wallets))
	}},
	{name: "signer", summary: "list, pause, resume or resync signers, call a transaction off; hold balances and nonces against the chain", main: func() {
		tool(signerUsage, DefaultSignerConfig(), Signer)
	}},
	{name: "emergency", summary: "plan, rehearse and record what is done when keepers fail; hand over calls of the venue", main: func() {
		tool(emergencyUsage, DefaultEmergencyConfig(), Emergency)
	}},
	{name: "dlq", summary: "list and show dead letters; have jobs that were given up said again", main: func() {
		tool(dlqUsage, DefaultDLQConfig(), DLQ)
	}},
	{name: "simulate", summary: "play keepers through a scenario in simulated time, and say whether it comes out as expected", setup: simulateCommand, operand: "scenario"},
	{name: "keystore", summary: "make an encrypted keystore and its password for a signer, of a new key or a given one", setup: keystoreCommand, operand: "folder"},
	{name: "topics", summary: "print the catalogue of topics as a markdown table", setup: topicsCommand},
	{name: "addresses", summary: "find the exchange's contracts, from one of them or from a deployments file, as lines of an env file", main: func() {
		tool(addressesUsage, DefaultAddressesConfig(), Addresses)
	}},
	{name: "health", summary: "ask a process whether it is ready; ask Kafka or Postgres (health kafka, health postgres)", setup: healthCommand,
		parts: []string{kafkaPart, postgresPart}, main: func() { healthMain(os.Args[2]) }},
}

// tool is the main function of a command that works on a keeper.
func tool[C service.Config](usage string, defaults C, run func(*service.Shell, C, []string) error) {
	service.Tool("keeperctl", usage, defaults, func(sh *service.Shell, cfg C, args []string) error {
		if err := run(sh, cfg, args); err != nil {
			return legibleError{err}
		}
		return nil
	}, service.Siblings(settings()...))
}

// settings are what the commands of a keeper can be told, for those that read the same file and cannot be told it.
func settings() []any {
	return []any{
		new(PrepareConfig), new(RebuildConfig), new(GenerationsConfig), new(WhyNotConfig), new(AuditConfig), new(LedgerConfig), new(SignerConfig),
		new(EmergencyConfig), new(DLQConfig), new(AddressesConfig), new(KafkaHealthConfig), new(PostgresHealthConfig),
	}
}

// usagef is a command line that makes no sense.
func usagef(format string, args ...any) error {
	return service.UsageError{Err: fmt.Errorf(format, args...)}
}

// Run executes one command line, without the program's name, and returns the exit code.
func Run(ctx context.Context, args []string, std IO) int {
	std.Out, std.Err = escaped(std.Out), escaped(std.Err)
	err := dispatch(ctx, args, std)
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintf(std.Err, "keeperctl: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	if errors.As(err, new(service.UsageError)) {
		return 2
	}
	return 1
}

func dispatch(ctx context.Context, args []string, std IO) error {
	if len(args) == 0 {
		return usagef("no command given; try keeperctl help")
	}
	switch args[0] {
	case "help", "-h", "--help":
		_, err := io.WriteString(std.Out, overview())
		return err
	}
	if args[0] == "version" || args[0] == "--version" {
		_, err := fmt.Fprintln(std.Out, service.ReadBuild("keeperctl"))
		return err
	}
	for _, c := range commands {
		if c.name == args[0] && c.main != nil && (len(c.parts) == 0 || len(args) > 1 && slices.Contains(c.parts, args[1])) {
			c.main()
		}
		if c.name == args[0] {
			return c.run(ctx, args[1:], std)
		}
	}
	return usagef("unknown command %q; try keeperctl help", args[0])
}

func (c command) run(ctx context.Context, args []string, std IO) error {
	flags := flag.NewFlagSet(c.name, flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	run := c.setup(flags)
	switch err := c.parse(flags, args); {
	case errors.Is(err, flag.ErrHelp):
		_, _ = fmt.Fprintf(std.Out, "keeperctl %s: %s\n", c.name, c.summary)
		flags.SetOutput(std.Out)
		flags.PrintDefaults()
		return nil
	case err != nil:
		return usagef("%s: %w; try keeperctl %s -h", c.name, err, c.name)
	case flags.NArg() > 0:
		return usagef("%s: unexpected argument %q; try keeperctl %s -h", c.name, flags.Arg(0), c.name)
	}
	if err := run(ctx, std); err != nil {
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return nil
}

// parse reads flags and the operand, which is another way to write the flag it is named for.
func (c command) parse(flags *flag.FlagSet, args []string) error {
	err := flags.Parse(args)
	if err != nil || c.operand == "" || flags.NArg() == 0 || flags.Lookup(c.operand).Value.String() != "" {
		return err
	}
	operand, rest := flags.Arg(0), flags.Args()[1:]
	return errors.Join(flags.Set(c.operand, operand), flags.Parse(rest))
}

func overview() string {
	var b strings.Builder
	b.WriteString("usage: keeperctl <command> [flags]\n\n")
	for _, c := range commands {
		fmt.Fprintf(&b, "  %-11s %s\n", c.name, c.summary)
	}
	b.WriteString("\nkeeperctl <command> -h explains its flags; keeperctl version says which build this is.\n")
	return b.String()
}
