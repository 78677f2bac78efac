// Package keeperctl is the operator's command line: one binary, its commands and what they need in one table
// (commands), each in a file of its own.
//
// Results go to standard output, as tables or, with --output json, as JSON; complaints go to standard error as one line
// that says what is wrong, where, and what to do. What others have written is printed so that no terminal obeys it. The
// exit code is one of exitFine, exitFindings and exitNotAsked.
package keeperctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"perpkeeper/pkg/service"
	"perpkeeper/pkg/service/config"
)

// The exit codes.
const (
	exitFine     = 0 // the answer is good, or what was asked for is done
	exitFindings = 1 // the answer is not good, or what was asked for was refused or failed
	exitNotAsked = 2 // the command line or the configuration makes no sense, or nobody could be asked; nothing was done
)

const program = "keeperctl"

// IO is what a command reads and writes.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
}

// runner does what a command is for. args are those after the command's name.
type runner func(ctx context.Context, s *session, args []string) error

// command is one entry of the table.
type command struct {
	use   string // its name and the arguments after it; a name alone takes none
	short string // what it does, without a full stop
	group string
	// sections and keys of the configuration; without any it is not read, and a verb has its command's
	needs   []string
	preset  func(*Settings) // what it has for defaults where they differ from defaultConfig's
	run     runner          // a verb without one is given to its command's, with its name before the arguments
	setup   func(*cobra.Command) runner
	data    bool // it prints data: --output
	patient bool // it ends after keeperctl.patience, and so do its verbs
	verbs   []command
	private bool // for the house, not listed
}

func (c command) name() string {
	name, _, _ := strings.Cut(c.use, " ")
	return name
}

// usagef is a command line that makes no sense.
func usagef(format string, args ...any) error {
	return service.UsageError{Err: fmt.Errorf(format, args...)}
}

// configError is a configuration that cannot be worked with, one problem a line.
type configError struct{ error }

// Run executes one command line, without the program's name, and returns the exit code.
func Run(ctx context.Context, args []string, std IO) int {
	r := newRoot(std)
	r.SetArgs(args)
	err := r.ExecuteContext(ctx)
	if err == nil {
		return exitFine
	}
	lines := []string{service.OneLine(strings.TrimSpace(err.Error()))}
	_, misconfigured := errors.AsType[configError](err)
	if misconfigured {
		lines = strings.Split(err.Error(), "\n")
	}
	for _, line := range lines {
		_, _ = fmt.Fprintf(r.ErrOrStderr(), "%s: %s\n", program, inLine(line))
	}
	_, usage := errors.AsType[service.UsageError](err)
	if _, notAsked := errors.AsType[notAskedError](err); usage || notAsked || misconfigured {
		return exitNotAsked
	}
	return exitFindings
}

// newRoot makes the tree of commands.
func newRoot(std IO) *cobra.Command {
	root := &cobra.Command{
		Use: program, Long: "The operator's command line of a keeper.\n\n" + exitCodes,
		SilenceErrors: true, SilenceUsage: true, Args: cobra.ArbitraryArgs,
		Version: service.ReadBuild(program).String(), SuggestionsMinimumDistance: 2,
	}
	root.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usagef("no command given; try keeperctl help")
		}
		hint := "try keeperctl help"
		if near := root.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return usagef("unknown command %q; %s", args[0], hint)
	}
	root.SetIn(std.In)
	root.SetOut(escaped(std.Out))
	root.SetErr(escaped(std.Err))
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetHelpCommand(helpCommand(root))
	root.SetFlagErrorFunc(flagProblem)
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.id, Title: g.title})
	}
	root.SetCompletionCommandGroupID(groupAbout)
	root.SetHelpCommandGroupID(groupAbout)
	for _, c := range commands() {
		root.AddCommand(c.build(std, nil))
	}
	return root
}

// loader reads the configuration of a command, and of its verbs.
type loader struct {
	cfg   Config
	set   *config.Set
	paths []string
	print bool
}

// loader declares a command's part of the configuration as flags of it and its verbs.
func (c command) loader(cmd *cobra.Command) *loader {
	l := &loader{cfg: defaultConfig()}
	if c.preset != nil {
		c.preset(&l.cfg.Own)
	}
	var err error
	if l.set, err = config.New(program, &l.cfg); err != nil {
		panic(err) // a mistake in Config, which every test would meet
	}
	l.set.Borrow(borrowed...)
	l.set.Restrict(append([]string{"log"}, c.needs...)...)
	flags := cmd.PersistentFlags()
	flags.StringArrayVar(&l.paths, "config", nil, "read settings from a TOML file; several may be named, each wins "+
		"over those before it")
	flags.BoolVar(&l.print, "print-config", false, "print the configuration in force as TOML, secrets masked, and exit")
	l.set.Declare(flags)
	return l
}

// build makes a command and its verbs. parent is the loader of the command above.
func (c command) build(std IO, parent *loader) *cobra.Command {
	cmd := &cobra.Command{Use: c.use, Short: c.short, GroupID: c.group, Hidden: c.private, Args: cobra.ArbitraryArgs,
		DisableFlagsInUseLine: true}
	l := parent
	if len(c.needs) > 0 {
		l = c.loader(cmd)
		cmd.Long = cmd.Short + "\n\nSettings can be given in a file (--config, else PERPKEEPER_CONFIG), in the " +
			"environment or as flags; a flag\nwins over the environment, the environment over the file. The name of a " +
			"variable is that of the\nsetting: --keeperctl.limit is PERPKEEPER_KEEPERCTL_LIMIT."
	}
	run := c.run
	if c.setup != nil {
		run = c.setup(cmd)
	}
	output := "table"
	if c.data {
		cmd.Flags().StringVarP(&output, "output", "o", output, "table, or json for programs")
		_ = cmd.RegisterFlagCompletionFunc("output",
			cobra.FixedCompletions([]string{"table", "json"}, cobra.ShellCompDirectiveNoFileComp))
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s := &session{in: cmd.InOrStdin(), out: printer{cmd.OutOrStdout(), output == "json"}, err: cmd.ErrOrStderr(),
			terminal: terminal(std.Out), bare: std.Out}
		if err := c.check(output, args, l != nil && l.print); err != nil {
			return err
		}
		done, err := s.load(l)
		if done || err != nil {
			return err
		}
		defer s.close()
		ctx, cancel := cmd.Context(), context.CancelFunc(func() {})
		if c.patient {
			ctx, cancel = s.within(ctx)
		}
		defer cancel()
		err = run(ctx, s, args)
		if err != nil && c.setup != nil {
			err = fmt.Errorf("%s: %w", strings.TrimPrefix(cmd.CommandPath(), program+" "), err)
		}
		return err
	}
	for _, v := range c.verbs {
		v.patient = c.patient
		if v.run == nil && v.setup == nil {
			v.run = func(ctx context.Context, s *session, args []string) error {
				return c.run(ctx, s, append([]string{v.name()}, args...))
			}
		}
		cmd.AddCommand(v.build(std, l))
	}
	return cmd
}

// noVerb is for commands all of whose verbs stand for themselves.
func noVerb(context.Context, *session, []string) error { return nil }

// check refuses a command line that no configuration can make sensible. A verb that there is has its own entry, and
// does not come here.
func (c command) check(output string, args []string, justPrint bool) error {
	switch {
	case output != "table" && output != "json":
		return usagef("--output: %q is neither table nor json", output)
	case len(c.verbs) > 0 && c.run != nil && !justPrint:
		return c.usage()
	case len(args) > 0 && c.use == c.name() && (len(c.verbs) == 0 || c.run == nil):
		return usagef("unexpected argument %q; usage: %s %s", args[0], program, c.use)
	}
	return nil
}

// load reads the configuration, where the command has any. It reports whether that was all that was asked for.
func (s *session) load(l *loader) (done bool, err error) {
	if l == nil {
		return false, nil
	}
	if err := l.set.Read(l.paths); err != nil {
		return false, configError{err}
	}
	s.Config, s.set, s.log = l.cfg, l.set, service.NewLog(program, l.cfg.Log, s.err)
	if l.print {
		return true, l.set.WriteTOML(s.out)
	}
	return false, nil
}

// flagProblem is a command line that cannot be parsed, without the values in it.
func flagProblem(cmd *cobra.Command, err error) error {
	return usagef("%w; try %s -h", config.FlagProblem(cmd.Flags(), err), cmd.CommandPath())
}

// terminal is where lines can be written over: standard output that a person looks at, or nil.
func terminal(out io.Writer) io.Writer {
	if f, is := out.(*os.File); is && isatty.IsTerminal(f.Fd()) {
		return f
	}
	return nil
}

// usage is what to write in place of a command line that has no verb of the command, or the wrong words after it.
func (c command) usage() error {
	uses := make([]string, len(c.verbs))
	for i, v := range c.verbs {
		uses[i] = v.use
	}
	return usagef("usage: %s %s %s", program, c.name(), strings.Join(uses, " | "))
}

// arity is how many words a command takes after its name, by its use: what stands in brackets may be left out, and a
// reason is of any number of words.
func (c command) arity() (least, most int) {
	for _, word := range strings.Fields(c.use)[1:] {
		if most++; !strings.HasPrefix(word, "[") {
			least++
		}
		if name := strings.Trim(word, "[]"); name == "REASON" || name == "CAUSE" {
			most = math.MaxInt
		}
	}
	return least, most
}

// verbs do what the verbs of a command are for, by their names in the table of commands. They are given the words after
// the verb, as many as the table has.
type verbs map[string]func(ctx context.Context, args []string) error

func (v verbs) do(ctx context.Context, name string, args []string) error {
	all := commands()
	c := all[slices.IndexFunc(all, func(c command) bool { return c.name() == name })]
	for _, verb := range c.verbs {
		if len(args) == 0 || verb.name() != args[0] {
			continue
		}
		least, most := verb.arity()
		switch given := len(args) - 1; {
		case least <= given && given <= most:
			return v[args[0]](ctx, args[1:])
		case most == math.MaxInt && given == least-1 && given > 0:
			return usagef("say why, for whoever reads the record: %s %s %s", program, name, verb.use)
		}
	}
	return c.usage()
}
