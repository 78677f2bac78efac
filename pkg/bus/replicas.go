package bus

import (
	"context"
	"fmt"
)

// Replicas is how the partitions of a topic stand at this moment.
type Replicas struct {
	Partitions int
	// Copies and InSync are those of the partition that lacks the most.
	Copies, InSync int
	Leaderless     int // partitions that nobody can write to or read from
}

// Replicas asks one of the brokers about a topic, without waiting for those that are down. NoTopic(err) where there is
// none.
func (c *Client) Replicas(ctx context.Context, topic string) (Replicas, error) {
	t, _, err := c.metadata(ctx, c.seeds(), topic)
	if err != nil {
		return Replicas{}, fmt.Errorf("asking %v for topic %s: %w", c.cfg.Brokers, topic, err)
	}
	r := Replicas{Partitions: len(t.Partitions)}
	for i, p := range t.Partitions {
		if p.Error != nil || p.Leader.Host == "" {
			r.Leaderless++
		}
		if i == 0 || len(p.Replicas)-len(p.Isr) > r.Copies-r.InSync {
			r.Copies, r.InSync = len(p.Replicas), len(p.Isr)
		}
	}
	return r, nil
}
