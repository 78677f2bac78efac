// Package requirements checks docs/requirements.toml against the sources, and writes docs/requirements.md from both.
// Every requirement must be named by a comment of the code that implements it and by a test that proves it, and every
// id that is used must be in the list.
//
// The sources are parsed, not searched: a test is a function Test… or Fuzz… of a _test.go file, or a function of a
// suite (a package whose name ends in "test") that a _test.go file imports; it proves what its doc comment or its body
// names.
//
// Not checked: whether the test that names a requirement really proves it. That is for the reader of the test.
package requirements

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// ListPath and documentPath are where the list and the document lie in the repository.
const (
	ListPath     = "docs/requirements.toml"
	documentPath = "docs/requirements.md"
)

// List is the content of docs/requirements.toml.
type List struct {
	// Groups are in the order of the document.
	Groups       []Group                `toml:"group"`
	Requirements map[string]Requirement `toml:"requirement"` // by id
}

// Group is a set of requirements whose ids have the same prefix: PIPE of PIPE-1, S of S1.
type Group struct {
	Prefix string `toml:"prefix"`
	Title  string `toml:"title"`
}

// Requirement is what one id stands for.
type Requirement struct {
	Text string `toml:"text"`
	// NotMet says what is missing, and why. Empty: the requirement is met.
	NotMet string `toml:"not_met"`
	// CaseOf is the id of the requirement that this one is a special case of. A case is implemented where that one is.
	CaseOf string `toml:"case_of"`
}

// Load reads the list of a repository.
func Load(tree fs.FS) (List, error) {
	var list List
	content, err := fs.ReadFile(tree, ListPath)
	if err != nil {
		return list, err
	}
	if err := toml.NewDecoder(bytes.NewReader(content)).DisallowUnknownFields().Decode(&list); err != nil {
		return list, fmt.Errorf("reading %s: %w", ListPath, err)
	}
	return list, nil
}

// ids lists the ids of a group in ascending order.
func (l List) ids(g Group) []string {
	var ids []string
	for id := range l.Requirements {
		if prefix, _ := split(id); prefix == g.Prefix {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, compareIDs)
	return ids
}

func (l List) knowsPrefix(prefix string) bool {
	return slices.ContainsFunc(l.Groups, func(g Group) bool { return g.Prefix == prefix })
}

// split divides an id into its prefix and its number, which is -1 where there is none.
func split(id string) (prefix string, number int) {
	prefix = strings.TrimRight(id, "0123456789")
	number, err := strconv.Atoi(id[len(prefix):])
	if err != nil {
		number = -1
	}
	return strings.TrimSuffix(prefix, "-"), number
}

func compareIDs(a, b string) int {
	prefixA, numberA := split(a)
	prefixB, numberB := split(b)
	return cmp.Or(cmp.Compare(prefixA, prefixB), cmp.Compare(numberA, numberB))
}
