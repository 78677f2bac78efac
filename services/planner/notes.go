package planner

import (
	"fmt"
	"strings"
)

// notes remembers which failures have been logged. Passes look at other markets each time, many times a
// second, so a failure that the last one did not have is not mended: it is logged once, until everything has been
// judged without any. The zero notes remembers none.
type notes struct{ logged map[string]bool }

// maxLogged is how many failures one message names; a market without a price fails for each of its positions.
const maxLogged = 5

// unlogged returns those of joined failures that have not been logged yet, and how many they are.
func (n *notes) unlogged(failures error) (text string, count int) {
	if failures == nil {
		return "", 0
	}
	var fresh []string
	for line := range strings.SplitSeq(failures.Error(), "\n") {
		if !n.logged[line] {
			if n.logged == nil {
				n.logged = map[string]bool{}
			}
			n.logged[line] = true
			fresh = append(fresh, line)
		}
	}
	text = strings.Join(fresh[:min(len(fresh), maxLogged)], "; ")
	if more := len(fresh) - maxLogged; more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text, len(fresh)
}

// clear forgets all: everything is well.
func (n *notes) clear() { n.logged = nil }
