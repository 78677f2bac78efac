package planner

import (
	"context"
	"slices"
	"sync"

	"perpkeeper/pkg/bus"
)

// shards are the partitions of the log topic this planner is responsible for. It reads none of them: the group serves
// for the assignment.
type shards struct {
	mu         sync.Mutex
	partitions []int
	changed    chan struct{} // holds one token when the set has changed since it was last taken
}

func newShards() *shards { return &shards{changed: make(chan struct{}, 1)} }

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
	s.partitions = slices.Clone(partitions)
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// mine returns the partitions at this moment, sorted.
func (s *shards) mine() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.partitions)
}
