package pg

import (
	"encoding/binary"
	"fmt"

	"perpkeeper/pkg/perp"
)

// EncodeRow writes a row of the state in its canonical form: equal rows give equal bytes.
func EncodeRow(row perp.Row) ([]byte, error) { return layouts[row.RowKey().Table].encode(nil, row) }

// DecodeRow reads what EncodeRow has written.
func DecodeRow(table perp.Table, text []byte) (perp.Row, error) {
	l, known := layouts[table]
	if !known {
		return nil, fmt.Errorf("%q is no table of rows", table)
	}
	values := make([][]byte, len(l.columns))
	for i := range values {
		if len(text) < 4 || uint64(len(text)-4) < uint64(binary.BigEndian.Uint32(text)) {
			return nil, fmt.Errorf("a row of table %s ends in its column %s", table, l.columns[i].name)
		}
		end := 4 + int(binary.BigEndian.Uint32(text))
		values[i], text = text[4:end], text[end:]
	}
	return l.decode(values)
}
