package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"github.com/spf13/viper"
)

// Set is a process's configuration: what can be set, and, after Load, what is set and by whom.
type Set struct {
	process string
	roots   []*node
	leaves  map[string]*node  // everything that can hold a value, by key
	sources map[string]source // who set a key; defaults are missing
	others  map[string]bool   // keys and variables that this command does not need
	partial map[string]bool   // sections of other processes that this one reads a part of
	options *pflag.FlagSet    // the flags of the command line, after Declare
}

// New describes the configuration of a process. Each root is a pointer to a structure of sections that holds the
// defaults; Load fills it. An error is a mistake in the structures, never the operator's.
func New(process string, roots ...any) (*Set, error) {
	s := &Set{process: process, leaves: map[string]*node{}, sources: map[string]source{}, others: map[string]bool{},
		partial: map[string]bool{}}
	envs := map[string]string{}
	for _, root := range roots {
		n, err := compile(root)
		if err != nil {
			return nil, fmt.Errorf("describing the configuration: %w", err)
		}
		s.roots = append(s.roots, n)
		n.walk(func(c *node) {
			if c.kind == section || err != nil {
				return
			}
			if other, taken := envs[c.env()]; taken {
				err = fmt.Errorf("describing the configuration: %s and %s share the variable %s", other, c.key, c.env())
			}
			envs[c.env()], s.leaves[c.key] = c.key, c
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Borrow reports that sections are those of other processes, which judge them: of them Load reads what the roots
// describe, and passes over the other keys that stand directly in them.
func (s *Set) Borrow(sections ...string) {
	for _, name := range sections {
		s.partial[name] = true
	}
}

// passOver makes Load accept the keys of a node, and leave them alone.
func (s *Set) passOver(n *node) {
	n.walk(func(c *node) {
		s.others[c.key] = true
		if c.settable() {
			s.others[c.env()] = true
		}
	})
}

// Restrict leaves what one command of a program needs, as sections or keys: "kafka", "keeperctl.limit". All else keeps
// its default, is passed over where the configuration is read, and is no flag. A section is judged as a whole, with the
// defaults of what was left out.
func (s *Set) Restrict(needs ...string) {
	for _, root := range s.roots {
		root.nodes = s.needed(root.nodes, needs)
	}
}

func (s *Set) needed(nodes []*node, needs []string) (kept []*node) {
	for _, n := range nodes {
		whole := slices.ContainsFunc(needs,
			func(need string) bool { return need == n.key || strings.HasPrefix(n.key, need+".") })
		if n.kind == section && !whole {
			n.nodes = s.needed(n.nodes, needs)
		}
		if whole || len(n.nodes) > 0 {
			kept = append(kept, n)
			continue
		}
		n.walk(func(c *node) { delete(s.leaves, c.key) })
		s.passOver(n)
	}
	return kept
}

// Request is what a command line asks for besides settings.
type Request struct {
	Help, Version, PrintConfig, PrintMetrics bool
	Args                                     []string // what is neither a flag nor a flag's value
}

// Load reads flags, environment and file into the roots and asks every part that has a Validate method (see validate).
// The error joins all problems, one line each. Help, version and metrics can be had without a good configuration: only
// the flags are looked at then.
func (s *Set) Load(args []string) (Request, error) {
	var req Request
	var paths []string
	flags := s.flags(&req, &paths)
	if err := flags.Parse(args); err != nil {
		return req, FlagProblem(flags, err)
	}
	req.Args = flags.Args()
	if req.Help || req.Version || req.PrintMetrics {
		return req, nil
	}
	return req, s.Read(paths)
}

// Read is Load for a program that parses its command line by itself, after Declare: it reads these files (or those that
// PERPKEEPER_CONFIG names, where there are none), the environment, and the flags as they were parsed.
func (s *Set) Read(paths []string) error {
	if len(paths) == 0 {
		paths = split(os.Getenv(filesVariable))
	}
	files, err := readFiles(paths)
	if err != nil {
		return err
	}
	var problems []error
	for _, f := range files {
		problems = append(problems, s.unknownKeys(f.path, f.AllSettings())...)
	}
	problems = append(problems, s.unknownVariables(os.Environ())...)
	bad, unfit := s.assign(s.options, files)
	problems = append(problems, unfit...)
	problems = append(problems, s.revealFiles(bad)...)
	problems = append(problems, s.validate(bad)...)
	return errors.Join(problems...)
}

func (s *Set) flags(req *Request, paths *[]string) *pflag.FlagSet {
	flags := pflag.NewFlagSet(s.process, pflag.ContinueOnError)
	flags.SetOutput(nil)
	flags.Usage = func() {}
	flags.StringArrayVar(paths, "config", nil, "")
	flags.BoolVarP(&req.Help, "help", "h", false, "")
	flags.BoolVar(&req.Version, "version", false, "")
	flags.BoolVar(&req.PrintConfig, "print-config", false, "")
	flags.BoolVar(&req.PrintMetrics, "print-metrics", false, "")
	s.Declare(flags)
	return flags
}

// Declare adds one flag per key, all of them texts: the type of a key is judged in one place, whatever the value came
// by.
func (s *Set) Declare(flags *pflag.FlagSet) {
	s.options = flags
	for _, key := range s.keys() {
		n := s.leaves[key]
		if !n.settable() {
			continue
		}
		flags.String(key, "", n.help)
		if isSwitch(n) {
			flags.Lookup(key).NoOptDefVal = "true"
		}
	}
}

// keys are all keys in alphabetical order.
func (s *Set) keys() []string {
	keys := make([]string, 0, len(s.leaves))
	for key := range s.leaves {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// filesVariable names the files where no flag does, so that a container's commands need no flag.
const filesVariable = envPrefix + "CONFIG"

// file is one TOML file.
type file struct {
	path string
	*viper.Viper
}

// readFiles parses the TOML files, in the order in which each wins over those before it.
func readFiles(paths []string) (files []file, err error) {
	for _, path := range paths {
		content, err := readFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, file{path, content})
	}
	return files, nil
}

func readFile(path string) (*viper.Viper, error) {
	file := viper.New()
	file.SetConfigType("toml")
	content, err := os.ReadFile(path) //nolint:gosec // The operator names the file.
	if err != nil {
		return nil, fmt.Errorf("%s: %w (check --config and %s)", path, pathless(err), filesVariable)
	}
	if err := file.ReadConfig(bytes.NewReader(content)); err != nil {
		return nil, fmt.Errorf("%s%s: not valid TOML: %s", path, position(err), parserMessage(err))
	}
	return file, nil
}

// pathless is an error of a file without the path, which its line has named already.
func pathless(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		return inner.Err
	}
	return err
}

// position is where a TOML parser stopped, if it says so.
func position(err error) string {
	var at interface {
		error
		Position() (row, column int)
	}
	if !errors.As(err, &at) {
		return ""
	}
	row, column := at.Position()
	return fmt.Sprintf(":%d:%d", row, column)
}

// parserMessage is the parser's own message without what it quotes: that may be a secret.
func parserMessage(err error) string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return quotation.ReplaceAllString(strings.TrimPrefix(err.Error(), "toml: "), "***")
}

var quotation = regexp.MustCompile(`"[^"]*"`)

// assign lays files, environment and flags over the defaults. It returns the keys whose value does not fit, and why.
func (s *Set) assign(flags *pflag.FlagSet, files []file) (bad map[string]bool, problems []error) {
	merged := viper.New()
	bad = map[string]bool{}
	for _, f := range files {
		if err := merged.MergeConfigMap(f.AllSettings()); err != nil {
			return bad, []error{fmt.Errorf("%s: %w", f.path, err)}
		}
	}
	for _, key := range s.keys() {
		n := s.leaves[key]
		if n.settable() {
			// Neither call can fail: the key is given, and so is the flag.
			_ = merged.BindEnv(key, n.env())
			_ = merged.BindPFlag(key, flags.Lookup(key))
		}
		if !merged.IsSet(key) {
			continue
		}
		s.sources[key] = winner(n, files, flags)
		if err := fill(n, merged.Get(key)); err != nil {
			bad[key] = true
			problems = append(problems, prefixLines(s.sources[key].where(n), err)...)
		}
	}
	return bad, problems
}

// source is where a value comes from: a flag, a variable or a file.
type source struct {
	name string
	rank rank
}

// rank orders the kinds of sources: the higher wins.
type rank int

const (
	inFile rank = iota
	inEnvironment
	onCommandLine
)

// winner names the source that prevails for a key that is set.
func winner(n *node, files []file, flags *pflag.FlagSet) source {
	switch {
	case n.settable() && flags.Changed(n.key):
		return source{"--" + n.key, onCommandLine}
	case n.settable() && os.Getenv(n.env()) != "":
		return source{n.env(), inEnvironment}
	}
	for _, f := range slices.Backward(files) {
		if f.IsSet(n.key) {
			return source{f.path, inFile}
		}
	}
	return source{}
}

// where is what a line about a node's value begins with. Lines about tables name the keys in them themselves.
func (s source) where(n *node) string {
	if s.rank == inFile && n.kind != tables {
		return s.name + ": " + n.key
	}
	return s.name
}

// fill gives a raw value to a node.
func fill(n *node, raw any) error {
	switch n.kind {
	case scalar:
		text, err := textOf(raw)
		if err != nil {
			return err
		}
		return set(n.value, text)
	case list:
		texts, err := textsOf(raw)
		if err != nil {
			return err
		}
		return setList(n.value, texts)
	default:
		return fillRows(n, raw)
	}
}
