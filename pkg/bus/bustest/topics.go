package bustest

import (
	"context"
	"strings"

	"perpkeeper/pkg/bus"
)

func topicsAreVerified(s *site) {
	c := s.client()
	there := bus.TopicSpec{Name: s.topic(3), Partitions: 3, Replication: s.cluster.Replication}
	n, err := c.Describe(s.ctx, there.Name)
	s.must(err)
	if n != 3 {
		s.Fatalf("%d partitions, want 3", n)
	}
	s.must(c.Verify(s.ctx, []bus.TopicSpec{there}))
	s.must(c.Ensure(s.ctx, []bus.TopicSpec{there})) // a second time changes nothing

	missing := bus.TopicSpec{Name: s.name(), Partitions: 1}
	if _, err := c.Describe(s.ctx, missing.Name); !bus.NoTopic(err) || !strings.Contains(err.Error(), missing.Name) {
		s.Fatalf("describing a missing topic: %v", err)
	}
	other := there
	other.Partitions = 4
	err = c.Verify(s.ctx, []bus.TopicSpec{missing, other})
	if !bus.NoTopic(err) || !strings.Contains(err.Error(), "has 3 partitions and must have 4") || !strings.Contains(err.Error(), missing.Name) {
		s.Fatalf("verify names not all that is wrong: %v", err)
	}
	if err := c.Ensure(s.ctx, []bus.TopicSpec{other}); err == nil || bus.NoTopic(err) {
		s.Fatalf("ensuring another number of partitions: %v", err)
	}
	if err := c.Ensure(s.ctx, []bus.TopicSpec{{Name: s.name()}}); err == nil {
		s.Fatal("a topic without partitions was created")
	}
	// Brokers take dots and underscores for the same, and refuse the second of two such names.
	twin := bus.TopicSpec{Name: strings.ReplaceAll(there.Name, ".", "_"), Partitions: 1, Replication: s.cluster.Replication}
	if err := c.Ensure(s.ctx, []bus.TopicSpec{twin}); err == nil || !strings.Contains(err.Error(), twin.Name) {
		s.Fatalf("a name that is refused: %v", err)
	}
}

// Services never create topics, though a broker may be set to create what is asked for.
func nothingCreatesTopics(s *site) {
	c, w := s.client(), s.witness()
	for what, use := range map[string]func(topic string) error{
		"produce": func(topic string) error { _, err := c.Producer(topic).Produce(s.ctx, 0, numbered(0, 1)); return err },
		"read":    func(topic string) error { _, err := c.Reader(topic, 0, 0).Next(s.ctx); return err },
		"bounds":  func(topic string) error { _, _, err := c.Bounds(s.ctx, topic, 0); return err },
		"verify":  func(topic string) error { return c.Verify(s.ctx, []bus.TopicSpec{{Name: topic, Partitions: 1}}) },
		"join": func(topic string) error {
			return c.Join(s.ctx, bus.GroupConfig{ID: s.name(), Topic: topic}, func(context.Context, bus.Claim) error { return nil })
		},
	} {
		topic := s.name()
		if err := use(topic); !bus.NoTopic(err) {
			s.Errorf("%s: got %v", what, err)
		}
		if w.exists(topic) {
			s.Errorf("%s created the topic", what)
		}
	}
}
