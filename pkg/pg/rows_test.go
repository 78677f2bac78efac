package pg_test

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/pgtest"
)

// The columns written out in SQL are exactly the fields of the row types.
func TestTablesFollowTheRowTypes(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, table := range perp.Tables() {
		l := pg.LayoutOf(table)
		if l.RowType() == nil || reflect.Zero(l.RowType()).Interface().(perp.Row).RowKey().Table != table {
			t.Errorf("table %s: wrong or missing layout", table)
			continue
		}
		rows, err := conn.Query(t.Context(),
			`SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute
			WHERE attrelid = ('state_g1.' || $1)::regclass AND attnum > 0 AND attname <> ALL ('{part,rev,deleted_at}')
				ORDER BY attnum`, table)
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		if want := l.Columns(); !slices.Equal(got, want) {
			at := 0
			for at < min(len(got), len(want)) && got[at] == want[at] {
				at++
			}
			t.Errorf("table %s in pkg/pg/state/tables.sql has %d columns and the fields of %s make %d; column %d is "+
				"%q and has to be %q (in the order of the fields)", table, len(got), l.RowType(), len(want), at+1,
				slices.Concat(got, []string{"none"})[at], slices.Concat(want, []string{"none"})[at])
		}
	}
}

// Whatever a row holds, the database gives back the same row, and its canonical form is the same, which can be read
// where there is no database.
func TestRowsSurviveTheDatabase(t *testing.T) {
	pgtest.Cases(t, 25)
	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, table := range perp.Tables() {
		l := pg.LayoutOf(table)
		t.Run(string(table), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				row := arbitrary(rt, l)
				encoded, err := l.Encode(row)
				if err != nil {
					rt.Fatal(err)
				}
				kept, err := pg.DecodeRow(table, encoded)
				if err != nil || !reflect.DeepEqual(kept, row) {
					rt.Fatalf("encoded %#v\ndecoded %#v (%v)", row, kept, err)
				}
				if _, err := pg.DecodeRow(table, encoded[:len(encoded)-1]); err == nil {
					rt.Fatal("half a row was read")
				}
				back, err := l.RoundTrip(t.Context(), conn, row)
				if err != nil {
					rt.Fatalf("%#v: %v", row, err)
				}
				again, err := l.Encode(back)
				if err != nil || string(again) != string(encoded) {
					rt.Fatalf("written %x\nread    %x (%v)", encoded, again, err)
				}
				if !reflect.DeepEqual(back, row) {
					rt.Fatalf("written %#v\nread    %#v", row, back)
				}
			})
		})
	}
}

// arbitrary makes a row of a table.
func arbitrary(t *rapid.T, l pg.Layout) perp.Row {
	v := reflect.New(l.RowType()).Elem()
	fill(t, v)
	return v.Interface().(perp.Row)
}

// fill gives every field of a row an arbitrary value in the form that reading produces: no empty slices or maps but
// nil.
func fill(t *rapid.T, v reflect.Value) {
	switch x := v.Addr().Interface().(type) {
	case *chain.Uint:
		*x = arbitraryUint(t)
		return
	case *chain.Int:
		*x = chain.IntFromWord(arbitraryUint(t).Bytes32())
		return
	case *perp.Fields:
		*x = arbitraryFields(t)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i))
		}
	case reflect.Slice:
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			e := reflect.New(v.Type().Elem()).Elem()
			fill(t, e)
			v.Set(reflect.Append(v, e))
		}
	case reflect.String:
		v.SetString(string(rapid.SliceOf(rapid.Byte()).Draw(t, "text")))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(rapid.Uint64Range(0, math.MaxUint64>>(64-v.Type().Bits())).Draw(t, "uint"))
	default:
		t.Fatalf("no arbitrary %s", v.Type())
	}
}

func arbitraryUint(t *rapid.T) chain.Uint {
	return chain.UintFromBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "word"))
}

func arbitraryFields(t *rapid.T) perp.Fields {
	var fields perp.Fields
	for range rapid.IntRange(0, 3).Draw(t, "items") {
		if fields == nil {
			fields = perp.Fields{}
		}
		name := string(rapid.SliceOf(rapid.Byte()).Draw(t, "name"))
		text := string(rapid.SliceOf(rapid.Byte()).Draw(t, "text"))
		fields[name] = rapid.SampledFrom([]any{
			chain.Address{1}, chain.Hash{2}, arbitraryUint(t), chain.I64(-5), true, perp.Bytes{0, 255}, text,
			[]chain.Address{{1}, {2}}, []chain.Hash{{3}},
			[]chain.Uint{arbitraryUint(t)}, []chain.Int{chain.I64(-1)}, []bool{true, false}, []perp.Bytes{{1}},
			[]string{text, `\x00`}, []chain.Address{},
		}).Draw(t, "value")
	}
	return fields
}
