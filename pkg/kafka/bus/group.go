package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
)

// rejoinPause is how long a member waits after a failed attempt to join before the next.
const rejoinPause = 250 * time.Millisecond

// GroupConfig names a group and what it shares out.
type GroupConfig struct {
	ID    string
	Topic string

	// OnAssign, if set, is called with what this member is responsible for: the sorted set of its partitions before
	// their handlers start, and an empty set when all of them have ended, be it for the next generation or for good. It
	// is called from one goroutine at a time, and the generation waits for it.
	OnAssign func(partitions []int)
}

// Claim is one partition, assigned to this member for one generation of the group.
type Claim struct{ Partition int }

// Join makes this process a member of a group that shares out the partitions of a topic, until ctx ends or a handler
// fails.
//
// For each partition that is assigned, handle runs in a goroutine of its own. Its context ends when the generation does
// (a member came, left or died; the brokers could not be reached) or when ctx ends; handle must then return within the
// session timeout, or the brokers count this member as dead. The next generation begins when all handlers have
// returned. A handler that returns earlier ends the membership: Join returns its error, or one that says so if it had
// none. An error returned after the context has ended is taken for its echo.
//
// Join returns nil when ctx ends, after leaving the group, so that the partitions move at once. Leaving waits for a
// rebalance that is under way. It waits for brokers that are down, and returns an error for which NoTopic is true when
// the topic does not exist.
func (c *Client) Join(ctx context.Context, g GroupConfig, handle func(ctx context.Context, c Claim) error) error {
	if err := c.do(ctx, "joining group "+g.ID,
		func(ctx context.Context) error { return c.checkPartition(ctx, g.Topic, 0) }); err != nil {
		return unlessEnded(ctx, err)
	}
	group, err := kafka.NewConsumerGroup(c.groupConfig(g))
	if err != nil {
		return fmt.Errorf("joining group %s: %w", g.ID, err)
	}
	m := &member{c: c, g: g, handle: handle}
	err = m.run(ctx, group)
	_ = group.Close() // leaves; the library never returns an error here
	return unlessEnded(ctx, err)
}

func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil
	}
	return err
}

func (c *Client) groupConfig(g GroupConfig) kafka.ConsumerGroupConfig {
	return kafka.ConsumerGroupConfig{
		ID:             g.ID,
		Topics:         []string{g.Topic},
		Brokers:        c.cfg.Brokers,
		Dialer:         c.newDialer(),
		GroupBalancers: []kafka.GroupBalancer{kafka.RangeGroupBalancer{}},
		// so soon a member learns of a change in its group
		HeartbeatInterval: c.cfg.SessionTimeout / 20,
		SessionTimeout:    c.cfg.SessionTimeout,
		// a member that is stopping its handlers does not report, so more would be of no use
		RebalanceTimeout: c.cfg.SessionTimeout,
		JoinGroupBackoff: rejoinPause,
		// a member cut off from the broker ends its claims before the broker gives them away
		Timeout: c.cfg.SessionTimeout * 2 / 3,
	}
}

// member is this process in one group.
type member struct {
	c      *Client
	g      GroupConfig
	handle func(context.Context, Claim) error
}

// run takes part in one generation after the other.
func (m *member) run(ctx context.Context, group *kafka.ConsumerGroup) error {
	t := m.c.try("joining group " + m.g.ID)
	defer t.end()
	for t.Next(ctx) {
		generation, err := group.Next(ctx)
		if err != nil {
			if final(err) {
				return fmt.Errorf("joining group %s: %w", m.g.ID, err)
			}
			t.Failed(err)
			continue
		}
		t.succeeded()
		if err := m.take(ctx, generation); err != nil {
			return err
		}
	}
	return t.Err(ctx)
}

// take works through one generation and returns the error of a handler, or nil when the generation or ctx has ended.
func (m *member) take(ctx context.Context, generation *kafka.Generation) error {
	result := make(chan error, 1)
	// Once the function given to Start returns, the library takes the generation for over and joins the next. So it
	// stays until the library itself ends the generation, which it also does when the group is closed after an error.
	generation.Start(func(over context.Context) {
		result <- m.work(ctx, over, generation)
		<-over.Done()
	})
	return <-result
}

// work runs the handlers until the generation is over, ctx ends or one of them fails.
func (m *member) work(ctx, over context.Context, generation *kafka.Generation) error {
	partitions := partitionsOf(generation.Assignments[m.g.Topic])
	m.assigned(partitions)
	defer m.assigned(nil)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(over, cancel)()

	var handlers sync.WaitGroup
	failures := make(chan error, len(partitions))
	for _, p := range partitions {
		handlers.Go(func() {
			if err := m.serve(ctx, Claim{p}); err != nil {
				failures <- err
				cancel()
			}
		})
	}
	<-ctx.Done()
	handlers.Wait()
	close(failures)
	return <-failures
}

// serve runs one handler; an error while the claim lasts is a failure, and so is an early return.
func (m *member) serve(ctx context.Context, claim Claim) error {
	err := m.handle(ctx, claim)
	if lasts := ctx.Err() == nil; lasts && err == nil {
		return fmt.Errorf("group %s: the handler of partition %d returned before its claim ended", m.g.ID,
			claim.Partition)
	} else if lasts {
		return err
	}
	return nil
}

func (m *member) assigned(partitions []int) {
	m.c.metrics.assigned.WithLabelValues(m.g.ID).Set(float64(len(partitions)))
	if m.g.OnAssign != nil {
		m.g.OnAssign(partitions)
	}
}

func partitionsOf(assignments []kafka.PartitionAssignment) []int {
	partitions := make([]int, 0, len(assignments))
	for _, a := range assignments {
		partitions = append(partitions, a.ID)
	}
	slices.Sort(partitions)
	return partitions
}
