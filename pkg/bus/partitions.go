package bus

import (
	"context"
	"fmt"

	"github.com/segmentio/kafka-go"
)

// Raise gives a topic as many partitions as its spec says, and tells how many it had. Where it has as many or more it
// changes nothing. Records stay where they are, and those to come may stand in another partition than earlier ones of
// their key: this is for topics whose readers can live with that.
func (c *Client) Raise(ctx context.Context, s TopicSpec) (had int, err error) {
	err = c.do(ctx, "create partitions", "raising the partitions of topic "+s.Name, func(ctx context.Context) error {
		topic, _, err := c.metadata(ctx, c.seeds(), s.Name)
		if err != nil {
			return err
		}
		have := len(topic.Partitions)
		if had == 0 {
			had = have
		}
		if have < s.Partitions {
			answer, err := c.kafka.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
				Topics: []kafka.TopicPartitionsConfig{{Name: s.Name, Count: int32(s.Partitions)}}})
			if err == nil {
				err = answer.Errors[s.Name]
			}
			if err == nil {
				topic, _, err = c.metadata(ctx, c.seeds(), s.Name)
			}
			if err != nil {
				return err
			}
		}
		if have = len(topic.Partitions); have < s.Partitions {
			return fmt.Errorf("the brokers know of %d partitions yet", have)
		}
		return leaderless(topic)
	})
	return had, err
}
