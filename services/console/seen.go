package console

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/tier"
	"perpkeeper/pkg/tier/evidence"
	"perpkeeper/pkg/tier/execution"
)

// seen holds the jobs that planners say against what the chain shows of the keepers, for a monitor. It is safe for
// concurrent use.
type seen struct {
	mu      sync.Mutex
	watch   *tier.Watch
	keepers tier.Roster
	metrics *evidence.Metrics
	newest  map[job.Need]publishedJob
	readMs  uint64 // time of the block up to which evidence was read, 0 before all of the past was
}

// publishedJob is the newest job of a need. DueMs is the time (ms) of the state in which it was found due.
type publishedJob struct {
	id                string
	dueSinceMs, dueMs uint64
}

// remembered is for how long, of chain time, a job is remembered that no planner publishes any more.
const remembered = 20 * time.Minute

func newSeen(cfg tier.Config, metrics *evidence.Metrics) *seen {
	return &seen{watch: tier.NewWatch(cfg.Tiers, cfg.Window), keepers: cfg.Roster(nil), metrics: metrics,
		newest: map[job.Need]publishedJob{}}
}

// Published takes a job that a planner publishes.
func (s *seen) Published(j job.Job) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest[j.Need()] = publishedJob{j.ID, max(j.DueSinceMs, s.newest[j.Need()].dueSinceMs), j.Evidence.Block.TimeMs}
	if j.Kind.Lane() != job.CleanupLane { // keepers may leave what expired to others
		s.watch.Due(j.ID, j.DueSinceMs, j.Evidence.Block.TimeMs)
	}
}

// Executed takes what the chain shows, in its order.
func (s *seen) Executed(found []execution.Execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range found {
		by := s.keepers.Tier(e.Tx.From)
		if !e.Work() {
			by = 0 // whoever sent that executed something else, or nothing
		}
		j, known := s.newest[e.Need()]
		if !known {
			j.id = fmt.Sprintf("%s:%s", e.Kind, e.Key)
		}
		delete(s.newest, e.Need())
		s.watch.Executed(j.id, by, e.Block.TimeMs)
		if s.readMs > 0 { // what was executed before we began is not counted
			s.metrics.ExecutedBy(by, e, j.dueSinceMs, by > 1 && s.watch.MasterSilent())
		}
	}
}

// Read notes the time (ms) of the block up to which evidence has been read.
func (s *seen) Read(blockMs uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readMs = max(s.readMs, blockMs)
}

// alarms are what has gone wrong, or is in order again, since they were last asked for, at the chain's time (ms).
func (s *seen) alarms(nowMs uint64) []tier.Alarm {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.newest, func(_ job.Need, j publishedJob) bool {
		return s.readMs > j.dueMs+uint64(remembered.Milliseconds())
	})
	return s.watch.Look(nowMs, s.readMs)
}
