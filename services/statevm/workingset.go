package statevm

import (
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// workingSet is the rows that blocks may touch, as they are while the blocks are applied. It implements perp.State.
type workingSet struct {
	resident map[perp.RowKey]perp.Row // all rows of the resident tables; they stay over steps
	rows     map[perp.RowKey]perp.Row // the other rows the present step may touch; nil for one that does not exist

	before  map[perp.RowKey]perp.Row // rows touched by the present block, as they were before it
	touched []perp.RowKey            // in the order of their first touch
	strayed []perp.RowKey            // rows asked for that nobody had announced

	differences []difference // words that audits have found to differ, since they were last taken
}

func newWorkingSet(resident map[perp.RowKey]perp.Row) *workingSet {
	return &workingSet{resident: resident, before: map[perp.RowKey]perp.Row{}}
}

// fetched begins a step: it takes the rows that were found for the wanted keys, and forgets those of the step before.
func (w *workingSet) fetched(wanted []perp.RowKey, found map[perp.RowKey]perp.Row) {
	w.rows = make(map[perp.RowKey]perp.Row, len(wanted))
	for _, k := range wanted {
		w.rows[k] = found[k]
	}
}

// Get implements perp.State.
func (w *workingSet) Get(k perp.RowKey) perp.Row {
	if k.Table.Resident() {
		return w.resident[k]
	}
	w.expect(k)
	return w.rows[k]
}

// Put implements perp.State.
func (w *workingSet) Put(r perp.Row) {
	k, home := r.RowKey(), w.resident
	if !k.Table.Resident() {
		w.expect(k)
		home = w.rows
	}
	if _, again := w.before[k]; !again {
		w.before[k] = home[k]
		w.touched = append(w.touched, k)
	}
	home[k] = r
}

// expect notes a row that was not fetched: what Get returns for it would be a guess.
func (w *workingSet) expect(k perp.RowKey) {
	if _, fetched := w.rows[k]; !fetched {
		w.strayed = append(w.strayed, k)
	}
}

// apply applies an event, and notes where an audit has found a word to differ.
func (w *workingSet) apply(e perp.Event) error {
	audited, is := e.(perp.ParameterAudited)
	if !is {
		return perp.Apply(w, e)
	}
	key := audited.Parameter.RowKey()
	before, _ := w.Get(key).(perp.Parameter)
	err := perp.Apply(w, e)
	if after, _ := w.Get(key).(perp.Parameter); after.Value != before.Value {
		w.differences = append(w.differences, difference{audited, before.Value})
	}
	return err
}

// differing returns the differences that were found since the last call.
func (w *workingSet) differing() []difference {
	found := w.differences
	w.differences = nil
	return found
}

// take returns what changed since the last call.
func (w *workingSet) take() []pg.Change {
	changes := make([]pg.Change, len(w.touched))
	for i, k := range w.touched {
		changes[i] = pg.Change{Before: w.before[k], After: w.Get(k)}
	}
	clear(w.before)
	w.touched = w.touched[:0]
	return changes
}
