package sender

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// again is how long a loop rests after a pass that left something to do.
const again = 500 * time.Millisecond

// notices are the reasons why parts of this process are not doing their work, for readiness. The zero value has none.
// It is safe for concurrent use.
type notices struct {
	mu      sync.Mutex
	reasons map[string]string
}

// set sets the reason of a part; an empty one means that all is well with it.
func (n *notices) set(part, reason string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if reason == "" {
		delete(n.reasons, part)
		return
	}
	if n.reasons == nil {
		n.reasons = map[string]string{}
	}
	n.reasons[part] = part + ": " + reason
}

// healthy returns all reasons in one error, or nil.
func (n *notices) healthy(context.Context) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.reasons) == 0 {
		return nil
	}
	return errors.New(strings.Join(slices.Sorted(maps.Values(n.reasons)), "; "))
}
