package planner

import (
	"fmt"
	"strings"
)

// notes remembers which failures an operator has been told of. Passes look at other markets each time, many times a
// second, so what the last one did not say is not mended: a failure is told once, until everything has been judged
// without any. The zero notes remembers none.
type notes struct{ told map[string]bool }

// mostTold is how many failures one message names; a market without a price fails for each of its positions.
const mostTold = 5

// news returns what of joined failures has not been told yet, and how many that are.
func (n *notes) news(failures error) (text string, count int) {
	if failures == nil {
		return "", 0
	}
	var fresh []string
	for line := range strings.SplitSeq(failures.Error(), "\n") {
		if !n.told[line] {
			if n.told == nil {
				n.told = map[string]bool{}
			}
			n.told[line] = true
			fresh = append(fresh, line)
		}
	}
	text = strings.Join(fresh[:min(len(fresh), mostTold)], "; ")
	if more := len(fresh) - mostTold; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text, len(fresh)
}

// clear forgets all: everything is well.
func (n *notes) clear() { n.told = nil }
