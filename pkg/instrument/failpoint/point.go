package failpoint

import (
	"fmt"
	"strconv"
	"strings"
)

// point is where a process dies: when the named point is reached for the count-th time. The zero point is never
// reached.
type point struct {
	name  string
	count int64
}

// parse reads "name:n" or "name"; nothing is the zero point.
func parse(text string) (point, error) {
	if text == "" {
		return point{}, nil
	}
	name, number, counted := strings.Cut(text, ":")
	if name == "" {
		return point{}, fmt.Errorf("%q names no point (want name:n)", text)
	}
	if !counted {
		return point{name, 1}, nil
	}
	count, err := strconv.ParseInt(number, 10, 64)
	if err != nil || count < 1 {
		return point{}, fmt.Errorf("%q: %q is not a count from 1 on (want name:n)", text, number)
	}
	return point{name, count}, nil
}
