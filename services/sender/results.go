package sender

import (
	"context"
	"fmt"
	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txm"
	"perpkeeper/pkg/wire"
)

// resultProducer writes results to the partitions of their jobs. It is used by one goroutine.
type resultProducer struct {
	client     *bus.Client
	topic      string
	partitions int
	producer   *bus.Producer
}

func newResultProducer(client *bus.Client, cfg wire.Config) *resultProducer {
	topic := wire.ResultTopic(cfg.ChainID)
	return &resultProducer{client: client, topic: topic, partitions: cfg.JobPartitions,
		producer: client.Producer(topic)}
}

// Publish writes one batch a partition. After an error some may be written and some not; all may be published again.
func (p *resultProducer) Publish(ctx context.Context, ended []txm.Ended) error {
	batches := map[int][]bus.Record{}
	for _, e := range ended {
		result := resultOf(e)
		rec, err := wire.Encode([]byte(result.JobID), wire.Result{Result: result}, 0, 0)
		if err != nil {
			return fmt.Errorf("publishing the result of %s: %w", result.JobID, err)
		}
		at := wire.Partition(chain.Keccak256([]byte(result.JobID)), p.partitions)
		batches[at] = append(batches[at], rec)
	}
	for partition, records := range batches {
		if _, err := p.producer.Produce(ctx, partition, records); err != nil {
			if bus.OutcomeUnknown(err) {
				p.producer = p.client.Producer(p.topic)
			}
			return fmt.Errorf("publishing %d results: %w", len(records), err)
		}
	}
	return nil
}

// settlementOf is what a transaction came to, as it can be told.
func settlementOf(r *txm.Receipt) *job.Settlement {
	if r.Settlement == nil {
		return nil
	}
	s := *r.Settlement
	s.BadDebtStep = wire.Legible(s.BadDebtStep)
	return &s
}

func resultOf(e txm.Ended) job.Result {
	i := e.Intent
	r := job.Result{
		JobID: i.Job.ID, Arm: i.Arm, Kind: i.Job.Kind, Key: i.Job.Key, Account: i.Job.Account, Outcome: i.Outcome,
		Reason: wire.Legible(i.Reason), Signer: i.Signer,
		Nonce: i.Nonce, BirthMs: i.Job.BirthMs, AtMs: uint64(e.EndedAt.UnixMilli()),
		Market: i.Job.Market, Collateral: i.Job.Collateral, IsLong: i.Job.IsLong, GivenUp: i.GivenUp,
	}
	if e.Receipt != nil {
		r.Settlement = settlementOf(e.Receipt)
		r.TxHash, r.Block, r.GasUsed, r.GasPrice = e.Receipt.TxHash, e.Receipt.Block, e.Receipt.GasUsed,
			e.Receipt.GasPrice
	}
	return r
}
