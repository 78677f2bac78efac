package statevm

import (
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// workingSet is the rows that some blocks may touch, as they are while the blocks are applied. It implements perp.State.
type workingSet struct {
	rows    map[perp.RowKey]perp.Row // nil for a row that does not exist
	before  map[perp.RowKey]perp.Row // rows touched by the present block, as they were before it
	touched []perp.RowKey            // in the order of their first touch
	strayed []perp.RowKey            // rows asked for that nobody had announced
}

// newWorkingSet holds the rows that were found for the wanted keys.
func newWorkingSet(wanted []perp.RowKey, found map[perp.RowKey]perp.Row) *workingSet {
	w := &workingSet{rows: make(map[perp.RowKey]perp.Row, len(wanted)), before: map[perp.RowKey]perp.Row{}}
	for _, k := range wanted {
		w.rows[k] = found[k]
	}
	return w
}

// Get implements perp.State.
func (w *workingSet) Get(k perp.RowKey) perp.Row {
	w.expect(k)
	return w.rows[k]
}

// Put implements perp.State.
func (w *workingSet) Put(r perp.Row) {
	k := r.RowKey()
	w.expect(k)
	if _, again := w.before[k]; !again {
		w.before[k] = w.rows[k]
		w.touched = append(w.touched, k)
	}
	w.rows[k] = r
}

// expect notes a row that was not fetched: what Get says about it would be a guess.
func (w *workingSet) expect(k perp.RowKey) {
	if _, fetched := w.rows[k]; !fetched {
		w.strayed = append(w.strayed, k)
	}
}

// take returns what changed since the last call.
func (w *workingSet) take() []pg.Change {
	changes := make([]pg.Change, len(w.touched))
	for i, k := range w.touched {
		changes[i] = pg.Change{Before: w.before[k], After: w.rows[k]}
	}
	clear(w.before)
	w.touched = w.touched[:0]
	return changes
}
