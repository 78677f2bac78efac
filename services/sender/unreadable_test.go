package sender

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/setting/secret"
	"perpkeeper/test/rig"
)

// Records that nobody can read hold nothing up: the job and the prices behind them are read, at every start, and each
// is a dead letter once.
func TestUnreadableRecordsArePassedOver(t *testing.T) {
	s := newSite(t)
	by, key := s.keeper(0)
	jobs, prices := wire.JobTopic(s.cfg.Keeper.ChainID), wire.PriceTopic(s.cfg.Keeper.ChainID)
	stranger, err := wire.Encode(by[:], wire.Result{}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	write := func(topic string, partition int, records ...bus.Record) {
		t.Helper()
		if _, err := s.client.Producer(topic).Produce(t.Context(), partition, records); err != nil {
			t.Fatal(err)
		}
	}
	garbage := bus.Record{Key: by[:], Value: []byte("garbage")}
	unfit, err := wire.Encode(by[:],
		wire.Job{Job: job.Job{ID: "of a time that never comes", Kind: job.Order, Signer: by,
			DueSinceMs: 1<<64 - 1}}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	first := s.orderJob(s.marketOrder(100), by)
	write(jobs, wire.SignerPartition(by, s.cfg.Keeper.JobPartitions), garbage, stranger, unfit)
	s.say(first)
	const letters = 5
	for i := range 3 { // the feed's own producer stands beside ours, so these are written between its batches
		if i == 1 {
			write(prices, 0, garbage, stranger)
		}
		r := s.sender([]secret.String{key})
		j := s.orderJob(s.marketOrder(100), by)
		s.say(j)
		for _, waits := range []job.Job{first, j} {
			s.eventually("the job behind the records is done", func(context.Context) bool {
				found := s.results(waits.ID)
				return len(found) > 0 && found[0].Outcome == job.Done
			})
		}
		if i > 0 {
			s.eventually("all of them are dead letters",
				func(context.Context) bool { return len(s.letters()) >= letters })
			if got := testutil.ToFloat64(r.metrics.unreadable.WithLabelValues(prices)); got != 2 {
				t.Errorf("start %d: %v price records are counted", i+1, got)
			}
		}
		if got := testutil.ToFloat64(r.metrics.unreadable.WithLabelValues(jobs)); got != 3 {
			t.Errorf("start %d: %v job records are counted", i+1, got)
		}
		r.stop()
	}
	if got := s.letters(); len(got) != letters {
		t.Errorf("%d dead letters, want %d: %v", len(got), letters, got)
	}
}

// letters are the topics that dead letters are of.
func (s *site) letters() (topics []string) {
	s.t.Helper()
	for _, r := range rig.Records(s.t, s.client, wire.DeadLetterTopic(s.cfg.Keeper.ChainID), 0) {
		topics = append(topics, string(r.Key))
	}
	return topics
}
