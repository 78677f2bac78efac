package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/segmentio/kafka-go"
)

// TopicSpec is a topic as the design wants it. Unless Config says otherwise, max.message.bytes is this client's
// Config.MaxBytes, and min.insync.replicas all copies but one.
type TopicSpec struct {
	Name        string
	Partitions  int               // fixed for the life of the topic: keys would change their partition
	Replication int               // copies of each partition; 0 = the brokers' default
	Config      map[string]string // Kafka's topic settings, as "retention.ms"
}

// Describe returns the number of partitions of a topic, from the brokers and not from memory. It waits for brokers that
// are down.
func (c *Client) Describe(ctx context.Context, topic string) (partitions int, err error) {
	err = c.do(ctx, "describing topic "+topic, func(ctx context.Context) error {
		partitions, err = c.describe(ctx, topic)
		return err
	})
	return partitions, err
}

// Reach asks every broker once, without waiting for those that are down: one of the configured ones for the others, and
// these at the addresses they name. It is a health check.
func (c *Client) Reach(ctx context.Context) (brokers int, err error) {
	_, all, err := c.metadata(ctx, c.seeds(), healthTopic)
	if err != nil && !NoTopic(err) && !Denied(err) {
		return 0, fmt.Errorf("asking %v for the cluster: %w", c.cfg.Brokers, err)
	}
	for _, b := range all {
		address := net.JoinHostPort(b.Host, strconv.Itoa(b.Port))
		_, _, err := c.metadata(ctx, kafka.TCP(address), healthTopic)
		if err != nil && !NoTopic(err) && !Denied(err) {
			return 0, fmt.Errorf("asking broker %d at %s: %w", b.ID, address, err)
		}
	}
	return len(all), nil
}

// healthTopic is no topic: the question is who answers.
const healthTopic = "perp.health"

// Verify checks that every topic exists with its number of partitions, at least its copies, and settings that serve,
// and names in one line all that do not. It waits for brokers that are down. Services call it when they start.
func (c *Client) Verify(ctx context.Context, specs []TopicSpec) error {
	var wrong topicsError
	for _, s := range specs {
		if err := c.verify(ctx, s); err != nil {
			wrong = append(wrong, err)
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	return wrong
}

// topicsError are the errors of several topics in one line.
type topicsError []error

func (e topicsError) Error() string {
	lines := make([]string, len(e))
	for i, err := range e {
		lines[i] = err.Error()
	}
	return strings.Join(lines, "; ")
}

func (e topicsError) Unwrap() []error { return e }

// Ensure creates the topics that are missing and waits until every broker knows them and each partition has a leader:
// brokers learn of a topic one after the other, and one that has not yet would tell a service that it does not exist.
// Topics that exist are only verified.
func (c *Client) Ensure(ctx context.Context, specs []TopicSpec) error {
	for _, s := range specs {
		if s.Name == "" || s.Partitions < 1 {
			return fmt.Errorf("topic %q with %d partitions cannot be created", s.Name, s.Partitions)
		}
		made := false
		err := c.do(ctx, "creating topic "+s.Name,
			func(ctx context.Context) error { return c.ensure(ctx, s, &made) })
		if err != nil {
			return err
		}
	}
	return c.Verify(ctx, specs)
}

// ensure notes in made that the topic was not there before. How many copies it has is the brokers' to say where the
// spec does not.
func (c *Client) ensure(ctx context.Context, s TopicSpec, made *bool) error {
	_, brokers, err := c.metadata(ctx, c.seeds(), s.Name)
	if NoTopic(err) {
		*made = true
		err = c.create(ctx, s)
	}
	if err != nil {
		return err
	}
	copies, err := c.awaitKnown(ctx, s.Name, brokers)
	if err != nil || !*made || s.Replication > 0 {
		return err
	}
	return c.alter(ctx, s.Name, minInSync, c.settings(s, copies)[minInSync])
}

// awaitKnown is nil once every broker knows the topic and each partition has a leader. It returns the copies of the
// partition that has the fewest.
func (c *Client) awaitKnown(ctx context.Context, name string, brokers []kafka.Broker) (copies int, err error) {
	for _, b := range brokers {
		topic, _, err := c.metadata(ctx, kafka.TCP(net.JoinHostPort(b.Host, strconv.Itoa(b.Port))), name)
		if NoTopic(err) {
			return 0, fmt.Errorf("broker %d does not know it yet", b.ID)
		}
		if err != nil {
			return 0, fmt.Errorf("asking broker %d: %w", b.ID, err)
		}
		if err := leaderless(topic); err != nil {
			return 0, err
		}
		copies = fewestCopies(topic)
	}
	return copies, nil
}

func (c *Client) create(ctx context.Context, s TopicSpec) error {
	settings := c.settings(s, s.Replication)
	config := kafka.TopicConfig{Topic: s.Name, NumPartitions: s.Partitions, ReplicationFactor: s.Replication}
	if s.Replication == 0 {
		config.ReplicationFactor = -1
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		config.ConfigEntries = append(config.ConfigEntries,
			kafka.ConfigEntry{ConfigName: name, ConfigValue: settings[name]})
	}
	answer, err := c.kafka.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{config}})
	if err != nil {
		return err
	}
	if err := answer.Errors[s.Name]; err != nil && !errors.Is(err, kafka.TopicAlreadyExists) {
		return err
	}
	return nil
}

func (c *Client) describe(ctx context.Context, topic string) (int, error) {
	t, _, err := c.metadata(ctx, c.seeds(), topic)
	return len(t.Partitions), err
}

// metadata asks one of the brokers at an address anew, and returns the topic and all brokers; the brokers also with
// errNoTopic. The library answers metadata requests from a cache, so this one goes through a transport of its own.
// That asks for the topic by its name, and not to create it: a list of all leaves out those that this user may not see.
func (c *Client) metadata(ctx context.Context, from net.Addr, topic string) (kafka.Topic, []kafka.Broker, error) {
	transport := c.newTransport()
	transport.MetadataTopics = []string{topic}
	defer transport.CloseIdleConnections()
	answer, err := c.newKafka(transport).Metadata(ctx, &kafka.MetadataRequest{Addr: from, Topics: []string{topic}})
	if err != nil {
		return kafka.Topic{}, nil, err
	}
	t := answer.Topics[0]
	if errors.Is(t.Error, kafka.UnknownTopicOrPartition) {
		return kafka.Topic{}, answer.Brokers, noTopic(topic, 0, 0)
	}
	return t, answer.Brokers, t.Error
}

// checkPartition returns errNoTopic when the brokers say that the partition does not exist.
func (c *Client) checkPartition(ctx context.Context, topic string, partition int) error {
	n, err := c.describe(ctx, topic)
	if err == nil && (partition < 0 || partition >= n) {
		return noTopic(topic, partition, n)
	}
	return err
}

func leaderless(topic kafka.Topic) error {
	for _, p := range topic.Partitions {
		if p.Error != nil || p.Leader.Host == "" {
			return fmt.Errorf("partition %d has no leader yet", p.ID)
		}
	}
	return nil
}

// Replicas is the replication state of a topic's partitions at this moment.
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
