package sender

import (
	"context"
	"fmt"
	"strings"

	"github.com/rs/zerolog"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/failpoint"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/lease"
	"perpkeeper/pkg/txm"
	"perpkeeper/pkg/wire"
)

// record publishes what has ended to the result topic, and what was given up to the dead letters, and notes that it
// did: at least once each.
type record struct {
	tenure   *lease.Tenure
	store    txm.Reports
	producer teller // of all that has ended
	letters  teller // of what was given up
	metrics  *Metrics
	log      zerolog.Logger
}

// teller tells the world of arms that have ended. After an error some may be told of and some not; all may be told of
// again.
type teller interface {
	publish(ctx context.Context, ended []txm.Ended) error
}

// pass publishes until nothing is left.
func (r record) pass(ctx context.Context) error {
	const atOnce = 100
	for {
		ended, err := r.store.Unreported(ctx, r.tenure.Fence().Signer, atOnce)
		if err != nil || len(ended) == 0 {
			return err
		}
		failpoint.Hit("sender.report.before")
		if err := r.producer.publish(ctx, ended); err != nil {
			return err
		}
		failpoint.Hit("sender.report.published")
		if err := r.letters.publish(ctx, ended); err != nil {
			return err
		}
		ids := make([]int64, len(ended))
		for i, e := range ended {
			ids[i] = e.Intent.ID
		}
		if err := r.store.Reported(ctx, r.tenure.Fence(), ids); err != nil {
			return err
		}
		failpoint.Hit("sender.report.after")
		r.tell(ended)
	}
}

func (r record) tell(ended []txm.Ended) {
	for _, e := range ended {
		i := e.Intent
		r.metrics.jobs.WithLabelValues(string(i.Job.Kind), string(i.Outcome)).Inc()
		if i.GivenUp {
			r.metrics.givenUp.WithLabelValues(string(i.Job.Kind)).Inc()
		}
		level := zerolog.InfoLevel
		if i.Outcome.Failure() || i.Outcome == job.Foreign {
			level = zerolog.ErrorLevel
		}
		r.log.WithLevel(level).Str("job", i.Job.ID).Uint32("arm", i.Arm).Str("state", string(i.State)).
			Str("outcome", string(i.Outcome)).
			Str("reason", i.Reason).Bool("given_up", i.GivenUp).Msg("ended")
	}
}

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

// publish writes one batch a partition. After an error some may be written and some not; all may be published again.
func (p *resultProducer) publish(ctx context.Context, ended []txm.Ended) error {
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

// mostReason is how many bytes of a reason are told.
const mostReason = 1024

// legible is a reason as it can be told: contracts give any bytes, and messages hold text of a certain length.
func legible(reason string) string {
	valid := strings.ToValidUTF8(reason, "\uFFFD")
	return strings.ToValidUTF8(valid[:min(len(valid), mostReason)], "")
}

// settlementOf is what a transaction came to, as it can be told.
func settlementOf(r *txm.Receipt) *job.Settlement {
	if r.Settlement == nil {
		return nil
	}
	s := *r.Settlement
	s.BadDebtStep = legible(s.BadDebtStep)
	return &s
}

func resultOf(e txm.Ended) job.Result {
	i := e.Intent
	r := job.Result{
		JobID: i.Job.ID, Arm: i.Arm, Kind: i.Job.Kind, Key: i.Job.Key, Account: i.Job.Account, Outcome: i.Outcome,
		Reason: legible(i.Reason), Signer: i.Signer,
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
