package pg

import (
	"encoding/binary"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"perpkeeper/pkg/perp"
)

// upsertRows writes a partition's own rows: another partition's row of the same key is another row.
var upsertRows = perTable("upsert rows of", `INSERT INTO {state}.{table} AS r ({columns}, part, rev, deleted_at)
	SELECT {unnested}, $1, $2, NULL FROM unnest({arrays}) AS u ({columns})
	ON CONFLICT (key, part) DO UPDATE SET ({columns}, rev, deleted_at) = ROW ({excluded.columns}, excluded.rev,
		excluded.deleted_at)`)

// rowSetSize is how many rows go into one statement: beyond, the server would spill the arrays to disk.
const rowSetSize = 1000

// rowSet is rows of one table, column by column: each column is an array in the server's binary form.
type rowSet struct {
	layout  layout
	rows    int
	columns [][]byte
}

// arrayHeader is dimensions, null flag, element type, length and lower bound.
const arrayHeader = 20

func newRowSet(table perp.Table) *rowSet {
	s := &rowSet{layout: layouts[table]}
	s.columns = make([][]byte, len(s.layout.columns))
	for i := range s.columns {
		s.columns[i] = make([]byte, arrayHeader, 1024)
	}
	return s
}

// add adds a row in the form of layout.encode.
func (s *rowSet) add(tuple []byte) error {
	values, err := s.layout.split(tuple)
	if err != nil {
		return err
	}
	for i, v := range values {
		s.columns[i] = append(binary.BigEndian.AppendUint32(s.columns[i], uint32(len(v))), v...)
	}
	s.rows++
	return nil
}

// arguments are those of upsertRows.
func (s *rowSet) arguments(part int, rev int64) []any {
	args := []any{part, rev}
	for i, column := range s.columns {
		header := []uint32{1, 0, wireTypes[s.layout.columns[i].wire].element, uint32(s.rows), 1}
		for at, v := range header {
			binary.BigEndian.PutUint32(column[4*at:], v)
		}
		args = append(args, binaryArray(column))
	}
	return args
}

// rowSets are rows of any tables on their way into the database.
type rowSets struct {
	filling map[perp.Table]*rowSet
	full    []*rowSet
}

// add adds a row in the form of layout.encode.
func (all *rowSets) add(table perp.Table, tuple []byte) error {
	s := all.filling[table]
	if s == nil {
		if all.filling == nil {
			all.filling = map[perp.Table]*rowSet{}
		}
		s = newRowSet(table)
		all.filling[table] = s
	}
	if s.rows+1 == rowSetSize {
		delete(all.filling, table)
		all.full = append(all.full, s)
	}
	return s.add(tuple)
}

// queue adds one statement for each set.
func (all *rowSets) queue(batch *pgx.Batch, generation, part int, rev int64) {
	for _, s := range all.full {
		batch.Queue(upsertRows[s.layout.table].In(generation), s.arguments(part, rev)...)
	}
	for _, table := range perp.Tables() {
		if s := all.filling[table]; s != nil {
			batch.Queue(upsertRows[table].In(generation), s.arguments(part, rev)...)
		}
	}
}

// binaryArray is an array in the server's binary form.
type binaryArray []byte

// wireTypes are the types in which columns travel.
var wireTypes = map[string]struct{ element, array uint32 }{
	"numeric":  {pgtype.NumericOID, pgtype.NumericArrayOID},
	"bytea":    {pgtype.ByteaOID, pgtype.ByteaArrayOID},
	"text":     {pgtype.TextOID, pgtype.TextArrayOID},
	"boolean":  {pgtype.BoolOID, pgtype.BoolArrayOID},
	"smallint": {pgtype.Int2OID, pgtype.Int2ArrayOID},
	"bigint":   {pgtype.Int8OID, pgtype.Int8ArrayOID},
}

// acceptArrays teaches a connection to send a binaryArray as it is.
func acceptArrays(m *pgtype.Map) {
	for _, w := range wireTypes {
		if t, known := m.TypeForOID(w.array); known {
			m.RegisterType(&pgtype.Type{Name: t.Name, OID: t.OID, Codec: arrayCodec{t.Codec}})
		}
	}
}

// arrayCodec is the driver's codec of an array type, save for what is encoded already.
type arrayCodec struct{ pgtype.Codec }

// PlanEncode implements [pgtype.Codec].
func (c arrayCodec) PlanEncode(m *pgtype.Map, oid uint32, format int16, value any) pgtype.EncodePlan {
	if _, encoded := value.(binaryArray); encoded && format == pgtype.BinaryFormatCode {
		return encodedAlready{}
	}
	return c.Codec.PlanEncode(m, oid, format, value)
}

type encodedAlready struct{}

// Encode implements [pgtype.EncodePlan].
func (encodedAlready) Encode(value any, buf []byte) ([]byte, error) {
	array, ok := value.(binaryArray)
	if !ok {
		return nil, fmt.Errorf("a %T is no encoded array", value)
	}
	return append(buf, array...), nil
}
