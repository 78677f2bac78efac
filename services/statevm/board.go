package statevm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// board joins what the partitions say about themselves into one readiness condition.
type board struct {
	report func(reason string) // empty = all is well

	mu      sync.Mutex
	reasons map[int]string // of the partitions that have one
}

func newBoard(report func(string)) *board { return &board{report: report, reasons: map[int]string{}} }

// of returns how one partition reports.
func (b *board) of(partition int) func(reason string) {
	return func(reason string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if reason == "" {
			delete(b.reasons, partition)
		} else {
			b.reasons[partition] = reason
		}
		all := make([]string, 0, len(b.reasons))
		for _, p := range slices.Sorted(maps.Keys(b.reasons)) {
			all = append(all, fmt.Sprintf("partition %d: %s", p, b.reasons[p]))
		}
		b.report(strings.Join(all, "; "))
	}
}
