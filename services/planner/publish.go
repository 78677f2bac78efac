package planner

import (
	"context"
	"fmt"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
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

// mostAtOnce bounds a batch: brokers refuse those that are too large, and after a crash of the markets there may be
// tens of thousands of jobs. A job takes less than a kilobyte.
const mostAtOnce = 500

// publish writes jobs, in their order, in few batches a partition. After an error it is unknown which of them arrived;
// they may all be published again, because the same job twice is one job.
func (p *publisher) publish(ctx context.Context, jobs []job.Job) error {
	batches := make([][]bus.Record, p.partitions)
	for _, j := range jobs {
		record, err := wire.Encode(j.Signer[:], wire.Job{Job: j}, 0, 0)
		if err != nil {
			return fmt.Errorf("publishing %s: %w", j.ID, err)
		}
		partition := wire.SignerPartition(j.Signer, p.partitions)
		batches[partition] = append(batches[partition], record)
		if len(batches[partition]) == mostAtOnce {
			if err := p.write(ctx, partition, batches[partition]); err != nil {
				return err
			}
			batches[partition] = nil
		}
	}
	for partition, records := range batches {
		if err := p.write(ctx, partition, records); err != nil {
			return err
		}
	}
	return nil
}

func (p *publisher) write(ctx context.Context, partition int, records []bus.Record) error {
	if len(records) == 0 {
		return nil
	}
	if _, err := p.producer.Produce(ctx, partition, records); err != nil {
		if bus.OutcomeUnknown(err) {
			p.producer = p.client.Producer(p.topic)
		}
		return fmt.Errorf("publishing %d jobs: %w", len(records), err)
	}
	return nil
}
