package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
)

// fileSuffix makes the name of a secret's file from the secret's name: password_file holds password,
// PERPKEEPER_KAFKA_SASL_PASSWORD_FILE as well.
const fileSuffix = "_file"

// largestSecret bounds what is read of a file that is taken for a secret: more is another file.
const largestSecret = 64 << 10

var revealerType = reflect.TypeFor[revealer]()

// secret reports whether a node holds a secret or a list of them, which may then be given by a file.
func (n *node) secret() bool {
	t := n.value.Type()
	return n.kind == scalar && t.Implements(revealerType) || n.kind == list && t.Elem().Implements(revealerType)
}

// newFileOf is the path of a file that holds a secret, beside the secret.
func newFileOf(secret *node) *node {
	help := "file that holds " + secret.name
	if secret.kind == list {
		help = "file that holds " + secret.name + ", one a line; lines that begin with # are passed over"
	}
	return &node{
		kind: scalar, name: secret.name + fileSuffix, key: secret.key + fileSuffix, help: help,
		value: reflect.New(reflect.TypeFor[string]()).Elem(), holds: secret,
	}
}

// shown reports whether a printed section has a key: a secret and the path of its file are one setting, written in the
// way in which it was given.
func (n *node) shown(section *node) bool {
	if n.holds != nil {
		return n.value.String() != ""
	}
	file := section.child(n.name + fileSuffix)
	return file == nil || file.holds != n || file.value.String() == ""
}

// revealFiles reads the files that hold secrets. A secret and its file given side by side contradict each other; of two
// ranks the higher wins.
func (s *Set) revealFiles(bad map[string]bool) (problems []error) {
	for _, key := range s.keys() {
		n := s.leaves[key]
		by, given := s.sources[key]
		if n.holds == nil || !given || n.value.String() == "" {
			continue
		}
		switch other, both := s.sources[n.holds.key]; {
		case both && other.rank > by.rank:
			n.value.SetString("")
			continue
		case both && other.rank == by.rank:
			problems = append(problems, fmt.Errorf("%s: %s is given as well (remove one of them)", by.where(n),
				other.where(n.holds)))
			continue
		}
		s.sources[n.holds.key] = by
		if err := n.reveal(); err != nil {
			bad[n.holds.key] = true
			problems = append(problems, prefixLines(by.where(n), err)...)
		}
	}
	return problems
}

// reveal fills a secret from the file that a node names. A file with nothing in it leaves a single secret as it is, as
// an empty variable does; a list is then empty, and not its default: endpoints that somebody forgot to write into their
// file are found missing.
func (n *node) reveal() error {
	path := n.value.String()
	if path == "" {
		return nil
	}
	text, err := readSecret(path)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	lines := linesOf(text, n.holds.kind == list)
	switch {
	case n.holds.kind == list && len(lines) == 0:
		n.holds.value.SetZero()
	case len(lines) == 0:
		return nil
	case n.holds.kind == list:
		err = setList(n.holds.value, lines)
	case len(lines) > 1:
		err = fmt.Errorf("has %d lines (one is expected)", len(lines))
	default:
		err = set(n.holds.value, lines[0])
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", pathless(err)
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, largestSecret+1))
	if err != nil {
		return "", pathless(err)
	}
	if len(text) > largestSecret {
		return "", errors.New("is too large to be a secret")
	}
	marked := func(mark string) bool { return bytes.HasPrefix(text, []byte(mark)) }
	if slices.ContainsFunc([]string{"\xef\xbb\xbf", "\xff\xfe", "\xfe\xff"}, marked) {
		return "", errors.New("begins with a byte order mark (save it as plain text, without one)")
	}
	return string(text), nil
}

// linesOf are the values in a file, one a line; those of a list may also be separated by commas, and its comments begin
// with #. A single secret is its line as it stands: it may begin with #, or with a space.
func linesOf(text string, list bool) (lines []string) {
	for line := range strings.Lines(text) {
		line, bare := strings.TrimRight(line, "\r\n"), strings.TrimSpace(line)
		switch {
		case bare == "" || list && strings.HasPrefix(bare, "#"):
		case list:
			lines = append(lines, split(bare)...)
		default:
			lines = append(lines, line)
		}
	}
	return lines
}
