package config

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// seeHelp ends a line about what nobody knows.
const seeHelp = " (--help lists what is known)"

// unknownKeys finds everything in a file that nobody asked for: in this process's sections every key, elsewhere the
// sections themselves.
func (s *Set) unknownKeys(path string, settings map[string]any) []error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		inner, isTable := settings[name].(map[string]any)
		own := s.section(name)
		switch {
		case !isTable:
			problems = append(problems, fmt.Errorf("%s: %s: a key outside of all sections%s", path, name, seeHelp))
		case own != nil:
			problems = append(problems, s.unknownIn(path, own, inner)...)
		case !isSection(name):
			problems = append(problems, fmt.Errorf("%s: [%s]: unknown section%s", path, name, seeHelp))
		}
	}
	return problems
}

func (s *Set) unknownIn(path string, n *node, settings map[string]any) []error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		c := n.child(name)
		inner, isTable := settings[name].(map[string]any)
		switch key := join(n.key, name); {
		case c == nil && (s.others[key] || s.partial[n.key]):
		case c == nil:
			problems = append(problems, fmt.Errorf("%s: %s: unknown key%s", path, key, seeHelp))
		case c.kind == section && !isTable:
			problems = append(problems, fmt.Errorf("%s: %s: a value stands where a table is expected (write [%s] "+
				"above its keys)", path, c.key, c.key))
		case c.kind == section:
			problems = append(problems, s.unknownIn(path, c, inner)...)
		}
	}
	return problems
}

// section returns this process's section of that name, or nil.
func (s *Set) section(name string) *node {
	for _, root := range s.roots {
		if c := root.child(name); c != nil {
			return c
		}
	}
	return nil
}

// unknownVariables finds variables that carry the prefix and mean nothing.
func (s *Set) unknownVariables(environ []string) []error {
	known := map[string]*node{}
	for _, n := range s.leaves {
		known[n.env()] = n
	}
	var problems []error
	for _, entry := range slices.Sorted(slices.Values(environ)) {
		name, _, _ := strings.Cut(entry, "=")
		rest, ours := strings.CutPrefix(name, envPrefix)
		n := known[name]
		switch {
		case !ours || name == filesVariable || n != nil && n.settable():
		case n != nil:
			problems = append(problems, fmt.Errorf("%s: a variable cannot hold tables (write [[%s]] into the file)",
				name, n.key))
		case !s.others[name] && !s.foreign(rest):
			problems = append(problems, fmt.Errorf("%s: unknown variable%s", name, seeHelp))
		}
	}
	return problems
}

// foreign reports whether a variable belongs to a section that only other processes have.
func (s *Set) foreign(rest string) bool {
	name, _, _ := strings.Cut(strings.ToLower(rest), "_")
	return isSection(name) && (s.section(name) == nil || s.partial[name])
}

// flagName matches the part of a mistyped flag that is safe to repeat: after anything else there may be a value.
var flagName = regexp.MustCompile(`^[a-zA-Z0-9._-]*`)

// FlagProblem describes in one line what is wrong with a command line that could not be parsed. pflag's own texts quote
// whole arguments, values included.
func FlagProblem(flags *pflag.FlagSet, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(flags, unknown)
	}
	if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return valueMissing(bare.GetSpecifiedName())
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if kind := invalid.GetFlag().Value.Type(); kind != "bool" {
			return fmt.Errorf("--%s: no value of type %s", invalid.GetFlag().Name, kind)
		}
		return fmt.Errorf("--%s: neither true nor false", invalid.GetFlag().Name)
	}
	return errors.New("an argument is not a flag (flags are written --section.key=value; --help lists them)")
}

func unknownFlag(flags *pflag.FlagSet, err *pflag.NotExistError) error {
	if err.GetSpecifiedShortnames() != "" {
		return fmt.Errorf("-%s: unknown flag (flags begin with two dashes; --help lists them)", err.GetSpecifiedName())
	}
	name := flagName.FindString(err.GetSpecifiedName())
	if flags.Lookup(name) != nil {
		return valueMissing(name)
	}
	return fmt.Errorf("--%s: unknown flag%s", name, seeHelp)
}

func valueMissing(name string) error {
	return fmt.Errorf("--%s: a value is missing (write --%s=value)", name, name)
}
