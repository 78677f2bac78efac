package sender

import (
	"context"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/txmgr/txm"
)

// publisher writes what has ended to a topic. It is used by one goroutine.
type publisher struct {
	client   *bus.Client
	producer *bus.Producer
	topic    string
	what     string // of what is published, for people
	// record is what is written of an attempt, and to which partition; false for nothing.
	record func(e txm.Ended) (rec bus.Record, partition int, is bool, err error)
}

func newResults(client *bus.Client, cfg wire.Config) *publisher {
	topic := wire.ResultTopic(cfg.ChainID)
	return &publisher{client, client.Producer(topic), topic, "results",
		func(e txm.Ended) (rec bus.Record, partition int, is bool, err error) {
			id := []byte(e.Intent.Job.ID)
			rec, err = wire.Encode(id, wire.Result{Result: resultOf(e)}, 0, 0)
			return rec, wire.Partition(chain.Keccak256(id), cfg.JobPartitions), true, err
		}}
}

// Publish writes one batch a partition. After an error some may be written and some not; all may be published again.
func (p *publisher) Publish(ctx context.Context, ended []txm.Ended) error {
	batches := map[int][]bus.Record{}
	for _, e := range ended {
		rec, partition, is, err := p.record(e)
		if err != nil {
			return fmt.Errorf("writing %s of %s: %w", p.what, e.Intent.Job.ID, err)
		}
		if is {
			batches[partition] = append(batches[partition], rec)
		}
	}
	for partition, records := range batches {
		if _, err := p.producer.Produce(ctx, partition, records); err != nil {
			if bus.OutcomeUnknown(err) {
				p.producer = p.client.Producer(p.topic)
			}
			return fmt.Errorf("publishing %d %s: %w", len(records), p.what, err)
		}
	}
	return nil
}

// settlementOf is what a transaction came to, as it is published.
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
		JobID: i.Job.ID, Attempt: i.Attempt, Kind: i.Job.Kind, Key: i.Job.Key, Account: i.Job.Account,
		Outcome: i.Outcome,
		Reason:  wire.Legible(i.Reason), Signer: i.Signer,
		Nonce: i.Nonce, DueSinceMs: i.Job.DueSinceMs, AtMs: uint64(e.EndedAt.UnixMilli()),
		Market: i.Job.Market, Collateral: i.Job.Collateral, IsLong: i.Job.IsLong, GivenUp: i.GivenUp,
	}
	if e.Receipt != nil {
		r.Settlement = settlementOf(e.Receipt)
		r.TxHash, r.Block, r.GasUsed, r.GasPrice = e.Receipt.TxHash, e.Receipt.Block, e.Receipt.GasUsed,
			e.Receipt.GasPrice
	}
	return r
}
