package sim

import (
	"container/heap"
	"time"
)

// agenda is what is going to happen, in order. Of what happens at one time the earlier entry comes first.
type agenda struct {
	now     time.Duration // since the beginning of the play
	entries entries
	made    uint64
}

// entry is something that happens at a time.
type entry struct {
	at   time.Duration
	turn uint64
	do   func()
}

// at enters something that happens at a time; what lies in the past happens now.
func (a *agenda) at(when time.Duration, do func()) {
	a.made++
	heap.Push(&a.entries, entry{max(when, a.now), a.made, do})
}

// after enters something that happens later by a length of time.
func (a *agenda) after(wait time.Duration, do func()) { a.at(a.now+wait, do) }

// next lets the next thing happen. It returns false when there is none, or none before the end.
func (a *agenda) next(end time.Duration) bool {
	if len(a.entries) == 0 || a.entries[0].at >= end {
		return false
	}
	e := heap.Pop(&a.entries).(entry) //nolint:forcetypeassert // The heap holds nothing else.
	a.now = e.at
	e.do()
	return true
}

// entries implement heap.Interface.
type entries []entry

func (e *entries) Len() int      { return len(*e) }
func (e *entries) Swap(i, j int) { (*e)[i], (*e)[j] = (*e)[j], (*e)[i] }
func (e *entries) Less(i, j int) bool {
	a, b := (*e)[i], (*e)[j]
	return a.at < b.at || a.at == b.at && a.turn < b.turn
}
func (e *entries) Push(x any) { *e = append(*e, x.(entry)) } //nolint:forcetypeassert // The heap holds nothing else.
func (e *entries) Pop() any {
	last := (*e)[len(*e)-1]
	(*e)[len(*e)-1] = entry{}
	*e = (*e)[:len(*e)-1]
	return last
}
