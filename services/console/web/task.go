package web

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// task is an action that is done beside its page, or was.
type task struct {
	Title, Target, Who string
	Began, Ended       time.Time     // Ended is zero while it is under way
	Took               time.Duration // until now, or until its end
	Problem            string        // why it failed
}

// tasks are the newest of each action: one at a time.
type tasks struct {
	mutex  sync.Mutex
	newest map[string]*task
}

// begin notes a task, and is false where the action's last one is still under way.
func (t *tasks) begin(name string, what task) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if last := t.newest[name]; last != nil && last.Ended.IsZero() {
		return false
	}
	if t.newest == nil {
		t.newest = map[string]*task{}
	}
	t.newest[name] = &what
	return true
}

// end notes what came of an action's task.
func (t *tasks) end(name string, at time.Time, failed error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.newest[name].Ended = at
	if failed != nil {
		t.newest[name].Problem = failed.Error()
	}
}

// all lists them, the newest first.
func (t *tasks) all(now time.Time) (all []task) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	for _, one := range t.newest {
		shown := *one
		shown.Took = now.Sub(shown.Began)
		if !shown.Ended.IsZero() {
			shown.Took = shown.Ended.Sub(shown.Began)
		}
		all = append(all, shown)
	}
	slices.SortFunc(all, func(a, b task) int { return cmp.Or(b.Began.Compare(a.Began), cmp.Compare(a.Title, b.Title)) })
	return all
}
