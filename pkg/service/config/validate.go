package config

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// validator is a part of a configuration that can judge itself. Every structure in it that has the method is asked:
// roots, sections, nested sections and rows of tables. It returns one line per problem (joined by errors.Join), each
// beginning with the key as seen from the structure:
//
//	brokers: empty (name at least one, such as 127.0.0.1:9092)
//
// A line that begins with the whole key is taken as well, so that a root can speak about several sections at once.
type validator interface{ Validate() error }

// validate asks every part and completes the keys and the sources of what they answer. Keys whose value did not fit are
// not judged.
func (s *Set) validate(bad map[string]bool) []error {
	var problems []error
	seen := map[string]bool{}
	for _, root := range s.roots {
		for _, line := range judge(root) {
			key := keyOf(line)
			if seen[line] || bad[key] {
				continue
			}
			seen[line] = true
			if by, isSet := s.sources[key]; isSet {
				line += " [" + by.name + "]"
			}
			problems = append(problems, errors.New(line))
		}
	}
	return problems
}

// judge collects the verdicts on a node and everything below it.
func judge(root *node) (lines []string) {
	root.each(func(n *node) {
		if v, ok := reflect.TypeAssert[validator](n.value.Addr()); ok && n.kind == section {
			lines = append(lines, verdict(n, v)...)
		}
	})
	return lines
}

// verdict asks one structure and completes the keys.
func verdict(n *node, v validator) []string {
	err := v.Validate()
	if err == nil {
		return nil
	}
	var lines []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, complete(n, line))
		}
	}
	return lines
}

// complete puts the structure's key in front of a line, unless it is there.
func complete(n *node, line string) string {
	first, _, _ := strings.Cut(line, ":")
	own, _, _ := strings.Cut(indexRule.ReplaceAllString(first, ""), ".")
	switch {
	case n.key == "" || first == n.key || strings.HasPrefix(first, n.key+".") || strings.HasPrefix(first, n.key+"["):
		return line
	case n.child(own) != nil:
		return n.key + "." + line
	default:
		return fmt.Sprintf("%s: %s", n.key, line)
	}
}

// indexRule matches the position in a list, as in param[3].
var indexRule = regexp.MustCompile(`\[\d+\]`)

// keyOf is the key a line is about, without positions in lists.
func keyOf(line string) string {
	key, _, _ := strings.Cut(line, ":")
	if at := strings.IndexByte(key, '['); at >= 0 {
		key = key[:at]
	}
	return key
}

// prefixLines turns an error of several lines into one error per line, each with where it comes from.
func prefixLines(where string, err error) []error {
	if err == nil {
		return nil
	}
	var lines []error
	for line := range strings.SplitSeq(err.Error(), "\n") {
		lines = append(lines, fmt.Errorf("%s: %s", where, line))
	}
	return lines
}

// isSwitch reports whether a flag may stand alone, meaning true.
func isSwitch(n *node) bool {
	return n.kind == scalar && n.value.Kind() == reflect.Bool
}
