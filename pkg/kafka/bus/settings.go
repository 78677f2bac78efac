package bus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/segmentio/kafka-go"

	"perpkeeper/pkg/kafka/wire"
)

// Specs are topics of a keeper as brokers have to hold them, with copies by the brokers' default.
func Specs(topics ...wire.Topic) []TopicSpec {
	specs := make([]TopicSpec, len(topics))
	for i, t := range topics {
		specs[i] = TopicSpec{Name: t.Name, Partitions: t.Partitions, Config: t.Settings()}
	}
	return specs
}

// The settings that depend on the cluster, by Kafka's names.
const (
	maxMessageBytes = "max.message.bytes"
	minInSync       = "min.insync.replicas"
)

// inSync is how many copies must have a record before it counts as written: all but one, so that one broker may be away
// and none of what was acknowledged stands on one alone.
func inSync(copies int) int { return max(1, copies-1) }

// settings are what a topic has to be set to if it is made, or found, with so many copies; 0 = not known.
func (c *Client) settings(s TopicSpec, copies int) map[string]string {
	settings := map[string]string{maxMessageBytes: strconv.Itoa(c.cfg.MaxBytes)}
	if copies > 0 {
		settings[minInSync] = strconv.Itoa(inSync(copies))
	}
	maps.Copy(settings, s.Config)
	return settings
}

// orMore are the settings of which a larger number serves as well; -1 has no end.
var orMore = map[string]bool{"retention.ms": true, "retention.bytes": true, maxMessageBytes: true, minInSync: true}

// serves reports whether a topic with one value of a setting does what is wanted of it. Brokers that take compression
// off keep the same records under the same offsets, in many times the bytes; a batch is no larger by that than
// MaxBytes.
func serves(name, have, want string) bool {
	switch {
	case have == want || name == "compression.type" && want == "producer" && have == "uncompressed":
		return true
	case orMore[name]:
		h, errHave := strconv.ParseInt(have, 10, 64)
		w, errWant := strconv.ParseInt(want, 10, 64)
		return errHave == nil && errWant == nil && w >= 0 && (h == -1 || h >= w)
	default:
		return false
	}
}

// wrongTopicError reports, in one line, what is wrong with a topic, and what to do.
type wrongTopicError struct {
	topic    string
	problems []string
	remedy   string
}

func (e *wrongTopicError) Error() string {
	return fmt.Sprintf("topic %s %s (%s)", e.topic, strings.Join(e.problems, ", and "), e.remedy)
}

// verify compares a topic with what is wanted of it.
func (c *Client) verify(ctx context.Context, s TopicSpec) error {
	var topic kafka.Topic
	var have map[string]string
	err := c.do(ctx, "describing topic "+s.Name, func(ctx context.Context) (err error) {
		if topic, _, err = c.metadata(ctx, c.seeds(), s.Name); err != nil {
			return err
		}
		have, err = c.describeSettings(ctx, s.Name)
		return err
	})
	if err != nil {
		return err
	}
	copies := fewestCopies(topic)
	switch n := len(topic.Partitions); {
	case n != s.Partitions:
		return &wrongTopicError{
			s.Name, []string{fmt.Sprintf("has %d partitions and must have %d", n, s.Partitions)},
			"correct the configuration; a number is never lowered, and raised as docs/runbooks/partitions.md says",
		}
	case copies < s.Replication:
		return &wrongTopicError{
			s.Name, []string{fmt.Sprintf("has %d copies of a partition and must have %d", copies, s.Replication)},
			"add copies with kafka-reassign-partitions.sh, or set keeperctl.replication to what there is",
		}
	default:
		return c.judge(s, copies, have)
	}
}

// judge names every setting that does not serve. Settings that brokers do not name are ones they do not have.
func (c *Client) judge(s TopicSpec, copies int, have map[string]string) error {
	var problems, fixes []string
	wanted := c.settings(s, copies)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		value, known := have[name]
		want := wanted[name]
		tooMany := name == minInSync && atoi(value) > copies // no write would ever be acknowledged
		if !known || serves(name, value, want) && !tooMany {
			continue
		}
		least := ""
		if orMore[name] && want != "-1" && !tooMany {
			least = "at least "
		}
		problems = append(problems, fmt.Sprintf("has %s=%s and must have %s%s", name, value, least, want))
		fixes = append(fixes, name+"="+want)
	}
	if len(problems) == 0 {
		return nil
	}
	return &wrongTopicError{s.Name, problems, c.alterCommand(s.Name, fixes)}
}

// atoi is 0 for what is no number.
func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

func fewestCopies(topic kafka.Topic) int {
	copies := make([]int, len(topic.Partitions))
	for i, p := range topic.Partitions {
		copies[i] = len(p.Replicas)
	}
	return slices.Min(copies)
}

// alterCommand is what an operator types to fix settings.
func (c *Client) alterCommand(topic string, settings []string) string {
	login := ""
	if c.tls != nil || c.sasl != nil {
		login = " --command-config admin.properties"
	}
	return fmt.Sprintf("kafka-configs.sh --bootstrap-server %s%s --alter --entity-type topics --entity-name %s "+
		"--add-config %s",
		strings.Join(c.cfg.Brokers, ","), login, topic, strings.Join(settings, ","))
}

// describeSettings asks the brokers for a topic's settings, by name.
func (c *Client) describeSettings(ctx context.Context, topic string) (map[string]string, error) {
	answer, err := c.kafka.DescribeConfigs(ctx, &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{ResourceType: kafka.ResourceTypeTopic, ResourceName: topic}},
	})
	if err != nil {
		return nil, fmt.Errorf("asking for its settings: %w", err)
	}
	settings := map[string]string{}
	for _, r := range answer.Resources {
		if r.Error != nil {
			return nil,
				fmt.Errorf("asking for its settings (this user needs the right DescribeConfigs on it: kafka-acls.sh "+
					"--add "+
					"--operation DescribeConfigs --topic %s): %w", topic, r.Error)
		}
		for _, e := range r.ConfigEntries {
			settings[e.ConfigName] = e.ConfigValue
		}
	}
	return settings, nil
}

// alter sets one setting of a topic.
func (c *Client) alter(ctx context.Context, topic, name, value string) error {
	answer, err := c.kafka.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{{Name: name, Value: value}},
		}},
	})
	if err != nil {
		return fmt.Errorf("setting %s: %w", name, err)
	}
	for _, r := range answer.Resources {
		if r.Error != nil {
			return fmt.Errorf("setting %s: %w", name, r.Error)
		}
	}
	return nil
}
