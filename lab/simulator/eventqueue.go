package simulator

import (
	"container/heap"
	"time"
)

// eventQueue holds the events to come, in order of time. Of events at one time the one that was scheduled earlier comes
// first.
type eventQueue struct {
	now      time.Duration // since the beginning of the play
	entries  eventHeap
	sequence uint64
}

// scheduledEvent is something that happens at a time.
type scheduledEvent struct {
	at       time.Duration
	sequence uint64
	do       func()
}

// at schedules an event for a time; one in the past happens now.
func (a *eventQueue) at(when time.Duration, do func()) {
	a.sequence++
	heap.Push(&a.entries, scheduledEvent{max(when, a.now), a.sequence, do})
}

// after schedules an event for later by a length of time.
func (a *eventQueue) after(wait time.Duration, do func()) { a.at(a.now+wait, do) }

// next runs the next event. It returns false when there is none, or none before the end.
func (a *eventQueue) next(end time.Duration) bool {
	if len(a.entries) == 0 || a.entries[0].at >= end {
		return false
	}
	e := heap.Pop(&a.entries).(scheduledEvent) //nolint:forcetypeassert // The heap holds nothing else.
	a.now = e.at
	e.do()
	return true
}

// eventHeap implements heap.Interface.
type eventHeap []scheduledEvent

func (e *eventHeap) Len() int      { return len(*e) }
func (e *eventHeap) Swap(i, j int) { (*e)[i], (*e)[j] = (*e)[j], (*e)[i] }
func (e *eventHeap) Less(i, j int) bool {
	a, b := (*e)[i], (*e)[j]
	return a.at < b.at || a.at == b.at && a.sequence < b.sequence
}
func (e *eventHeap) Push(x any) {
	*e = append(*e, x.(scheduledEvent)) //nolint:forcetypeassert // The heap holds nothing else.
}

func (e *eventHeap) Pop() any {
	last := (*e)[len(*e)-1]
	(*e)[len(*e)-1] = scheduledEvent{}
	*e = (*e)[:len(*e)-1]
	return last
}
