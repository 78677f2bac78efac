package gmx

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx/gmxtest"
	"perpkeeper/pkg/perp"
)

var itemTypes = []string{"address", "uint256", "int256", "bool", "bytes32", "bytes", "string"}

// referenceArguments is the twin of the walker: go-ethereum's reading of (address, string, EventLogData).
var referenceArguments = func() abi.Arguments {
	var kinds []abi.ArgumentMarshaling
	for _, t := range itemTypes {
		pair := func(value string) []abi.ArgumentMarshaling {
			return []abi.ArgumentMarshaling{{Name: "key", Type: "string"}, {Name: "value", Type: value}}
		}
		kinds = append(kinds, abi.ArgumentMarshaling{Name: t + "Items", Type: "tuple",
			Components: []abi.ArgumentMarshaling{
				{Name: "items", Type: "tuple[]", Components: pair(t)},
				{Name: "arrayItems", Type: "tuple[]", Components: pair(t + "[]")},
			}})
	}
	var arguments abi.Arguments
	for _, m := range []abi.ArgumentMarshaling{{Type: "address"}, {Type: "string"},
		{Type: "tuple", Components: kinds}} {
		t, err := abi.NewType(m.Type, "", m.Components)
		if err != nil {
			panic(err)
		}
		arguments = append(arguments, abi.Argument{Type: t})
	}
	return arguments
}()

// referenceItems reads an event's data with go-ethereum and writes every item as text, its type first.
func referenceItems(data []byte) (name string, items map[string]string, err error) {
	values, err := referenceArguments.Unpack(data)
	if err != nil {
		return "", nil, err
	}
	items = map[string]string{}
	tuple := reflect.ValueOf(values[2])
	for kind := range tuple.NumField() {
		for array := range tuple.Field(kind).NumField() {
			pairs := tuple.Field(kind).Field(array)
			for i := range pairs.Len() {
				if key := pairs.Index(i).Field(0).String(); key != "" {
					text := itemTypes[kind] + [2]string{"", "[]"}[array] + " " + render(pairs.Index(i).Field(1).
						Interface())
					items[key] = strings.ReplaceAll(text, "\x00", "\uFFFD") // as the walker mends texts
				}
			}
		}
	}
	return values[1].(string), items, nil
}

// eventItems reads every item of an event's data.
func eventItems(data []byte) (perp.Fields, error) {
	items, err := indexItems(data, nil)
	if err != nil {
		return nil, err
	}
	r := &reader{walker: walker{data: data}, items: items}
	return r.fields(), r.err
}

// typeName names an item's type as the contracts do.
func typeName(v any) string {
	for kind, sample := range []any{chain.Address{}, chain.Uint{}, chain.Int{}, true, chain.Hash{}, perp.Bytes{}, ""} {
		switch reflect.TypeOf(v) {
		case reflect.TypeOf(sample):
			return itemTypes[kind]
		case reflect.SliceOf(reflect.TypeOf(sample)):
			return itemTypes[kind] + "[]"
		}
	}
	return fmt.Sprintf("%T", v)
}

// rendered writes our own reading the same way.
func rendered(fields perp.Fields) map[string]string {
	items := map[string]string{}
	for name, value := range fields {
		items[name] = typeName(value) + " " + render(value)
	}
	return items
}

func render(value any) string {
	switch v := value.(type) {
	case chain.Address:
		return v.Hex()
	case common.Address:
		return v.Hex()
	case chain.Hash:
		return v.Hex()
	case [32]byte:
		return chain.Hash(v).Hex()
	case perp.Bytes:
		return hex.EncodeToString(v)
	case []byte:
		return hex.EncodeToString(v)
	}
	if slice := reflect.ValueOf(value); slice.Kind() == reflect.Slice {
		var parts []string
		for i := range slice.Len() {
			parts = append(parts, render(slice.Index(i).Interface()))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return fmt.Sprint(value)
}

func checkAgainstReference(t interface{ Fatalf(string, ...any) }, data []byte) {
	name, err := eventName(data)
	if err != nil {
		t.Fatalf("reading the name: %v", err)
	}
	items, err := eventItems(data)
	if err != nil {
		t.Fatalf("reading the items of %s: %v", name, err)
	}
	wantName, want, err := referenceItems(data)
	if err != nil {
		t.Fatalf("go-ethereum refuses %s: %v", name, err)
	}
	if got := rendered(items); string(name) != wantName || !maps.Equal(got, want) {
		t.Fatalf("event %s:\n got %v\nwant %s: %v", name, got, wantName, want)
	}
}

func drawFields(t *rapid.T) perp.Fields {
	fields := perp.Fields{}
	for name := range rapid.MapOfN(rapid.StringMatching(`[a-z.]{1,40}`), rapid.Just(true), 0, 12).Draw(t, "names") {
		array := rapid.Bool().Draw(t, "array")
		switch rapid.IntRange(0, 6).Draw(t, "kind") {
		case 0:
			fields[name] = oneOrMany(t, array, func() (a chain.Address) { copy(a[:], drawBytes(t, 20)); return a })
		case 1:
			fields[name] = oneOrMany(t, array, func() chain.Uint { return chain.UintFromBytes(drawBytes(t, 32)) })
		case 2:
			fields[name] = oneOrMany(t, array, func() chain.Int {
				return chain.IntFromWord([32]byte(drawBytes(t, 32)))
			})
		case 3:
			fields[name] = oneOrMany(t, array, func() bool { return rapid.Bool().Draw(t, "bool") })
		case 4:
			fields[name] = oneOrMany(t, array, func() chain.Hash { return chain.Hash(drawBytes(t, 32)) })
		case 5:
			fields[name] = oneOrMany(t, array,
				func() perp.Bytes { return perp.Bytes(rapid.SliceOfN(rapid.Byte(), 0, 70).Draw(t, "bytes")) })
		case 6:
			fields[name] = oneOrMany(t, array, func() string {
				return rapid.StringMatching(`[ -~]{0,70}`).
					Draw(t, "text")
			})
		}
	}
	return fields
}

func drawBytes(t *rapid.T, n int) []byte { return rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "bytes") }

func oneOrMany[T any](t *rapid.T, many bool, draw func() T) any {
	if !many {
		return draw()
	}
	values := make([]T, rapid.IntRange(0, 4).Draw(t, "count"))
	for i := range values {
		values[i] = draw()
	}
	return values
}

// The walker reads what the test encoder writes, and go-ethereum reads the same.
func TestWalkerAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fields := drawFields(t)
		data := gmxtest.Data(chain.Address{1}, "Some Event", fields)
		checkAgainstReference(t, data)
		if items, _ := eventItems(data); !reflect.DeepEqual(items, fields) {
			t.Fatalf(" got %v\nwant %v", rendered(items), rendered(fields))
		}
	})
}

// Every log of every recording is read as go-ethereum reads it.
func TestWalkerAgainstReferenceOnRecordings(t *testing.T) {
	for _, name := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			for _, tx := range readRecording(t, name) {
				for _, l := range tx.logs {
					checkAgainstReference(t, l.Data)
				}
			}
		})
	}
}

func TestIndexerRefusesDamage(t *testing.T) {
	good := gmxtest.Data(chain.Address{1}, "Event", perp.Fields{
		"a": chain.Address{2}, "b": true, "c": chain.U64(7), "d": []chain.Hash{{1}}, "e": perp.Bytes("bytes"),
		"f": "text",
	})
	if _, err := eventItems(good); err != nil {
		t.Fatal(err)
	}
	for n := range good {
		if _, err := eventItems(good[:n]); err == nil && n < len(good)-31 {
			t.Fatalf("data cut to %d of %d bytes was read", n, len(good))
		}
	}
	for at := 0; at+32 <= len(good); at += 32 {
		bad := append([]byte{}, good...)
		for i := range 32 {
			bad[at+i] = 0xff
		}
		eventName(bad)
		eventItems(bad)
	}
}

// What the indexer refuses although go-ethereum reads it. Each would let one log say two things to two readers, or cost
// more to read than its length; the contracts' own compiler writes none.
func TestIndexerRefusesWhatNoCompilerWrites(t *testing.T) {
	someone := chain.Address(bytes.Repeat([]byte{0x22}, 20))
	fields := perp.Fields{"a": someone, "d": []perp.Bytes{bytes.Repeat([]byte{7}, 320), {}}, "f": "text"}
	good := gmxtest.Data(chain.Address{1}, "E", fields)
	text := bytes.Index(good, []byte("text"))
	first, second := wordOf(64), wordOf(64+32+320)
	offsets := bytes.Index(good, append(first[:], second[:]...))
	address := bytes.Index(good, someone[:]) - 12
	for name, test := range map[string]struct {
		at    int
		with  []byte
		wants string
	}{
		"dirty padding of a text":     {text + 4, []byte{1}, "not padded with zeros"},
		"dirty padding of an address": {address, []byte{1}, "no address"},
		"one value at two offsets":    {offsets + 32, first[:], "does not lead to the next part"},
		"a dirty sender":              {0, []byte{1}, "no address"},
		"bytes after the end":         {len(good), make([]byte, 32), "32 bytes follow"},
	} {
		bad := append(append(bytes.Clone(good[:test.at]), test.with...),
			good[min(test.at+len(test.with), len(good)):]...)
		if _, err := eventItems(bad); err == nil || !strings.Contains(err.Error(), test.wants) {
			t.Errorf("%s: got %v", name, err)
		}
		if _, _, err := referenceItems(bad); err != nil {
			t.Errorf("%s: go-ethereum refuses it as well: %v", name, err)
		}
	}
}

func TestIndexerRefusesItemsOfOneName(t *testing.T) {
	data := gmxtest.Data(chain.Address{1}, "E", perp.Fields{"same": true, "sane": chain.U64(1)})
	bad := bytes.Replace(data, []byte("sane"), []byte("same"), 1)
	if _, err := eventItems(bad); err == nil || !strings.Contains(err.Error(), `item "same" appears twice`) {
		t.Fatalf("got %v", err)
	}
}

func TestTextIsMadeStorable(t *testing.T) {
	data := gmxtest.Data(chain.Address{}, "E", perp.Fields{"reason": "a\x00b\xffc"})
	items, err := eventItems(data)
	if err != nil || items["reason"] != "a\uFFFDb\uFFFDc" {
		t.Fatalf("got %q, %v", items["reason"], err)
	}
}

// repacked is what go-ethereum writes for what it read in an event's data, nil where it reads nothing.
func repacked(data []byte) []byte {
	values, err := referenceArguments.Unpack(data)
	if err != nil {
		return nil
	}
	again, err := referenceArguments.Pack(values...)
	if err != nil {
		return nil
	}
	return again
}

// checkStrictness holds our reading against go-ethereum's. Strictness has one definition: we accept exactly the data
// that go-ethereum reads and would itself write, but for two items of one name, of which neither could be meant. All
// values are read alike.
func checkStrictness(t interface{ Fatalf(string, ...any) }, data []byte) (accepted bool) {
	items, err := eventItems(data)
	if canonical := len(data) > 0 && bytes.Equal(repacked(data), data); (err == nil) != canonical {
		if err == nil || !strings.Contains(err.Error(), "appears twice") {
			t.Fatalf("we say %v; go-ethereum would write it: %v\n%x", err, canonical, data)
		}
	}
	if err != nil {
		return false
	}
	name, err := eventName(data)
	wantName, want, wantErr := referenceItems(data)
	if err != nil || wantErr != nil || string(name) != wantName || len(items) != len(want) {
		t.Fatalf("the name is %q, %v, with %d items; go-ethereum says %q, %v, %d\n%x", name, err, len(items), wantName,
			wantErr, len(want), data)
	}
	for k, got := range rendered(items) {
		if !strings.HasPrefix(got, "string") && got != want[k] { // texts are mended
			t.Fatalf("item %q: got %s, want %s", k, got, want[k])
		}
	}
	return true
}

// Single words of good data are changed as an attacker or a broken node would: offsets and lengths by a little, bytes
// anywhere, parts cut or doubled.
func TestStrictnessOnDamagedData(t *testing.T) {
	accepted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		data := gmxtest.Data(chain.Address{1}, "Some Event", drawFields(t))
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			at := 32 * rapid.IntRange(0, len(data)/32-1).Draw(t, "word")
			switch rapid.IntRange(0, 5).Draw(t, "change") {
			case 0:
				data[at+31] += byte(32 * rapid.IntRange(-2, 2).Draw(t, "step"))
			case 1:
				data[at+31] += byte(rapid.IntRange(-2, 2).Draw(t, "step"))
			case 2:
				data[at+rapid.IntRange(0, 31).Draw(t, "byte")] = rapid.Byte().Draw(t, "value")
			case 3:
				data = slices.Delete(data, at, at+32)
			case 4:
				data = slices.Insert(data, at, data[at:at+32]...)
			case 5:
				copy(data[at:at+32], data[32*rapid.IntRange(0, len(data)/32-1).Draw(t, "from"):])
			}
			if len(data) == 0 {
				return
			}
		}
		if checkStrictness(t, data) {
			accepted++
		} else {
			refused++
		}
	})
	if accepted == 0 || refused == 0 {
		t.Errorf("%d accepted, %d refused: the test does not see both", accepted, refused)
	}
}

func FuzzEventItems(f *testing.F) {
	f.Add(gmxtest.Data(chain.Address{1}, "OrderExecuted", perp.Fields{"key": chain.Hash{1}, "account": chain.Address{2},
		"reason": "r"}))
	f.Add(gmxtest.Data(chain.Address{1}, "OrderUpdated",
		perp.Fields{"dataList": []chain.Hash{{1}, {2}}, "i": chain.I64(-1), "b": false}))
	f.Add(gmxtest.Data(chain.Address{1}, "Every", perp.Fields{
		"1": []chain.Address{{1}}, "2": []chain.Uint{chain.U64(1)}, "3": []chain.Int{chain.I64(-1)},
		"4": []bool{true, false}, "5": []perp.Bytes{{1}, {}},
		"6": []string{"", "text"}, "7": perp.Bytes{}, "": chain.U64(0),
	}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) { checkStrictness(t, data) })
}
