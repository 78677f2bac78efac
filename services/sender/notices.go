package sender

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// notices are the reasons why parts of this process are not doing their work, for readiness. Safe for concurrent use.
type notices struct {
	mu      sync.Mutex
	reasons map[string]string
	tell    func(reasons string) // told all of them; empty when there is none
}

func newNotices(tell func(string)) *notices {
	return &notices{reasons: map[string]string{}, tell: tell}
}

// set gives the reason of a part; an empty one says that all is well with it.
func (n *notices) set(part, reason string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if reason == "" {
		delete(n.reasons, part)
	} else {
		n.reasons[part] = part + ": " + reason
	}
	n.tell(strings.Join(slices.Sorted(maps.Values(n.reasons)), "; "))
}
