package pg

import (
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Escape makes a text storable: PostgreSQL refuses NUL and whatever is not UTF-8, and a reverting contract may say
// both. Such bytes become \xNN, and a backslash is doubled, so that Unescape gives back exactly what was there. Other
// text stays as it is.
func Escape(s string) string {
	if utf8.ValidString(s) && !strings.ContainsAny(s, "\x00\\") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == 0 || r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}

// Unescape is the inverse of Escape.
func Unescape(s string) (string, error) {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, `\`)
		b.WriteString(before)
		switch {
		case !found:
			return b.String(), nil
		case strings.HasPrefix(after, `\`):
			b.WriteByte('\\')
			s = after[1:]
		case len(after) >= 3 && after[0] == 'x':
			raw, err := hex.DecodeString(after[1:3])
			if err != nil {
				return "", fmt.Errorf("text with a broken escape %q", after[:3])
			}
			b.Write(raw)
			s = after[3:]
		default:
			return "", fmt.Errorf("text with a broken escape at its end %q", after)
		}
	}
}
