package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// kind is the shape of a node.
type kind int

const (
	section kind = iota // a structure with keys
	scalar              // one value
	list                // a list of scalars
	tables              // a list of structures; only a file can hold it
)

// node is one place in the configuration.
type node struct {
	kind  kind
	name  string // last part of the key
	key   string // whole key, such as scanner.poll; empty for a root
	help  string
	value reflect.Value
	nodes []*node // of a section: its keys, in the order of the structure
	row   *node   // of tables: a zero structure that shows what a row may hold
	holds *node   // of the path of a file: the secret that the file holds
}

// env is the name of the environment variable for a key.
func (n *node) env() string { return envPrefix + strings.ToUpper(strings.ReplaceAll(n.key, ".", "_")) }

// settable reports whether environment and flags can hold the node.
func (n *node) settable() bool { return n.kind == scalar || n.kind == list }

// child returns the key of that name in a section, or nil.
func (n *node) child(name string) *node {
	for _, c := range n.nodes {
		if c.name == name {
			return c
		}
	}
	return nil
}

// walk visits the node and everything below it, parents first.
func (n *node) walk(visit func(*node)) {
	visit(n)
	for _, c := range n.nodes {
		c.walk(visit)
	}
}

// each visits the node and everything below it, parents first, with what stands in the rows of tables.
func (n *node) each(visit func(*node)) {
	n.walk(func(c *node) {
		visit(c)
		for i := 0; c.kind == tables && i < c.value.Len(); i++ {
			if row, err := rowOf(c, i, c.value.Index(i)); err == nil {
				row.each(visit)
			}
		}
	})
}

const envPrefix = "PERPKEEPER_"

var (
	nameRule     = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	sectionRule  = regexp.MustCompile(`^[a-z][a-z0-9]*$`) // no "_": the section can be read off a variable's name
	durationType = reflect.TypeFor[time.Duration]()
	textType     = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// compile describes a root structure. Its errors are mistakes of the program, not of the operator.
func compile(root any) (*node, error) {
	v := reflect.ValueOf(root)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%T is not a pointer to a structure of sections", root)
	}
	n := &node{kind: section, value: v.Elem()}
	if err := n.compileFields(); err != nil {
		return nil, err
	}
	for _, c := range n.nodes {
		switch {
		case c.kind != section:
			return nil, fmt.Errorf("%T: %s is not in a section (put it into a structure)", root, c.key)
		case !sectionRule.MatchString(c.name) || !isSection(c.name):
			return nil,
				fmt.Errorf("%T: [%s] is not a known section (add it to the list in pkg/service/config, or nest it "+
					"into a listed one)", root, c.name)
		}
	}
	return n, nil
}

func (n *node) compileFields() error {
	var problems []error
	for i := range n.value.NumField() {
		field := n.value.Type().Field(i)
		tag, tagged := field.Tag.Lookup("toml")
		if !field.IsExported() || tag == "-" {
			continue
		}
		if !tagged || !nameRule.MatchString(tag) {
			problems = append(problems, fmt.Errorf("%s.%s: toml tag %q is not a key (lower case, words joined by _, "+
				"or - for no key)", n.value.Type(), field.Name, tag))
			continue
		}
		c := &node{name: tag, key: join(n.key, tag), help: field.Tag.Get("help"), value: n.value.Field(i)}
		if err := c.compileType(); err != nil {
			problems = append(problems, fmt.Errorf("%s.%s: %w", n.value.Type(), field.Name, err))
		}
		n.nodes = append(n.nodes, c)
		if c.secret() && field.Tag.Get("file") != "none" {
			n.nodes = append(n.nodes, newFileOf(c))
		}
	}
	return errors.Join(problems...)
}

func (n *node) compileType() error {
	t := n.value.Type()
	switch {
	case isScalar(t):
		n.kind = scalar
	case t.Kind() == reflect.Struct:
		n.kind = section
		return n.compileFields()
	case t.Kind() == reflect.Slice && isScalar(t.Elem()):
		n.kind = list
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		n.kind = tables
		n.row = newRow(n.key, t.Elem())
		if err := n.row.compileFields(); err != nil {
			return err
		}
	default:
		return fmt.Errorf("a %s cannot be configured (use a scalar, a list of scalars, a structure or a list of "+
			"structures)", t)
	}
	if n.help == "" {
		return errors.New("the help tag is missing")
	}
	return nil
}

// newRow is a zero structure of the given type, to be filled from one table of a list.
func newRow(key string, t reflect.Type) *node {
	return &node{kind: section, key: key, value: reflect.New(t).Elem()}
}

func isScalar(t reflect.Type) bool {
	if t == durationType || reflect.PointerTo(t).Implements(textType) {
		return true
	}
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Float64, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32,
		reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	default:
		return false
	}
}

func join(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}
