package sender

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/wire"
)

// notifier tells people of results (LIQ-12). It reads the result topic as anybody else would, so that no receiver,
// however slow, is in the way of a transaction. Each audience has a place of its own in the topic: one that is away
// keeps nothing from the other, and hears everything when it is back.
//
// At least once: an offset is remembered after what is below it was delivered. What a receiver has refused as often as
// is configured is put with the dead letters, as the record it was.
type notifier struct {
	cfg     notify.Config
	keeper  wire.Config
	client  *bus.Client
	told    progress
	metrics *notifyMetrics
	log     zerolog.Logger
}

// progress remembers how far a partition was told to an audience.
type progress interface {
	Next(ctx context.Context, audience, topic string, partition int) (next int64, known bool, err error)
	Note(ctx context.Context, audience, topic string, partition int, next int64) error
}

// notifyMetrics count what people were told.
type notifyMetrics struct {
	messages *prometheus.CounterVec
	failing  *prometheus.GaugeVec
	stopped  *prometheus.GaugeVec
}

func newNotifyMetrics(reg prometheus.Registerer) *notifyMetrics {
	m := &notifyMetrics{
		messages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "notify_messages_total",
			Help: "Messages to an audience, by what became of them: delivered; refused, or unreadable (dead letters).",
		}, []string{"audience", "result"}),
		failing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "notify_failed_tries",
			Help: "Tries in a row that the receiver of an audience has not taken the message that is due; 0 while " +
				"all is well.",
		}, []string{"audience", "partition"}),
		stopped: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "notify_stopped",
			Help: "1 when an audience is told of nothing any more until this process is started again; its log says " +
				"why.",
		}, []string{"audience"}),
	}
	reg.MustRegister(m.messages, m.failing, m.stopped)
	return m
}

// Run tells every audience that has a URL until ctx ends. What it cannot go on with is logged and counted, and is no
// reason to stop sending transactions.
func (n *notifier) Run(ctx context.Context) error {
	var group errgroup.Group
	for _, audience := range notify.Audiences() {
		if !n.cfg.URL(audience).IsSet() {
			continue
		}
		group.Go(func() error {
			n.metrics.stopped.WithLabelValues(string(audience)).Set(0)
			if err := n.tell(ctx, audience); err != nil && ctx.Err() == nil {
				n.metrics.stopped.WithLabelValues(string(audience)).Set(1)
				n.log.Error().Bool("critical", true).Err(err).Str("audience", string(audience)).
					Msg("nobody of this audience is told of anything any more, until this process is started again")
			}
			return nil
		})
	}
	<-ctx.Done()
	return group.Wait()
}

// tell follows the partitions that this process has of an audience's group.
func (n *notifier) tell(ctx context.Context, a notify.Audience) error {
	poster := notify.NewPoster(n.cfg, a)
	defer poster.Close()
	id := n.keeper.ChainID
	group := bus.GroupConfig{ID: fmt.Sprintf("perp.%d.notify.%s", id, a), Topic: wire.ResultTopic(id)}
	return n.client.Join(ctx, group, func(ctx context.Context, c bus.Claim) error {
		f := &errand{notifier: n, audience: a, poster: poster, partition: c.Partition, topic: group.Topic}
		defer n.metrics.failing.DeleteLabelValues(string(a), strconv.Itoa(c.Partition))
		return f.follow(ctx, c.Committed)
	})
}

// errand is one partition of the results on its way to one audience.
type errand struct {
	*notifier
	audience  notify.Audience
	poster    *notify.Poster
	topic     string
	partition int
}

func (t *errand) follow(ctx context.Context, committed func(int64)) error {
	offset, err := t.begin(ctx)
	if err != nil {
		return err
	}
	reader := t.client.Reader(t.topic, t.partition, offset)
	for {
		records, err := reader.NextBatch(ctx, 100)
		if err != nil {
			return fmt.Errorf("reading results: %w", err)
		}
		for _, r := range records {
			if err := t.take(ctx, r); err != nil {
				return err
			}
		}
		if err := t.note(ctx, reader.Offset()); err != nil {
			return err
		}
		committed(reader.Offset())
	}
}

// begin is where the audience's ignorance begins. Whoever is told for the first time is not told of the past. What the
// topic no longer has cannot be told.
func (t *errand) begin(ctx context.Context) (int64, error) {
	first, end, err := t.client.Bounds(ctx, t.topic, t.partition)
	if err != nil {
		return 0, fmt.Errorf("asking for the bounds of the results: %w", err)
	}
	var next int64
	var known bool
	err = retry.Do(ctx, patience(), func(ctx context.Context) (err error) {
		next, known, err = t.told.Next(ctx, string(t.audience), t.topic, t.partition)
		return err
	})
	switch {
	case err != nil:
		return 0, err
	case !known:
		return end, t.note(ctx, end)
	case next < first || next > end:
		t.log.Error().Str("audience", string(t.audience)).Int("partition", t.partition).Int64("from", next).
			Int64("to", first).Int64("end", end).
			Msg("the results that were to be told are no longer in the topic; those that are there are told from " +
				"the beginning")
		return first, nil
	}
	return next, nil
}

func (t *errand) note(ctx context.Context, next int64) error {
	return retry.Do(ctx, patience(), func(ctx context.Context) error {
		return t.told.Note(ctx, string(t.audience), t.topic, t.partition, next)
	})
}

// patience is how the database is waited for.
func patience() retry.Policy { return retry.Policy{Max: 5 * time.Second} }

// take tells the audience of one record, if it concerns it, and remembers that it did.
func (t *errand) take(ctx context.Context, r bus.Record) error {
	decoded, _, err := wire.Decode(r)
	result, is := decoded.(wire.Result)
	if err == nil && !is {
		err = fmt.Errorf("a %T has no place among results (partition %d, offset %d)", decoded, r.Partition, r.Offset)
	}
	if err != nil {
		return t.passOver(ctx, r, err)
	}
	m, to, concerns := notify.About(t.keeper.ChainID, result.Result)
	if !concerns || to != t.audience {
		return nil
	}
	if err := t.deliver(ctx, r, m); err != nil {
		return err
	}
	return t.note(ctx, r.Offset+1)
}

func (t *errand) deliver(ctx context.Context, r bus.Record, m notify.Message) error {
	failing := t.metrics.failing.WithLabelValues(string(t.audience), strconv.Itoa(t.partition))
	err := t.poster.Deliver(ctx, m, func(attempt int, err error, pause time.Duration) {
		failing.Set(float64(attempt))
		t.log.Warn().Err(err).Str("audience", string(t.audience)).Str("message", m.ID).Int("attempt", attempt).
			Dur("pause_ms", pause).Msg("not told yet")
	})
	if ctx.Err() != nil && err != nil {
		return context.Cause(ctx)
	}
	failing.Set(0)
	if refused, is := errors.AsType[*notify.RefusedError](err); is {
		t.log.Error().Err(refused).Str("audience", string(t.audience)).Str("message", m.ID).
			Msg("the receiver does not want this message: it is a dead letter")
		t.metrics.messages.WithLabelValues(string(t.audience), "refused").Inc()
		return t.bury(ctx, r, refused)
	}
	if err != nil {
		return err
	}
	t.metrics.messages.WithLabelValues(string(t.audience), "delivered").Inc()
	t.log.Info().Str("audience", string(t.audience)).Str("message", m.ID).Str("event", m.Event).Msg("told")
	return nil
}

// passOver makes a record that nobody can read a dead letter, so that what stands behind it is told.
func (t *errand) passOver(ctx context.Context, r bus.Record, why error) error {
	t.log.Error().Err(why).Str("audience", string(t.audience)).Int("partition", r.Partition).Int64("offset", r.Offset).
		Msg("passing over a result that nobody can read: it is a dead letter")
	t.metrics.messages.WithLabelValues(string(t.audience), "unreadable").Inc()
	if err := t.bury(ctx, r, why); err != nil {
		return err
	}
	return t.note(ctx, r.Offset+1)
}

// bury puts a result that an audience would not have with the dead letters, as it was.
func (t *errand) bury(ctx context.Context, r bus.Record, why error) error {
	letter := wire.DeadLetter(t.topic, r, legible(fmt.Sprintf("telling the %s: %v", t.audience, why)))
	const onlyPartition = 0
	if _, err := t.client.Producer(wire.DeadLetterTopic(t.keeper.ChainID)).
		Produce(ctx, onlyPartition, []bus.Record{letter}); err != nil {
		return fmt.Errorf("putting a result with the dead letters: %w", err)
	}
	return nil
}
