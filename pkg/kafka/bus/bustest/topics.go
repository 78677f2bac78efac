package bustest

import (
	"context"
	"strconv"
	"strings"
	"time"

	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
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
	if !bus.NoTopic(err) || !strings.Contains(err.Error(), "has 3 partitions and must have 4") ||
		!strings.Contains(err.Error(), missing.Name) {
		s.Fatalf("verify names not all that is wrong: %v", err)
	}
	if err := c.Ensure(s.ctx, []bus.TopicSpec{other}); err == nil || bus.NoTopic(err) {
		s.Fatalf("ensuring another number of partitions: %v", err)
	}
	if err := c.Ensure(s.ctx, []bus.TopicSpec{{Name: s.name()}}); err == nil {
		s.Fatal("a topic without partitions was created")
	}
	// Brokers take dots and underscores for the same, and refuse the second of two such names.
	twin := bus.TopicSpec{Name: strings.ReplaceAll(there.Name, ".", "_"), Partitions: 1,
		Replication: s.cluster.Replication}
	if err := c.Ensure(s.ctx, []bus.TopicSpec{twin}); err == nil || !strings.Contains(err.Error(), twin.Name) {
		s.Fatalf("a name that is refused: %v", err)
	}
}

// kept is a topic that is kept for ever, under any name.
func (s *site) kept() bus.TopicSpec {
	spec := bus.Specs(wire.Topic{Name: s.name(), Partitions: 2})[0]
	spec.Replication = s.cluster.Replication
	return spec
}

// A topic that somebody made or changed is refused in one line, with the command that mends it.
func wrongSettingsAreRefused(s *site) {
	c, w := s.client(), s.witness()
	for _, wrong := range []struct{ name, value, want string }{
		{"retention.ms", "3600000", "-1"},
		{"retention.bytes", "1000000", "-1"},
		{"cleanup.policy", "compact", "delete"},
		{"cleanup.policy", "compact,delete", "delete"},
		{"unclean.leader.election.enable", "true", "false"},
		{"max.message.bytes", "1048588", "10485760"},
		{"min.insync.replicas", strconv.Itoa(s.cluster.Replication - 2), strconv.Itoa(s.cluster.Replication - 1)},
		{"min.insync.replicas", strconv.Itoa(s.cluster.Replication + 1), strconv.Itoa(max(1, s.cluster.Replication-1))},
		{"compression.type", "gzip", "producer"},
		{"message.timestamp.type", "LogAppendTime", "CreateTime"},
	} {
		if strings.HasPrefix(wrong.value, "-") || wrong.value == "0" { // one copy has no number below it
			continue
		}
		spec := s.kept()
		s.must(c.Ensure(s.ctx, []bus.TopicSpec{spec}))
		w.set(spec.Name, wrong.name, wrong.value)
		s.eventually("the setting is known", func() bool { return c.Verify(s.ctx, []bus.TopicSpec{spec}) != nil })
		for what, err := range map[string]error{"Verify": c.Verify(s.ctx, []bus.TopicSpec{spec}),
			"Ensure": c.Ensure(s.ctx, []bus.TopicSpec{spec})} {
			if err == nil {
				s.Errorf("%s takes %s=%s", what, wrong.name, wrong.value)
				continue
			}
			for _, part := range []string{
				spec.Name, wrong.name + "=" + wrong.value, "kafka-configs.sh --bootstrap-server " +
					s.cluster.Brokers[0], "--alter --entity-type topics",
				"--entity-name " + spec.Name, "--add-config " + wrong.name + "=" + wrong.want,
			} {
				if !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "\n") {
					s.Errorf("%s: %q does not say %q in one line", what, err, part)
				}
			}
		}
		w.set(spec.Name, wrong.name, wrong.want)
		s.eventually("what the line says to do is taken",
			func() bool { return c.Verify(s.ctx, []bus.TopicSpec{spec}) == nil })
	}
}

// What keeps more, or for longer, than it has to is no reason to refuse a topic.
func settingsMayDoMore(s *site) {
	c, w := s.client(), s.witness()
	spec := bus.Specs(wire.Topic{Name: s.name(), Partitions: 1, Retention: time.Hour})[0]
	spec.Replication = s.cluster.Replication
	s.must(c.Ensure(s.ctx, []bus.TopicSpec{spec}))
	for _, more := range []struct{ name, value string }{
		{"retention.ms", "7200000"}, {"retention.ms", "-1"}, {"max.message.bytes", "20971520"},
		{"compression.type", "uncompressed"},
		{"min.insync.replicas", strconv.Itoa(s.cluster.Replication)},
	} {
		w.set(spec.Name, more.name, more.value)
		if err := c.Verify(s.ctx, []bus.TopicSpec{spec}); err != nil {
			s.Errorf("%s=%s: %v", more.name, more.value, err)
		}
	}
}

// A topic says by itself how many copies it has; more may be asked for. By the brokers' default, too, all copies but
// one must have a record.
func copiesAreCounted(s *site) {
	c := s.client()
	spec := s.kept()
	spec.Replication = 0
	s.must(c.Ensure(s.ctx, []bus.TopicSpec{spec}))
	s.must(c.Verify(s.ctx, []bus.TopicSpec{spec}))
	single := s.kept()
	single.Replication = 1
	s.must(c.Ensure(s.ctx, []bus.TopicSpec{single}))
	single.Replication = 0
	s.must(c.Verify(s.ctx, []bus.TopicSpec{single})) // as in a region of one broker
	single.Replication = 2
	if err := c.Ensure(s.ctx, []bus.TopicSpec{single}); err == nil ||
		!strings.Contains(err.Error(), "has 1 copies of a partition and must have 2") {
		s.Errorf("two copies are asked for, there is one: %v", err)
	}
}

// Services never create topics, though a broker may be set to create what is asked for.
func nothingCreatesTopics(s *site) {
	c, w := s.client(), s.witness()
	for what, use := range map[string]func(topic string) error{
		"produce": func(topic string) error {
			_, err := c.Producer(topic).
				Produce(s.ctx, 0, numbered(0, 1))
			return err
		},
		"read":   func(topic string) error { _, err := c.Reader(topic, 0, 0).Next(s.ctx); return err },
		"bounds": func(topic string) error { _, _, err := c.Bounds(s.ctx, topic, 0); return err },
		"verify": func(topic string) error { return c.Verify(s.ctx, []bus.TopicSpec{{Name: topic, Partitions: 1}}) },
		"join": func(topic string) error {
			return c.Join(s.ctx, bus.GroupConfig{ID: s.name(), Topic: topic},
				func(context.Context, bus.Claim) error { return nil })
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
