package planner

import (
	"errors"
	"fmt"
	"testing"
)

// A failure is told once, whatever passes between find, in whatever order they find it; many are told in one short
// message.
func TestFailuresAreToldOnce(t *testing.T) {
	var n notes
	a, b := errors.New("a"), errors.New("b")
	for i, step := range []struct {
		failures error
		text     string
	}{{a, "a"}, {nil, ""}, {a, ""}, {errors.Join(b, a), "b"}, {errors.Join(a, b), ""}} {
		if text, count := n.unlogged(step.failures); text != step.text || (count > 0) != (text != "") {
			t.Errorf("step %d: %q, %d", i, text, count)
		}
	}
	n.clear()
	var many []error
	for i := range 10_000 {
		many = append(many, fmt.Errorf("position %d", i))
	}
	text, count := n.unlogged(errors.Join(a, errors.Join(many...)))
	if want := "a; position 0; position 1; position 2; position 3; and 9996 more"; text != want || count != 10_001 {
		t.Errorf("%q, %d", text, count)
	}
}
