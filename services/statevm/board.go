package statevm

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// board joins what the partitions of the active generation say about themselves into one readiness condition. What is
// wrong with a generation that nobody reads is no reason for this process not to be ready.
type board struct {
	report func(reason string) // empty = all is well

	mu      sync.Mutex
	active  int
	general string                    // what is wrong with all of them
	reasons map[int]map[string]string // by generation and what has one: its group, or a partition
}

func newBoard(report func(string)) *board {
	return &board{report: report, reasons: map[int]map[string]string{}}
}

// of returns how something of a generation reports.
func (b *board) of(generation int, what string) func(reason string) {
	return func(reason string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.reasons[generation] == nil {
			b.reasons[generation] = map[string]string{}
		}
		if reason == "" {
			delete(b.reasons[generation], what)
		} else {
			b.reasons[generation][what] = reason
		}
		b.publish()
	}
}

// serve sets the generation that readers use, and why it cannot be served, if it cannot.
func (b *board) serve(generation int, general string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.active, b.general = generation, general
	b.publish()
}

func (b *board) publish() {
	var all []string
	if b.general != "" {
		all = append(all, b.general)
	}
	reasons := b.reasons[b.active]
	for _, what := range slices.Sorted(maps.Keys(reasons)) {
		all = append(all, what+": "+reasons[what])
	}
	b.report(strings.Join(all, "; "))
}
