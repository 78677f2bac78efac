package pg

import (
	"encoding"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// codec is how values of one Go type are stored: the column's type, the JSON that is written, and the reading of the server's text form.
type codec struct {
	sqlType string
	encode  func(dst []byte, v reflect.Value) ([]byte, error)
	decode  func(text []byte, v reflect.Value) error
}

// codecFor returns the codec of a type; structures without one are flattened.
func codecFor(t reflect.Type) (codec, bool) {
	switch t {
	case reflect.TypeFor[perp.Uint](), reflect.TypeFor[perp.Int]():
		return numericCodec, true
	case reflect.TypeFor[perp.Bytes]():
		return bytesCodec, true
	case reflect.TypeFor[perp.Fields]():
		return fieldsCodec, true
	}
	switch t.Kind() { //nolint:exhaustive // kinds without a codec are structures, or refused when the layouts are made
	case reflect.Array:
		return fixedCodec(t), t.Elem().Kind() == reflect.Uint8
	case reflect.Slice:
		return listCodec(t), t.Elem().Kind() == reflect.Array && t.Elem().Elem().Kind() == reflect.Uint8
	case reflect.Uint8:
		return uintCodec("smallint"), true
	case reflect.Uint32:
		return uintCodec("bigint"), true
	case reflect.Uint64:
		return uintCodec("numeric(20,0)"), true // bigint ends at half of what a uint64 holds
	case reflect.Bool:
		return boolCodec, true
	case reflect.String:
		return textCodec, true
	}
	return codec{}, false
}

// numericCodec stores 256-bit integers; 78 digits hold the largest.
var numericCodec = codec{
	sqlType: "numeric(78,0)",
	encode: func(dst []byte, v reflect.Value) ([]byte, error) {
		number, ok := reflect.TypeAssert[encoding.TextMarshaler](v)
		if !ok {
			return nil, fmt.Errorf("%s is no number", v.Type())
		}
		text, err := number.MarshalText()
		return append(append(append(dst, '"'), text...), '"'), err
	},
	decode: func(text []byte, v reflect.Value) error {
		number, ok := reflect.TypeAssert[encoding.TextUnmarshaler](v.Addr())
		if !ok {
			return fmt.Errorf("%s is no number", v.Type())
		}
		return number.UnmarshalText(text)
	},
}

// uintCodec stores machine integers.
func uintCodec(sqlType string) codec {
	return codec{
		sqlType: sqlType,
		encode:  func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendUint(dst, v.Uint(), 10), nil },
		decode: func(text []byte, v reflect.Value) error {
			n, err := strconv.ParseUint(string(text), 10, v.Type().Bits())
			v.SetUint(n)
			return err
		},
	}
}

var boolCodec = codec{
	sqlType: "boolean",
	encode:  func(dst []byte, v reflect.Value) ([]byte, error) { return strconv.AppendBool(dst, v.Bool()), nil },
	decode: func(text []byte, v reflect.Value) error {
		v.SetBool(string(text) == "true")
		return nil
	},
}

// textCodec stores what contracts call a string, which may be any bytes at all: what the database cannot hold is escaped.
var textCodec = codec{
	sqlType: "text",
	encode:  func(dst []byte, v reflect.Value) ([]byte, error) { return appendText(dst, v.String()) },
	decode: func(text []byte, v reflect.Value) error {
		s, err := unescape(string(text))
		v.SetString(s)
		return err
	},
}

// bytesCodec stores byte strings; nil and empty are one.
var bytesCodec = codec{
	sqlType: "bytea",
	encode:  func(dst []byte, v reflect.Value) ([]byte, error) { return appendBytea(dst, v.Bytes()), nil },
	decode: func(text []byte, v reflect.Value) error {
		b, err := parseBytea(string(text))
		if len(b) > 0 {
			v.SetBytes(b)
		}
		return err
	},
}

// fixedCodec stores hashes and addresses.
func fixedCodec(t reflect.Type) codec {
	return codec{
		sqlType: "bytea",
		encode: func(dst []byte, v reflect.Value) ([]byte, error) {
			raw := make([]byte, v.Len())
			reflect.Copy(reflect.ValueOf(raw), v)
			return appendBytea(dst, raw), nil
		},
		decode: func(text []byte, v reflect.Value) error {
			b, err := parseBytea(string(text))
			if err == nil && len(b) != t.Len() {
				err = fmt.Errorf("%d bytes, want %d", len(b), t.Len())
			}
			reflect.Copy(v, reflect.ValueOf(b))
			return err
		},
	}
}

// listCodec stores lists of hashes or addresses; nil and empty are one.
func listCodec(t reflect.Type) codec {
	one := fixedCodec(t.Elem())
	return codec{
		sqlType: "bytea[]",
		encode: func(dst []byte, v reflect.Value) ([]byte, error) {
			dst = append(dst, '[')
			for i := range v.Len() {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst, _ = one.encode(dst, v.Index(i))
			}
			return append(dst, ']'), nil
		},
		decode: func(text []byte, v reflect.Value) error {
			inner := strings.Trim(string(text), "{}")
			if inner == "" {
				return nil
			}
			for item := range strings.SplitSeq(inner, ",") {
				element := reflect.New(t.Elem()).Elem()
				// In the text of an array an element stands in quotes, with its backslash doubled.
				if err := one.decode([]byte(strings.ReplaceAll(strings.Trim(item, `"`), `\\`, `\`)), element); err != nil {
					return err
				}
				v.Set(reflect.Append(v, element))
			}
			return nil
		},
	}
}

func appendBytea(dst, raw []byte) []byte {
	return append(hex.AppendEncode(append(dst, `"\\x`...), raw), '"')
}

func parseBytea(text string) ([]byte, error) {
	digits, ok := strings.CutPrefix(text, `\x`)
	if !ok {
		return nil, fmt.Errorf("%q is no bytea in hexadecimal form", text)
	}
	return hex.DecodeString(digits)
}

func appendText(dst []byte, s string) ([]byte, error) {
	quoted, err := json.Marshal(escape(s))
	return append(dst, quoted...), err
}

// fieldTypes are the types of an event's items, by the name they are stored under; "[]" before a name is a list.
var fieldTypes = map[string]reflect.Type{
	"address": reflect.TypeFor[chain.Address](),
	"hash":    reflect.TypeFor[chain.Hash](),
	"uint":    reflect.TypeFor[perp.Uint](),
	"int":     reflect.TypeFor[perp.Int](),
	"bool":    reflect.TypeFor[bool](),
	"bytes":   reflect.TypeFor[perp.Bytes](),
	"text":    reflect.TypeFor[string](),
}
