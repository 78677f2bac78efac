package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"
)

// WriteTOML prints the configuration in force as a TOML file, secrets masked. Read back, it gives the same
// configuration, secrets excepted.
func (s *Set) WriteTOML(w io.Writer) error {
	var b strings.Builder
	for _, root := range s.roots {
		for _, c := range root.nodes {
			writeSection(&b, "["+c.key+"]", c)
		}
	}
	_, err := io.WriteString(w, strings.TrimPrefix(b.String(), "\n"))
	return err
}

// writeSection prints the keys of a structure, then the structures below it, as TOML demands.
func writeSection(b *strings.Builder, header string, n *node) {
	fmt.Fprintf(b, "\n%s\n", header)
	for _, c := range n.nodes {
		if c.shown(n) && (c.settable() || c.kind == tables && c.value.Len() == 0) {
			fmt.Fprintf(b, "%s = %s\n", c.name, literal(c))
		}
	}
	for _, c := range n.nodes {
		switch c.kind {
		case section:
			writeSection(b, "["+plain(c.key)+"]", c)
		case tables:
			writeRows(b, c)
		case scalar, list: // printed above
		}
	}
}

func writeRows(b *strings.Builder, n *node) {
	for i := range n.value.Len() {
		if row, err := rowOf(n, i, n.value.Index(i)); err == nil {
			writeSection(b, "[["+plain(n.key)+"]]", row)
		}
	}
}

// plain is a key without positions in lists, as TOML headers have it.
func plain(key string) string { return indexRule.ReplaceAllString(key, "") }

// literal is the value of a node as TOML writes it; of tables only an empty list can be written so.
func literal(n *node) string {
	if n.kind == scalar {
		return scalarLiteral(n.value)
	}
	elements := make([]string, n.value.Len())
	for i := range elements {
		elements[i] = scalarLiteral(n.value.Index(i))
	}
	return "[" + strings.Join(elements, ", ") + "]"
}

// text is the value of a node as a variable or a flag would have it.
func text(n *node) string {
	if n.kind == scalar {
		return show(n.value)
	}
	elements := make([]string, n.value.Len())
	for i := range elements {
		elements[i] = show(n.value.Index(i))
	}
	return strings.Join(elements, ",")
}

func scalarLiteral(v reflect.Value) string {
	text := show(v)
	switch kind := v.Kind(); {
	case v.Type() == durationType, reflect.PointerTo(v.Type()).Implements(textType), kind == reflect.String:
		return quoteTOML(text)
	case kind == reflect.Float64 && !strings.ContainsAny(text, ".IN"):
		return text + ".0"
	case kind == reflect.Float64:
		return strings.ToLower(text) // TOML knows inf and nan, in lower case.
	case v.CanUint() && v.Uint() > math.MaxInt64: // TOML's integers end there.
		return quoteTOML(text)
	default:
		return text
	}
}

// quoteTOML writes a basic string. JSON's escapes are TOML's, but TOML also wants DEL escaped.
func quoteTOML(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(text) //nolint:errchkjson // A string cannot fail to encode, nor the buffer to be written.
	return strings.ReplaceAll(strings.TrimSuffix(b.String(), "\n"), "\x7f", `\u007f`)
}

// Each visits every value in the order of the structures as text, lists comma separated, secrets masked.
func (s *Set) Each(visit func(key, value string)) {
	for _, root := range s.roots {
		root.each(func(n *node) {
			if n.settable() && (n.holds == nil || n.value.String() != "") {
				visit(n.key, text(n))
			}
		})
	}
}

// Secrets are the texts of all secrets in force, for whoever has to keep them out of what is shown: handle with care.
func (s *Set) Secrets() (texts []string) {
	reveal := func(v reflect.Value) {
		if r, is := reflect.TypeAssert[revealer](v); is {
			texts = append(texts, r.Reveal())
		}
	}
	for _, root := range s.roots {
		root.each(func(n *node) {
			if n.kind == scalar {
				reveal(n.value)
			}
			for i := 0; n.kind == list && i < n.value.Len(); i++ {
				reveal(n.value.Index(i))
			}
		})
	}
	return texts
}

// WriteHelp prints every key with its default, its variable and what it is for.
func (s *Set) WriteHelp(w io.Writer) error {
	var b strings.Builder
	for _, root := range s.roots {
		for _, c := range root.nodes {
			fmt.Fprintf(&b, "\n[%s]\n", c.key)
			c.walk(func(n *node) { writeKeyHelp(&b, n) })
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeKeyHelp(b *strings.Builder, n *node) {
	switch n.kind {
	case scalar, list:
		if n.holds == nil {
			fmt.Fprintf(b, "  --%s  %s  (default %s)\n        %s\n", n.key, n.env(), literal(n), n.help)
		} else {
			fmt.Fprintf(b, "  --%s  %s\n        %s\n", n.key, n.env(), n.help)
		}
	case tables:
		fmt.Fprintf(b, "  [[%s]]  (only in the file)\n        %s\n", n.key, n.help)
		n.row.walk(func(c *node) { writeColumnHelp(b, n.key, c) })
	case section: // is walked by its keys
	}
}

// writeColumnHelp explains one key of the tables of a list, named as seen from the list.
func writeColumnHelp(b *strings.Builder, list string, c *node) {
	if c.kind == section {
		return
	}
	fmt.Fprintf(b, "        %s: %s\n", strings.TrimPrefix(c.key, list+"."), c.help)
	if c.kind == tables {
		c.row.walk(func(inner *node) { writeColumnHelp(b, list, inner) })
	}
}
