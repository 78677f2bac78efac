// Package check judges settings. What it finds wrong is one line that begins with the setting's key, so that Validate
// is one errors.Join of what has to be so; what is right is nil.
package check

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Refuse is the error that a setting is wrong, where it is. The arguments are evaluated in any case.
func Refuse(wrong bool, format string, args ...any) error {
	if !wrong {
		return nil
	}
	return fmt.Errorf(format, args...)
}

// Between refuses a value below least or above most.
func Between[T cmp.Ordered](key string, value, least, most T) error {
	return Refuse(value < least || value > most, "%s: %v is not between %s and %s", key, value, bound(least),
		bound(most))
}

// bound writes a bound as people do: 24h, where a [time.Duration] says 24h0m0s.
func bound(v any) string {
	text := fmt.Sprint(v)
	if _, is := v.(time.Duration); is && strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
		if strings.HasSuffix(text, "h0m") {
			text = strings.TrimSuffix(text, "0m")
		}
	}
	return text
}
