// Package secret holds values that must never be seen: passwords, tokens, keys, and URLs that carry them.
//
// Guaranteed: whatever fmt, encoding/json, encoding.TextMarshaler users, zerolog or slog do with a value of this
// package, or with any structure around it, they print the mask; also when the value sits in an unexported field, where
// fmt cannot call methods. The one way to the text is Reveal, so that every use can be found by its name.
//
// Not guaranteed: memory is not wiped, and text that has been revealed is plain text again.
package secret

import (
	"fmt"
	"strconv"
	"unique"
)

// Mask is what is printed in place of a secret.
const Mask = "***"

// String is a secret text. The zero value is empty; an empty secret prints as nothing, so that "not set" can be seen.
// Two Strings are equal (==) when their texts are.
type String struct {
	text handle
}

// New hides a text.
func New(text string) String { return String{text: hide(text)} }

// Reveal returns the hidden text.
func (s String) Reveal() string { return s.text.reveal() }

// IsSet reports whether there is a text at all.
func (s String) IsSet() bool { return s != String{} }

// String returns the mask, or nothing for an empty secret.
func (s String) String() string {
	if !s.IsSet() {
		return ""
	}
	return Mask
}

// GoString is what %#v would print; the same as String, quoted.
func (s String) GoString() string { return strconv.Quote(s.String()) }

// Format prints the mask for every verb, so that %x and %d reveal nothing either.
func (s String) Format(f fmt.State, verb rune) { format(f, verb, s.String()) }

// MarshalText returns the mask; a masked document can therefore not be read back.
func (s String) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes the text as it is, for configuration.
func (s *String) UnmarshalText(text []byte) error {
	*s = New(string(text))
	return nil
}

// handle keeps a text behind a pointer: fmt prints the unexported fields of a structure by reflection, and a pointer is
// all it finds here. A unique handle, unlike a plain pointer, still compares by content.
type handle struct {
	text unique.Handle[string]
}

func hide(text string) handle {
	if text == "" {
		return handle{}
	}
	return handle{text: unique.Make(text)}
}

func (h handle) reveal() string {
	if h == (handle{}) {
		return ""
	}
	return h.text.Value()
}

// format writes an already masked text for any verb: quoted where the verb asks for it, plain otherwise.
func format(f fmt.State, verb rune, masked string) {
	if verb == 'q' || verb == 'v' && f.Flag('#') {
		masked = strconv.Quote(masked)
	}
	_, _ = f.Write([]byte(masked)) // fmt.State gives a formatter no way to report an error.
}
