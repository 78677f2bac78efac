package sender

import (
	"context"
	"fmt"
	"strconv"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/txm"
	"perpkeeper/pkg/wire"
)

// deadLetters are the jobs that this keeper has given up: written to the dead letter topic as they were said, so that a
// copy to the partition of the job topic that the headers name says them again. It is used by one goroutine.
type deadLetters struct {
	client   *bus.Client
	cfg      wire.Config
	producer *bus.Producer
}

func newDeadLetters(client *bus.Client, cfg wire.Config) *deadLetters {
	return &deadLetters{client: client, cfg: cfg, producer: client.Producer(wire.DeadLetterTopic(cfg.ChainID))}
}

// Publish writes one batch. After an error it may be written or not; it may be published again.
func (d *deadLetters) Publish(ctx context.Context, ended []txm.Ended) error {
	var letters []bus.Record
	for _, e := range ended {
		if !e.Intent.GivenUp {
			continue
		}
		letter, err := deadLetter(e, d.cfg)
		if err != nil {
			return fmt.Errorf("writing a dead letter about %s: %w", e.Intent.Job.ID, err)
		}
		letters = append(letters, letter)
	}
	if len(letters) == 0 {
		return nil
	}
	const onlyPartition = 0
	if _, err := d.producer.Produce(ctx, onlyPartition, letters); err != nil {
		if bus.OutcomeUnknown(err) {
			d.producer = d.client.Producer(wire.DeadLetterTopic(d.cfg.ChainID))
		}
		return fmt.Errorf("publishing %d dead letters: %w", len(letters), err)
	}
	return nil
}

// deadLetter is the job's own record, with where it belongs and how it ended in further headers.
func deadLetter(e txm.Ended, cfg wire.Config) (bus.Record, error) {
	i := e.Intent
	r, err := wire.Encode([]byte(wire.JobTopic(cfg.ChainID)), wire.Job{Job: i.Job}, 0, 0)
	if err != nil {
		return r, err
	}
	tx := ""
	if e.Receipt != nil {
		tx = e.Receipt.TxHash.Hex()
	}
	r.Headers = append(r.Headers,
		bus.Header{Key: "source.partition",
			Value: []byte(strconv.Itoa(wire.SignerPartition(i.Signer, cfg.JobPartitions)))},
		bus.Header{Key: "source.key", Value: i.Signer[:]},
		bus.Header{Key: "job", Value: []byte(i.Job.ID)},
		bus.Header{Key: "arm", Value: []byte(strconv.FormatUint(uint64(i.Arm), 10))},
		bus.Header{Key: "outcome", Value: []byte(i.Outcome)},
		bus.Header{Key: "tx", Value: []byte(tx)},
		bus.Header{Key: "error", Value: []byte(wire.Legible(i.Reason))},
	)
	return r, nil
}
