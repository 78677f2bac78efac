package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// fillRows replaces a list of structures by the tables of a file. Keys that a table leaves out are zero. Every line of
// the error begins with the whole key, such as scanner.param[0].slot.
func fillRows(n *node, raw any) error {
	elements, ok := raw.([]any)
	if !ok {
		return fmt.Errorf("%s: a list of tables is expected (write [[%s]] above each)", n.key, plain(n.key))
	}
	rows := reflect.MakeSlice(n.value.Type(), len(elements), len(elements))
	var problems []error
	for i, table := range elements {
		row, err := rowOf(n, i, rows.Index(i))
		problems = append(problems, err, fillTable(row, table))
	}
	err := errors.Join(problems...)
	if err == nil {
		n.value.Set(rows)
	}
	return err
}

// rowOf describes the structure in one element of a list. Its keys carry the position.
func rowOf(n *node, i int, element reflect.Value) (*node, error) {
	row := &node{kind: section, key: fmt.Sprintf("%s[%d]", n.key, i), value: element}
	return row, row.compileFields()
}

// fillTable fills a structure from one table, nested tables included.
func fillTable(n *node, raw any) error {
	table, ok := raw.(map[string]any)
	if !ok {
		return fmt.Errorf("%s: a value stands where a table is expected", n.key)
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(table)) {
		c := n.child(name)
		switch {
		case c == nil:
			problems = append(problems, fmt.Errorf("%s: unknown key%s", join(n.key, name), seeHelp))
		case c.kind == section:
			problems = append(problems, fillTable(c, table[name]))
		case c.kind == tables:
			problems = append(problems, fillRows(c, table[name]))
		default:
			problems = append(problems, prefixLines(c.key, fill(c, table[name]))...)
		}
		if c != nil && c.holds != nil {
			problems = append(problems, prefixLines(c.key, revealBeside(c, table))...)
		}
	}
	return errors.Join(problems...)
}

// revealBeside reads the secret of a table from its file, unless the table gives both.
func revealBeside(c *node, table map[string]any) error {
	if _, both := table[c.holds.name]; both {
		return fmt.Errorf("%s is given as well (remove one of them)", c.holds.name)
	}
	return c.reveal()
}
