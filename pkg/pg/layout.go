package pg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// layout is how the rows of one table are stored: one column per field of the row's Go type, nested structures
// flattened under their name. It is derived from the type, so that all tables share one way to write, read, undo and
// compare; the tables themselves are written out in state/tables.sql, and a test holds the two against each other.
type layout struct {
	table   perp.Table
	row     reflect.Type
	columns []column
}

// column is one field.
type column struct {
	name string
	path []int // where the field is; empty for a key that is computed from other fields
	codec
}

const keyColumn = "key"

// layouts holds every table. The text after the type is the field that is the row's key, where one is.
var layouts = map[perp.Table]layout{
	perp.Positions:     newLayout(perp.Positions, perp.Position{}, "position_key"),
	perp.Orders:        newLayout(perp.Orders, perp.Order{}, keyColumn),
	perp.Requests:      newLayout(perp.Requests, perp.Request{}, keyColumn),
	perp.Markets:       newLayout(perp.Markets, perp.Market{}, ""),
	perp.MarketValues:  newLayout(perp.MarketValues, perp.MarketValue{}, ""),
	perp.Parameters:    newLayout(perp.Parameters, perp.Parameter{}, keyColumn),
	perp.BadDebts:      newLayout(perp.BadDebts, perp.BadDebt{}, "order_key"),
	perp.Transactions:  newLayout(perp.Transactions, perp.Transaction{}, "tx_hash"),
	perp.OracleSources: newLayout(perp.OracleSources, perp.OracleSource{}, ""),
	perp.Settlements:   newLayout(perp.Settlements, perp.Settlement{}, "order_key"),
	perp.KeeperFees:    newLayout(perp.KeeperFees, perp.KeeperFee{}, ""),
}

func newLayout(table perp.Table, row perp.Row, key string) layout {
	l := layout{table: table, row: reflect.TypeOf(row), columns: fieldColumns(reflect.TypeOf(row), "", nil)}
	if key == "" {
		l.columns = slices.Insert(l.columns, 0,
			column{name: keyColumn, codec: fixedCodec(reflect.TypeFor[chain.Hash]())})
		return l
	}
	i := slices.IndexFunc(l.columns, func(c column) bool { return c.name == key })
	identity := l.columns[i]
	identity.name = keyColumn
	l.columns = slices.Insert(slices.Delete(l.columns, i, i+1), 0, identity)
	return l
}

// fieldColumns walks a structure. Structures that are values in themselves (numbers) have a codec and are not entered.
func fieldColumns(t reflect.Type, prefix string, path []int) []column {
	var columns []column
	for i := range t.NumField() {
		f := t.Field(i)
		name, at := prefix+snake(f.Name), append(slices.Clone(path), i)
		if c, known := codecFor(f.Type); known {
			columns = append(columns, column{name: name, path: at, codec: c})
			continue
		}
		if f.Type.Kind() != reflect.Struct {
			panic(fmt.Sprintf("pg: no column type for field %s of %s", f.Name, t))
		}
		columns = append(columns, fieldColumns(f.Type, name+"_", at)...)
	}
	return columns
}

// snake turns a Go name into a column's: UIFeeReceiver is ui_fee_receiver.
func snake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		startsWord := i > 0 && unicode.IsUpper(r) &&
			(!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if startsWord {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// names returns the column names, each with a prefix.
func (l layout) names(prefix string) []string {
	names := make([]string, len(l.columns))
	for i, c := range l.columns {
		names[i] = prefix + c.name
	}
	return names
}

// selected lists the columns of the alias t as decode reads them.
func (l layout) selected() string {
	all := l.names("t.")
	for i, c := range l.columns {
		if c.cast() {
			all[i] += "::text"
		}
	}
	return strings.Join(all, ", ")
}

// arrays lists the parameters from $n on that carry one column each.
func (l layout) arrays(n int) string {
	all := make([]string, len(l.columns))
	for i, c := range l.columns {
		all[i] = fmt.Sprintf("$%d::%s[]", n+i, c.wire)
	}
	return strings.Join(all, ", ")
}

// unnested lists the columns of such arrays under the alias u, each of the type it is stored in.
func (l layout) unnested() string {
	all := l.names("u.")
	for i, c := range l.columns {
		if c.cast() {
			all[i] += "::" + c.sqlType
		}
	}
	return strings.Join(all, ", ")
}

// cast reports whether a column travels in another type than it is stored in.
func (c column) cast() bool { return c.wire == "text" && c.sqlType != "text" }

// encode appends a row as a tuple: of each column, in their order, four bytes of length and the value. It is canonical:
// equal rows give equal bytes, whatever built them.
func (l layout) encode(dst []byte, row perp.Row) ([]byte, error) {
	v := reflect.New(l.row).Elem()
	given := reflect.ValueOf(row)
	if given.Type() != l.row {
		return nil, fmt.Errorf("a row of table %s is a %s, not a %s", l.table, l.row, given.Type())
	}
	v.Set(given)
	key := row.RowKey().Key
	var err error
	for _, c := range l.columns {
		at := len(dst)
		dst = append(dst, 0, 0, 0, 0)
		if c.path == nil {
			dst = append(dst, key[:]...)
		} else if dst, err = c.encode(dst, v.FieldByIndex(c.path)); err != nil {
			return nil, fmt.Errorf("row %s of table %s: column %s: %w", key, l.table, c.name, err)
		}
		binary.BigEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	return dst, nil
}

// decode builds a row from the server's binary form of its columns, in their order.
func (l layout) decode(values [][]byte) (perp.Row, error) {
	v := reflect.New(l.row).Elem()
	for i, c := range l.columns {
		if c.path == nil {
			continue
		}
		if err := c.decode(values[i], v.FieldByIndex(c.path)); err != nil {
			return nil, fmt.Errorf("row %x of table %s: column %s: %w", values[0], l.table, c.name, err)
		}
	}
	row, ok := reflect.TypeAssert[perp.Row](v)
	if !ok {
		return nil, fmt.Errorf("%s is no row", l.row)
	}
	return row, nil
}

// split takes a row in the form of encode apart into the values of its columns.
func (l layout) split(tuple []byte) ([][]byte, error) {
	values := make([][]byte, len(l.columns))
	for i := range values {
		if len(tuple) < 4 || uint64(len(tuple)-4) < uint64(binary.BigEndian.Uint32(tuple)) {
			return nil, fmt.Errorf("a row of table %s ends in its column %s: %w", l.table, l.columns[i].name, errTuple)
		}
		end := 4 + int(binary.BigEndian.Uint32(tuple))
		values[i], tuple = tuple[4:end:end], tuple[end:]
	}
	if len(tuple) > 0 {
		return nil, fmt.Errorf("%d bytes are left of a row of table %s: %w", len(tuple), l.table, errTuple)
	}
	return values, nil
}

var errTuple = errors.New("it is not a tuple of its table")

// EncodeRow writes a row of the state in its canonical form: equal rows give equal bytes.
func EncodeRow(row perp.Row) ([]byte, error) { return layouts[row.RowKey().Table].encode(nil, row) }

// DecodeRow reads what EncodeRow has written.
func DecodeRow(table perp.Table, tuple []byte) (perp.Row, error) {
	l, known := layouts[table]
	if !known {
		return nil, fmt.Errorf("%q is no table of rows", table)
	}
	values, err := l.split(tuple)
	if err != nil {
		return nil, err
	}
	return l.decode(values)
}
