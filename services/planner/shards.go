package planner

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"perpkeeper/pkg/kafka/bus"
)

// shards are the partitions of the log topic this planner is responsible for. It reads none of them: the group serves
// for the assignment.
//
// At every rebalance the group takes all partitions away before it gives them out again, and who gets another planner's
// has to load it first. So what was taken away is planned on for a while: the same job found by two planners is one.
type shards struct {
	mu         sync.Mutex
	partitions []int
	left       map[int]time.Time // when partitions were taken away that have not come back
	handover   time.Duration     // for which they are planned on
	changed    chan struct{}     // holds one token when the set has changed since it was last taken
}

// handover is longer than the group takes for a rebalance and a planner to load what it can hold.
const handover = 30 * time.Second

func newShards() *shards {
	return &shards{left: map[int]time.Time{}, handover: handover, changed: make(chan struct{}, 1)}
}

// join keeps the set up to date until ctx ends.
func (s *shards) join(ctx context.Context, client *bus.Client, group, topic string) error {
	return client.Join(ctx, bus.GroupConfig{ID: group, Topic: topic, OnAssign: s.assign},
		func(ctx context.Context, _ bus.Claim) error {
			<-ctx.Done()
			return ctx.Err()
		})
}

func (s *shards) assign(partitions []int) {
	s.mu.Lock()
	for _, partition := range s.partitions {
		s.left[partition] = time.Now()
	}
	s.partitions = slices.Clone(partitions)
	for _, partition := range partitions {
		delete(s.left, partition)
	}
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// mine returns the partitions at this moment, sorted, and beside them those that are planned on although they were taken
// away.
func (s *shards) mine() (assigned, kept []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.left, func(_ int, since time.Time) bool { return time.Since(since) >= s.handover })
	return slices.Clone(s.partitions), slices.Sorted(maps.Keys(s.left))
}
