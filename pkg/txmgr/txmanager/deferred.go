package txmanager

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"perpkeeper/pkg/txmgr/txm"
)

// pause is how long a task that has to wait is passed over.
const pause = 300 * time.Millisecond

// deferred are the tasks that have to wait.
type deferred struct {
	clock     func() time.Time
	head      func() uint64       // the newest head's number
	deferrals map[int64]deferral  // until when a task is passed over
	yielded   map[int64]time.Time // when a task was last told that it is another keeper's
}

// deferral is how long a task is passed over: until a time, or a head where one is named, or some news.
type deferral struct {
	until time.Time
	head  uint64
	wake  <-chan struct{}
}

func (n deferral) over(now time.Time, head uint64) bool {
	select {
	case <-n.wake:
		return true
	default:
	}
	if n.head > 0 {
		return head >= n.head
	}
	return !now.Before(n.until)
}

// asked lists the tasks that were asked in this round.
func (p *deferred) asked() []int64 { return slices.Collect(maps.Keys(p.deferrals)) }

// nextRound lets the tasks be asked again whose time has come, and reports whether there are any. It is called when
// nothing else may be asked: what waits is not asked twice before all others were asked once, however many they are.
func (p *deferred) nextRound() bool {
	now, head, asked := p.clock(), p.head(), len(p.deferrals)
	maps.DeleteFunc(p.deferrals, func(_ int64, n deferral) bool { return n.over(now, head) })
	return len(p.deferrals) < asked
}

func (p *deferred) postpone(i txm.Intent, rest time.Duration) {
	p.deferrals[i.ID] = deferral{until: p.clock().Add(rest)}
}

// rested passes a task over for as long as its verdict asks.
func (p *deferred) rested(i txm.Intent, v Verdict) {
	if v.Heads > 0 {
		p.deferrals[i.ID] = deferral{head: p.head() + v.Heads, wake: v.Wake}
		return
	}
	p.postpone(i, cmp.Or(v.Pause, pause))
}

// waited is for how long a task has waited in turns of its own.
func (p *deferred) waited(i txm.Intent) time.Duration {
	if at, yielded := p.yielded[i.ID]; yielded {
		return min(i.Waited, p.clock().Sub(at))
	}
	return i.Waited
}
