package pg

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/jackc/pgx/v5"

	"perpkeeper/pkg/perp"
)

// Layout shows a layout to tests.
type Layout struct{ layout }

// Setting is what a server's setting is on the connections of a database.
func (db *DB) Setting(ctx context.Context, name string) (value string, err error) {
	err = db.pool.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value)
	return value, err
}

// InStretches is the ledger that looks at so many fees at once, and at so many only in one booking.
func (w Wallets) InStretches(of int) Wallets {
	w.stretch, w.look = of, 0
	return w
}

// TooDeep reports whether an error says that an undo wanted to go back further than the journal does.
func TooDeep(err error) bool { return errors.Is(err, errTooDeep) }

// LayoutOf returns the layout of a table.
func LayoutOf(t perp.Table) Layout { return Layout{layouts[t]} }

// RowType is the Go type of the table's rows.
func (l Layout) RowType() reflect.Type { return l.row }

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

// RoundTrip sends a row to the server as a commit does, lets it take the columns' types, and reads it as everybody
// does.
func (l Layout) RoundTrip(ctx context.Context, conn *pgx.Conn, row perp.Row) (back perp.Row, err error) {
	acceptArrays(conn.TypeMap())
	tuple, err := l.encode(nil, row)
	if err != nil {
		return nil, err
	}
	set := newRowSet(l.table)
	if err := set.add(tuple); err != nil {
		return nil, err
	}
	var types []string
	for _, c := range l.columns {
		types = append(types, "u."+c.name+"::"+c.sqlType)
	}
	rows, err := conn.Query(ctx,
		fmt.Sprintf(`SELECT %s FROM (SELECT %s FROM (SELECT $1::int, $2::int) p, unnest(%s) AS u (%s)) t`,
			l.selected(), strings.Join(types, ", "), l.arrays(3), strings.Join(l.names(""), ", ")),
		set.arguments(0, 0)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		if back, err = l.decode(rows.RawValues()); err != nil {
			return nil, err
		}
	}
	return back, rows.Err()
}
