package scanner

import (
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/wire"
)

// words are the configured words of the DataStore as the topic last said them, and when to read them again. No event tells of their changes:
// deployments, scripts and timelocks write them directly, also after the first block. So they are read at the first block, at the head whenever
// this tenure has caught up with it, and again after an interval; what changed is published.
type words struct {
	said map[chain.Hash]chain.Hash
	due  time.Time // zero: at the next head
}

// changed returns the words that differ from what was said.
func (w *words) changed(read []wire.Param) (changed []wire.Param) {
	for _, p := range read {
		if value, known := w.said[p.Key]; !known || value != p.Value {
			changed = append(changed, p)
		}
	}
	return changed
}

// published notes what was said, and when to look again.
func (w *words) published(said []wire.Param, again time.Time) {
	if w.said == nil {
		w.said = map[chain.Hash]chain.Hash{}
	}
	for _, p := range said {
		w.said[p.Key] = p.Value
	}
	w.due = again
}

// forget makes everything due again: a reorg has taken back what was said.
func (w *words) forget() { *w = words{} }
