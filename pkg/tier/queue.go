package tier

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/ttl"
)

// Queue holds the jobs whose turn is another tier's, in memory (TIER-11). It may be lost: whoever fills it can fill it
// again from the job topic.
//
// Nothing in it moves by itself. Ready hands out the jobs whose turn has come, and a job that was handed out or removed
// is no longer in it; Cleanup ends those that nobody executed in time. Every job that was added leaves by one of the
// three. It is safe for concurrent use.
type Queue struct {
	policy   Policy
	clock    func() uint64
	maxAge   uint64 // ms
	interval uint64 // ms

	now atomic.Uint64 // Unix ms, of the policy's clock as the queue has last read it

	mu      sync.Mutex
	waiting map[string]Waiting
	turns   *ttl.Queue[string] // by when to ask again
	ready   []Waiting          // gathered by a turn of turns
	cleaned uint64             // when Cleanup last looked
}

// Waiting is a job in the queue.
type Waiting struct {
	Job job.Job
	// FoundMs is as in [Job].
	FoundMs uint64
	// Turn is the policy's newest answer.
	Turn Turn
}

// of returns what the policy needs of the job.
func (w Waiting) of() Job { return Of(w.Job, w.FoundMs) }

// NewQueue makes an empty queue. Clock is the policy's (Unix ms); where it goes back, the queue's time stands still
// meanwhile, but where it goes back by more than any reorg could the queue begins again with what waits. A job is too
// old at maxAge, and Cleanup looks for such jobs once an interval.
func NewQueue(policy Policy, clock func() uint64, maxAge, interval time.Duration) *Queue {
	q := &Queue{
		policy: policy, clock: clock, maxAge: uint64(maxAge.Milliseconds()), interval: uint64(interval.Milliseconds()),
		waiting: map[string]Waiting{},
	}
	q.begin()
	return q
}

// begin asks again for everything that waits.
func (q *Queue) begin() {
	q.turns = ttl.New(ttl.Options[string]{
		Config: ttl.DefaultConfig(), Clock: func() time.Duration { return milliseconds(q.now.Load()) }, Callback: q.ask,
	})
	q.turns.Lead(true)
	for id := range q.waiting {
		q.turns.Set(id, 0)
	}
	q.cleaned = q.now.Load()
}

// Add asks whose turn a job is. If it is not this keeper's the job waits; otherwise it does not, and what waited under
// its id waits no longer: the caller has it. Adding a job again replaces it.
func (q *Queue) Add(j job.Job, foundMs uint64) Waiting {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := Waiting{Job: j, FoundMs: foundMs}
	w.Turn = q.policy.Turn(w.of(), q.tick())
	if w.Turn.Mine {
		q.remove(j.ID)
		return w
	}
	q.waiting[j.ID] = w
	q.turns.Set(j.ID, milliseconds(w.Turn.NextMs))
	return w
}

// Ready takes out the jobs whose turn has come, the most urgent first.
func (q *Queue) Ready() []Waiting {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.tick()
	for q.turns.Turn() == 0 { // time stands still meanwhile, and whoever is asked again is so later than now
	}
	ready := q.ready
	q.ready = nil
	slices.SortFunc(ready, func(a, b Waiting) int {
		if a.Job.Before(b.Job) {
			return -1
		}
		return 1
	})
	return ready
}

// ask is what happens to a job when its time to be asked for has come. A job that is too old is left to Cleanup. The
// queue is locked: only Ready makes turns.
func (q *Queue) ask(t ttl.Try[string]) error {
	w, now := q.waiting[t.Key()], q.now.Load()
	w.Turn = q.policy.Turn(w.of(), now)
	if w.Turn.Mine && !q.tooOld(w, now) {
		q.remove(t.Key())
		q.ready = append(q.ready, w)
		return nil
	}
	q.waiting[t.Key()] = w
	q.turns.Set(t.Key(), milliseconds(max(w.Turn.NextMs, now+1)))
	return nil
}

// LookAgain makes the next Ready ask for every job, because the evidence has changed.
func (q *Queue) LookAgain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for id := range q.waiting {
		q.turns.Set(id, 0)
	}
}

// Remove takes a job out, and reports whether it was there.
func (q *Queue) Remove(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.remove(id)
}

func (q *Queue) remove(id string) bool {
	_, known := q.waiting[id]
	delete(q.waiting, id)
	q.turns.Remove(id)
	return known
}

// Exists reports whether a job waits.
func (q *Queue) Exists(id string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, known := q.waiting[id]
	return known
}

// Len is how many jobs wait.
func (q *Queue) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting)
}

// Cleanup takes out and returns the jobs that are too old, oldest first, if an interval has passed since it last did;
// none otherwise. The caller must report them.
func (q *Queue) Cleanup() (old []Waiting) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.tick()
	if now < q.cleaned+q.interval {
		return nil
	}
	q.cleaned = now
	for id, w := range q.waiting {
		if q.tooOld(w, now) {
			q.remove(id)
			old = append(old, w)
		}
	}
	slices.SortFunc(old, func(a, b Waiting) int {
		if q.since(a) != q.since(b) {
			return int(int64(q.since(a)) - int64(q.since(b)))
		}
		if a.Job.ID < b.Job.ID {
			return -1
		}
		return 1
	})
	return old
}

func (q *Queue) tooOld(w Waiting, now uint64) bool { return now >= q.since(w)+q.maxAge }

func (q *Queue) since(w Waiting) uint64 { return q.policy.Since(w.of()) }

// tick reads the clock.
func (q *Queue) tick() uint64 {
	switch now, last := q.clock(), q.now.Load(); {
	case now > last:
		q.now.Store(now)
	case chain.Impossible(last, now):
		q.now.Store(now)
		q.begin()
	}
	return q.now.Load()
}

func milliseconds(ms uint64) time.Duration { return time.Duration(ms) * time.Millisecond }
