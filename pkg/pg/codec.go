package pg

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// codec is how values of one Go type are stored. Values travel in the server's binary form, in arrays of one column
// each (see rowSet).
type codec struct {
	// sqlType is the column's type, wire the one in which its values travel: text is cast on both ways where the two
	// differ.
	sqlType, wire string
	// encode appends a value; v is addressable, so that no value is boxed.
	encode func(dst []byte, v reflect.Value) ([]byte, error)
	decode func(src []byte, v reflect.Value) error
}

// codecFor returns the codec of a type; structures without one are flattened.
func codecFor(t reflect.Type) (codec, bool) {
	switch t {
	case reflect.TypeFor[chain.Uint]():
		return uintNumberCodec, true
	case reflect.TypeFor[chain.Int]():
		return intNumberCodec, true
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
		return smallCodec, true
	case reflect.Uint32:
		return bigCodec, true
	case reflect.Uint64:
		return uint64Codec, true
	case reflect.Bool:
		return boolCodec, true
	case reflect.String:
		return textCodec, true
	}
	return codec{}, false
}

// wide is 256 bits: 78 digits hold the largest.
const wide = "numeric(78,0)"

var (
	uintNumberCodec = numberCodec(parseUint, func(n *chain.Uint) (magnitude, bool) {
		return magnitudeOf(n.Bytes32()), false
	})
	intNumberCodec = numberCodec(parseInt,
		func(n *chain.Int) (magnitude, bool) { return magnitudeOf(n.Abs().Bytes32()), n.Sign() < 0 })
)

// numberCodec stores 256-bit numbers of a type; split returns a number's magnitude and whether it is negative.
func numberCodec[N any](parse func([]byte) (N, error), split func(*N) (magnitude, bool)) codec {
	at := func(v reflect.Value) (*N, error) {
		number, ok := reflect.TypeAssert[*N](v.Addr()) // a value would be boxed
		if !ok {
			return nil, fmt.Errorf("%s is no number", v.Type())
		}
		return number, nil
	}
	return codec{
		sqlType: wide, wire: "numeric",
		encode: func(dst []byte, v reflect.Value) ([]byte, error) {
			number, err := at(v)
			if err != nil {
				return nil, err
			}
			m, negative := split(number)
			return appendNumeric(dst, m, negative), nil
		},
		decode: func(src []byte, v reflect.Value) error {
			number, err := at(v)
			if err == nil {
				*number, err = parse(src)
			}
			return err
		},
	}
}

// uint64Codec stores machine words; bigint ends at half of what one holds.
var uint64Codec = codec{
	sqlType: "numeric(20,0)", wire: "numeric",
	encode: func(dst []byte, v reflect.Value) ([]byte, error) {
		return appendNumeric(dst, magnitude{v.Uint()}, false), nil
	},
	decode: func(src []byte, v reflect.Value) error {
		m, negative, err := parseNumeric(src)
		if err == nil && (negative || m != magnitude{m[0]}) {
			err = fmt.Errorf("%x does not fit 64 bits: %w", src, errNumeric)
		}
		v.SetUint(m[0])
		return err
	},
}

var smallCodec = codec{
	sqlType: "smallint", wire: "smallint",
	encode: func(dst []byte, v reflect.Value) ([]byte, error) {
		return binary.BigEndian.AppendUint16(dst, uint16(v.Uint())), nil
	},
	decode: sized(2, func(src []byte, v reflect.Value) { v.SetUint(uint64(binary.BigEndian.Uint16(src))) }),
}

var bigCodec = codec{
	sqlType: "bigint", wire: "bigint",
	encode: func(dst []byte, v reflect.Value) ([]byte, error) {
		return binary.BigEndian.AppendUint64(dst, v.Uint()), nil
	},
	decode: sized(8, func(src []byte, v reflect.Value) { v.SetUint(binary.BigEndian.Uint64(src)) }),
}

var boolCodec = codec{
	sqlType: "boolean", wire: "boolean",
	encode: func(dst []byte, v reflect.Value) ([]byte, error) {
		if v.Bool() {
			return append(dst, 1), nil
		}
		return append(dst, 0), nil
	},
	decode: sized(1, func(src []byte, v reflect.Value) { v.SetBool(src[0] == 1) }),
}

// sized guards a reader of so many bytes.
func sized(n int, read func([]byte, reflect.Value)) func([]byte, reflect.Value) error {
	return func(src []byte, v reflect.Value) error {
		if len(src) != n {
			return fmt.Errorf("%d bytes, want %d", len(src), n)
		}
		read(src, v)
		return nil
	}
}

// textCodec stores what contracts call a string, which may be any bytes at all: what the database cannot hold is
// escaped.
var textCodec = codec{
	sqlType: "text", wire: "text",
	encode: func(dst []byte, v reflect.Value) ([]byte, error) { return append(dst, Escape(v.String())...), nil },
	decode: func(src []byte, v reflect.Value) error {
		s, err := Unescape(string(src))
		v.SetString(s)
		return err
	},
}

// bytesCodec stores byte strings; nil and empty are one.
var bytesCodec = codec{
	sqlType: "bytea", wire: "bytea",
	encode: func(dst []byte, v reflect.Value) ([]byte, error) { return append(dst, v.Bytes()...), nil },
	decode: func(src []byte, v reflect.Value) error {
		if len(src) > 0 {
			v.SetBytes(append([]byte(nil), src...))
		}
		return nil
	},
}

// fixedCodec stores hashes and addresses.
func fixedCodec(t reflect.Type) codec {
	return codec{
		sqlType: "bytea", wire: "bytea",
		encode: func(dst []byte, v reflect.Value) ([]byte, error) { return append(dst, v.Bytes()...), nil },
		decode: sized(t.Len(), func(src []byte, v reflect.Value) { copy(v.Bytes(), src) }),
	}
}

// listCodec stores lists of hashes or addresses; nil and empty are one. They travel as text, because an array of arrays
// cannot be ragged.
func listCodec(t reflect.Type) codec {
	one := fixedCodec(t.Elem())
	return codec{
		sqlType: "bytea[]", wire: "text",
		encode: func(dst []byte, v reflect.Value) ([]byte, error) {
			dst = append(dst, '{')
			for i := range v.Len() {
				if i > 0 {
					dst = append(dst, ',')
				}
				dst = append(hex.AppendEncode(append(dst, `"\\x`...), v.Index(i).Bytes()), '"')
			}
			return append(dst, '}'), nil
		},
		decode: func(src []byte, v reflect.Value) error {
			inner := strings.Trim(string(src), "{}")
			if inner == "" {
				return nil
			}
			for item := range strings.SplitSeq(inner, ",") {
				digits, ok := strings.CutPrefix(strings.Trim(item, `"`), `\\x`)
				raw, err := hex.DecodeString(digits)
				if err != nil || !ok {
					return fmt.Errorf("%q is no bytea in hexadecimal form", item)
				}
				element := reflect.New(t.Elem()).Elem()
				if err := one.decode(raw, element); err != nil {
					return err
				}
				v.Set(reflect.Append(v, element))
			}
			return nil
		},
	}
}

// appendText appends a JSON string.
func appendText(dst []byte, s string) ([]byte, error) {
	quoted, err := json.Marshal(Escape(s))
	return append(dst, quoted...), err
}

// fieldTypes are the types of an event's items, by the name they are stored under; "[]" before a name is a list.
var fieldTypes = map[string]reflect.Type{
	"address": reflect.TypeFor[chain.Address](),
	"hash":    reflect.TypeFor[chain.Hash](),
	"uint":    reflect.TypeFor[chain.Uint](),
	"int":     reflect.TypeFor[chain.Int](),
	"bool":    reflect.TypeFor[bool](),
	"bytes":   reflect.TypeFor[perp.Bytes](),
	"text":    reflect.TypeFor[string](),
}
