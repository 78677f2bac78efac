package pg

import (
	"reflect"

	"perpkeeper/pkg/perp"
)

// StatementTexts are all registered statements by name, as they are for generation 1.
func StatementTexts() map[string]string {
	texts := map[string]string{}
	for name, s := range statements {
		texts[name] = s.in(1)
	}
	return texts
}

// Layout shows a layout to tests.
type Layout struct{ layout }

// LayoutOf returns the layout of a table.
func LayoutOf(t perp.Table) Layout { return Layout{layouts[t]} }

// RowType is the Go type of the table's rows.
func (l Layout) RowType() reflect.Type { return l.row }

// Names are the names of the columns.
func (l Layout) Names(prefix string) []string { return l.names(prefix) }

// Columns are name and type of every column, as they are written in SQL.
func (l Layout) Columns() []string {
	var columns []string
	for _, c := range l.columns {
		columns = append(columns, c.name+" "+c.sqlType)
	}
	return columns
}

// Encode is encode into fresh bytes.
func (l Layout) Encode(row perp.Row) ([]byte, error) { return l.encode(nil, row) }

// Decode is decode.
func (l Layout) Decode(values [][]byte) (perp.Row, error) { return l.decode(values) }
