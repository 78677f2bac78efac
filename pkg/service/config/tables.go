package config

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// fillRows replaces a list of structures by the tables of a file. Keys that a table leaves out are zero.
func fillRows(n *node, raw any) error {
	tables, ok := raw.([]any)
	if !ok {
		return fmt.Errorf("a list of tables is expected (write [[%s]] above each)", n.key)
	}
	rows := reflect.MakeSlice(n.value.Type(), len(tables), len(tables))
	var problems []error
	for i, table := range tables {
		row, err := rowOf(n, i, rows.Index(i))
		if err == nil {
			err = fillRow(row, table)
		}
		problems = append(problems, prefixLines(fmt.Sprintf("table %d", i+1), err)...)
	}
	if len(problems) == 0 {
		n.value.Set(rows)
	}
	return errors.Join(problems...)
}

// rowOf describes the structure in one element of a list. Its keys carry the position: scanner.param[0].key.
func rowOf(n *node, i int, element reflect.Value) (*node, error) {
	row := &node{kind: section, key: fmt.Sprintf("%s[%d]", n.key, i), value: element}
	return row, row.compileFields()
}

// fillRow fills a structure from one table, nested tables included.
func fillRow(row *node, raw any) error {
	table, ok := raw.(map[string]any)
	if !ok {
		return errors.New("a value stands where a table is expected")
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(table)) {
		c := row.child(name)
		switch {
		case c == nil:
			problems = append(problems, fmt.Errorf("%s: unknown key%s", name, suggest(name, names(row.nodes))))
		case c.kind == section:
			problems = append(problems, prefixLines(name, fillRow(c, table[name]))...)
		default:
			problems = append(problems, prefixLines(name, fill(c, table[name]))...)
		}
	}
	return errors.Join(problems...)
}

func names(nodes []*node) []string {
	all := make([]string, len(nodes))
	for i, n := range nodes {
		all[i] = n.name
	}
	return all
}
