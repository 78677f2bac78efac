package sender

import (
	"strconv"

	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/txmgr/txm"
)

// newDeadLetters publishes the jobs that this keeper has given up: written to the dead letter topic as they were
// published, so that a copy to the partition of the job topic that the headers name publishes them again.
func newDeadLetters(client *bus.Client, cfg wire.Config) *publisher {
	topic := wire.DeadLetterTopic(cfg.ChainID)
	return &publisher{client, client.Producer(topic), topic, "dead letters",
		func(e txm.Ended) (rec bus.Record, partition int, is bool, err error) {
			if is = e.Intent.GivenUp; is {
				rec, err = deadLetter(e, cfg)
			}
			return rec, 0, is, err
		}}
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
		bus.Header{Key: "attempt", Value: []byte(strconv.FormatUint(uint64(i.Attempt), 10))},
		bus.Header{Key: "outcome", Value: []byte(i.Outcome)},
		bus.Header{Key: "tx", Value: []byte(tx)},
		bus.Header{Key: "error", Value: []byte(wire.Legible(i.Reason))},
	)
	return r, nil
}
