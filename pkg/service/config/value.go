package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// revealer is what a secret's type has (see pkg/setting/secret); its text must not come into an error.
type revealer interface{ Reveal() string }

// set reads a scalar from its text. The value is left alone if the text does not fit.
func set(v reflect.Value, text string) error {
	fresh := reflect.New(v.Type())
	if err := parse(fresh, text); err != nil {
		return err
	}
	v.Set(fresh.Elem())
	return nil
}

// parse reads the text into what a pointer points to.
func parse(p reflect.Value, text string) error {
	v := p.Elem()
	if v.Type() == durationType {
		d, err := time.ParseDuration(text)
		if err != nil {
			return fmt.Errorf("%q is not a duration (write it with a unit: 500ms, 10s, 2m)", text)
		}
		v.SetInt(int64(d))
		return nil
	}
	if u, ok := reflect.TypeAssert[encoding.TextUnmarshaler](p); ok {
		if err := u.UnmarshalText([]byte(text)); err != nil {
			return fmt.Errorf("%s: %w", quote(v, text), err)
		}
		return nil
	}
	return parseKind(v, text)
}

func parseKind(v reflect.Value, text string) error {
	bits := 0
	if v.Kind() != reflect.String && v.Kind() != reflect.Bool {
		bits = v.Type().Bits()
	}
	switch {
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("%q is neither true nor false", text)
		}
		v.SetBool(text == "true")
	case v.CanInt():
		i, err := strconv.ParseInt(text, 10, bits)
		if err != nil {
			return numberError(text, err, strconv.FormatInt(-1<<(bits-1), 10), strconv.FormatInt(1<<(bits-1)-1, 10))
		}
		v.SetInt(i)
	case v.CanUint():
		u, err := strconv.ParseUint(text, 10, bits)
		if err != nil {
			return numberError(text, err, "0", strconv.FormatUint(1<<bits-1, 10))
		}
		v.SetUint(u)
	default:
		f, err := strconv.ParseFloat(text, bits)
		if err != nil {
			return fmt.Errorf("%q is not a number", text)
		}
		v.SetFloat(f)
	}
	return nil
}

func numberError(text string, err error, lowest, highest string) error {
	_, signedErr := strconv.ParseInt(text, 10, 64)
	if errors.Is(err, strconv.ErrRange) || signedErr == nil {
		return fmt.Errorf("%s is out of range (%s to %s)", text, lowest, highest)
	}
	return fmt.Errorf("%q is not a whole number", text)
}

// quote names a refused text, unless the type is a secret's.
func quote(v reflect.Value, text string) string {
	if _, secret := reflect.TypeAssert[revealer](v); secret {
		return "***"
	}
	return strconv.Quote(text)
}

// setList reads a list from the texts of its elements.
func setList(v reflect.Value, texts []string) error {
	fresh := reflect.MakeSlice(v.Type(), len(texts), len(texts))
	var problems []error
	for i, text := range texts {
		if err := set(fresh.Index(i), text); err != nil {
			problems = append(problems, fmt.Errorf("element %d: %w", i+1, err))
		}
	}
	if len(problems) == 0 {
		v.Set(fresh)
	}
	return errors.Join(problems...)
}

// split takes a comma separated list apart; empty text is an empty list.
func split(text string) []string {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	parts := strings.Split(text, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

// textOf is the text that a raw value of a file stands for.
func textOf(raw any) (string, error) {
	switch raw := raw.(type) {
	case string:
		return raw, nil
	case bool:
		return strconv.FormatBool(raw), nil
	case int64:
		return strconv.FormatInt(raw, 10), nil
	case float64:
		return strconv.FormatFloat(raw, 'f', -1, 64), nil
	case map[string]any:
		return "", errors.New("a table stands where a value is expected")
	case []any:
		return "", errors.New("a list stands where one value is expected")
	default: // Dates and times, which no setting is made of.
		return "", errors.New("a date stands where a value is expected (quote it if text is meant)")
	}
}

// textsOf are the texts that a raw value of a file, a variable or a flag stands for where a list is expected.
func textsOf(raw any) ([]string, error) {
	elements, isList := raw.([]any)
	if !isList {
		text, err := textOf(raw)
		return split(text), err
	}
	texts := make([]string, len(elements))
	for i, element := range elements {
		text, err := textOf(element)
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i+1, err)
		}
		texts[i] = text
	}
	return texts, nil
}

// show is the text of a scalar; secrets are masked by their own types. Reading it back gives the same value, secrets
// excepted.
func show(v reflect.Value) string {
	p := reflect.New(v.Type()) // Some types print themselves only through a pointer.
	p.Elem().Set(v)
	switch printed := p.Interface().(type) {
	case encoding.TextMarshaler:
		if text, err := printed.MarshalText(); err == nil {
			return string(text)
		}
	case fmt.Stringer:
		return printed.String()
	}
	if v.Kind() == reflect.Float64 {
		return strconv.FormatFloat(v.Float(), 'f', -1, 64)
	}
	return fmt.Sprint(v.Interface())
}
