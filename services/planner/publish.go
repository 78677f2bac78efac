package planner

import (
	"context"
	"fmt"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/wire"
)

// publisher writes jobs to the partitions of their signers.
type publisher struct {
	client     *bus.Client
	topic      string
	partitions int
	producer   *bus.Producer
}

func newPublisher(client *bus.Client, cfg wire.Config) *publisher {
	topic := wire.JobTopic(cfg.ChainID)
	return &publisher{client: client, topic: topic, partitions: cfg.JobPartitions, producer: client.Producer(topic)}
}

// publish writes jobs, in their order, one batch a partition. After an error it is unknown which of them arrived; they may all be
// published again, because the same job twice is one job.
func (p *publisher) publish(ctx context.Context, jobs []job.Job) error {
	batches := make([][]bus.Record, p.partitions)
	for _, j := range jobs {
		record, err := wire.Encode(j.Signer[:], wire.Job{Job: j}, 0, 0)
		if err != nil {
			return fmt.Errorf("publishing %s: %w", j.ID, err)
		}
		partition := wire.SignerPartition(j.Signer, p.partitions)
		batches[partition] = append(batches[partition], record)
	}
	for partition, records := range batches {
		if len(records) == 0 {
			continue
		}
		if _, err := p.producer.Produce(ctx, partition, records); err != nil {
			if bus.OutcomeUnknown(err) {
				p.producer = p.client.Producer(p.topic)
			}
			return fmt.Errorf("publishing %d jobs: %w", len(records), err)
		}
	}
	return nil
}
