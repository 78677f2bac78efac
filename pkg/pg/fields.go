package pg

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"perpkeeper/pkg/perp"
)

// fieldsCodec stores named items with their types, {"market": {"address": "0x…"}, "path": {"[]address": […]}}, so that
// they read back as what they were and not as mere texts.
var fieldsCodec = codec{
	sqlType: "jsonb", wire: "text",
	encode: func(dst []byte, v reflect.Value) ([]byte, error) {
		fields, ok := reflect.TypeAssert[perp.Fields](v)
		if !ok {
			return nil, fmt.Errorf("%s is not named items", v.Type())
		}
		dst = append(dst, '{')
		var err error
		for i, name := range slices.Sorted(maps.Keys(fields)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendField(dst, name, fields[name]); err != nil {
				return nil, fmt.Errorf("item %q: %w", name, err)
			}
		}
		return append(dst, '}'), nil
	},
	decode: func(text []byte, v reflect.Value) error {
		var items map[string]map[string]json.RawMessage
		if err := json.Unmarshal(text, &items); err != nil {
			return err
		}
		fields := perp.Fields{}
		for stored, typed := range items {
			name, err := Unescape(stored)
			if err != nil {
				return err
			}
			for typeName, value := range typed {
				if fields[name], err = parseField(typeName, value); err != nil {
					return fmt.Errorf("item %q: %w", name, err)
				}
			}
		}
		if len(fields) > 0 {
			v.Set(reflect.ValueOf(fields))
		}
		return nil
	},
}

func appendField(dst []byte, name string, value any) ([]byte, error) {
	dst, err := appendText(dst, name)
	if err != nil {
		return nil, err
	}
	v := reflect.ValueOf(value)
	typeName, ok := fieldTypeName(v)
	if !ok {
		return nil, fmt.Errorf("a value of type %T cannot be stored", value)
	}
	dst = append(append(append(dst, `:{"`...), typeName...), `":`...)
	dst, err = appendFieldValue(dst, v, strings.HasPrefix(typeName, "[]"))
	return append(dst, '}'), err
}

func appendFieldValue(dst []byte, v reflect.Value, list bool) ([]byte, error) {
	switch {
	case list:
		dst = append(dst, '[')
		var err error
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendFieldValue(dst, v.Index(i), false); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case v.Kind() == reflect.String:
		return appendText(dst, v.String())
	default:
		text, err := json.Marshal(v.Interface())
		return append(dst, text...), err
	}
}

func fieldTypeName(v reflect.Value) (string, bool) {
	if !v.IsValid() {
		return "", false
	}
	for name, t := range fieldTypes {
		switch v.Type() {
		case t:
			return name, true
		case reflect.SliceOf(t):
			return "[]" + name, true
		}
	}
	return "", false
}

func parseField(typeName string, value json.RawMessage) (any, error) {
	element, list := strings.CutPrefix(typeName, "[]")
	t, known := fieldTypes[element]
	if !known {
		return nil, fmt.Errorf("unknown type %q", typeName)
	}
	if list {
		t = reflect.SliceOf(t)
	}
	v := reflect.New(t)
	if err := json.Unmarshal(value, v.Interface()); err != nil {
		return nil, err
	}
	return unescapeField(v.Elem())
}

// unescapeField undoes what appendText did to texts.
func unescapeField(v reflect.Value) (any, error) {
	switch x := v.Interface().(type) {
	case string:
		return Unescape(x)
	case []string:
		for i := range x {
			var err error
			if x[i], err = Unescape(x[i]); err != nil {
				return nil, err
			}
		}
	}
	return v.Interface(), nil
}
