package bus

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	"github.com/segmentio/kafka-go"
)

// TopicSpec is a topic as the design wants it.
type TopicSpec struct {
	Name        string
	Partitions  int               // fixed for the life of the topic: keys would change their partition
	Replication int               // copies of each partition; 0 = the brokers' default
	Config      map[string]string // Kafka's topic settings, as "retention.ms"; max.message.bytes is Config.MaxBytes unless given here
}

// Describe returns the number of partitions of a topic, from the brokers and not from memory. It waits for brokers that are down.
func (c *Client) Describe(ctx context.Context, topic string) (partitions int, err error) {
	err = c.do(ctx, "describe", "describing topic "+topic, func(ctx context.Context) error {
		partitions, err = c.describe(ctx, topic)
		return err
	})
	return partitions, err
}

// Reach asks every broker once, without waiting for those that are down: one of the configured ones for the others, and these at the addresses they name. It
// is a health check.
func (c *Client) Reach(ctx context.Context) (brokers int, err error) {
	_, all, err := c.metadata(ctx, c.seeds(), healthTopic)
	if err != nil && !NoTopic(err) {
		return 0, fmt.Errorf("asking %v for the cluster: %w", c.cfg.Brokers, err)
	}
	for _, b := range all {
		address := net.JoinHostPort(b.Host, strconv.Itoa(b.Port))
		if _, _, err := c.metadata(ctx, kafka.TCP(address), healthTopic); err != nil && !NoTopic(err) {
			return 0, fmt.Errorf("asking broker %d at %s: %w", b.ID, address, err)
		}
	}
	return len(all), nil
}

// healthTopic is no topic: the question is who answers.
const healthTopic = "perp.health"

// Verify checks that every topic exists with its number of partitions, and names all that do not. Services call it when they start.
func (c *Client) Verify(ctx context.Context, specs []TopicSpec) error {
	problems := make([]error, 0, len(specs))
	for _, s := range specs {
		n, err := c.Describe(ctx, s.Name)
		if err == nil && n != s.Partitions {
			err = fmt.Errorf("topic %s has %d partitions and must have %d (the count is fixed: use another topic, or correct the configuration)",
				s.Name, n, s.Partitions)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// Ensure creates the topics that are missing and waits until every broker knows them and each partition has a leader: brokers learn of a topic
// one after the other, and one that has not yet would tell a service that it does not exist. Topics that exist are only verified.
func (c *Client) Ensure(ctx context.Context, specs []TopicSpec) error {
	for _, s := range specs {
		if s.Name == "" || s.Partitions < 1 {
			return fmt.Errorf("topic %q with %d partitions cannot be created", s.Name, s.Partitions)
		}
		err := c.do(ctx, "create topic", "creating topic "+s.Name, func(ctx context.Context) error { return c.ensure(ctx, s) })
		if err != nil {
			return err
		}
	}
	return c.Verify(ctx, specs)
}

func (c *Client) ensure(ctx context.Context, s TopicSpec) error {
	_, brokers, err := c.metadata(ctx, c.seeds(), s.Name)
	if NoTopic(err) {
		err = c.create(ctx, s)
	}
	if err != nil {
		return err
	}
	for _, b := range brokers {
		topic, _, err := c.metadata(ctx, kafka.TCP(net.JoinHostPort(b.Host, strconv.Itoa(b.Port))), s.Name)
		if NoTopic(err) {
			return fmt.Errorf("broker %d does not know it yet", b.ID)
		}
		if err != nil {
			return fmt.Errorf("asking broker %d: %w", b.ID, err)
		}
		if err := leaderless(topic); err != nil {
			return err
		}
	}
	return nil
}

func (c *Client) create(ctx context.Context, s TopicSpec) error {
	settings := map[string]string{"max.message.bytes": strconv.Itoa(c.cfg.MaxBytes)}
	maps.Copy(settings, s.Config)
	config := kafka.TopicConfig{Topic: s.Name, NumPartitions: s.Partitions, ReplicationFactor: s.Replication}
	if s.Replication == 0 {
		config.ReplicationFactor = -1
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		config.ConfigEntries = append(config.ConfigEntries, kafka.ConfigEntry{ConfigName: name, ConfigValue: settings[name]})
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

// metadata asks one of the brokers at an address anew, and returns the topic and all brokers; the brokers also with a noTopicError. The library
// answers metadata requests from a cache, so this one goes through a transport of its own. That asks for all topics, which is as it should
// be: asking for one by name lets brokers create it.
func (c *Client) metadata(ctx context.Context, from net.Addr, topic string) (kafka.Topic, []kafka.Broker, error) {
	transport := c.newTransport()
	defer transport.CloseIdleConnections()
	answer, err := c.newKafka(transport).Metadata(ctx, &kafka.MetadataRequest{Addr: from, Topics: []string{topic}})
	if err != nil {
		return kafka.Topic{}, nil, err
	}
	t := answer.Topics[0]
	if errors.Is(t.Error, kafka.UnknownTopicOrPartition) {
		return kafka.Topic{}, answer.Brokers, &noTopicError{topic: topic}
	}
	return t, answer.Brokers, t.Error
}

// checkPartition returns a noTopicError when the brokers say that the partition does not exist.
func (c *Client) checkPartition(ctx context.Context, topic string, partition int) error {
	n, err := c.describe(ctx, topic)
	if err == nil && (partition < 0 || partition >= n) {
		return &noTopicError{topic: topic, partition: partition, partitions: n}
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
