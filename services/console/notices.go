package console

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
// is configured is put with the dead letters, as the record it was. Of several consoles one has a partition at a time,
// and whoever gets it goes on from what the database remembers: a message is posted twice only where a console ends, or
// loses the partition, between the delivery and the note of it. Receivers drop what they have had, by its id.
type notifier struct {
	cfg     notify.Config
	keeper  wire.Config
	client  *bus.Client
	offsets offsets
	metrics *noticeMetrics
	log     zerolog.Logger
}

// offsets remember how far a partition was told to an audience.
type offsets interface {
	Next(ctx context.Context, audience, topic string, partition int) (next int64, known bool, err error)
	Note(ctx context.Context, audience, topic string, partition int, next int64) error
}

// noticeMetrics count what people were told.
type noticeMetrics struct {
	messages *prometheus.CounterVec
	failing  *prometheus.GaugeVec
	stopped  *prometheus.GaugeVec
}

func newNoticeMetrics(reg prometheus.Registerer) *noticeMetrics {
	m := &noticeMetrics{
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

// Run tells every audience that has a URL until ctx ends. What it cannot go on with is logged and counted, and the
// other audience is told all the same.
func (n *notifier) Run(ctx context.Context) error {
	var group errgroup.Group
	for _, audience := range notify.Audiences() {
		if !n.cfg.URL(audience).IsSet() {
			continue
		}
		group.Go(func() error {
			n.metrics.stopped.WithLabelValues(string(audience)).Set(0)
			if err := n.follow(ctx, audience); err != nil && ctx.Err() == nil {
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

// follow reads the partitions that this process has of an audience's group.
func (n *notifier) follow(ctx context.Context, a notify.Audience) error {
	poster := notify.NewPoster(n.cfg, a)
	defer poster.Close()
	id := n.keeper.ChainID
	group := bus.GroupConfig{ID: fmt.Sprintf("perp.%d.notify.%s", id, a), Topic: wire.ResultTopic(id)}
	return n.client.Join(ctx, group, func(ctx context.Context, c bus.Claim) error {
		d := &delivery{notifier: n, audience: a, poster: poster, partition: c.Partition, topic: group.Topic}
		defer n.metrics.failing.DeleteLabelValues(string(a), strconv.Itoa(c.Partition))
		return d.run(ctx, c.Committed)
	})
}

// delivery is one partition of the results on its way to one audience.
type delivery struct {
	*notifier
	audience  notify.Audience
	poster    *notify.Poster
	topic     string
	partition int
}

func (d *delivery) run(ctx context.Context, committed func(int64)) error {
	offset, err := d.start(ctx)
	if err != nil {
		return err
	}
	reader := d.client.Reader(d.topic, d.partition, offset)
	for {
		records, err := reader.NextBatch(ctx, 100)
		if err != nil {
			return fmt.Errorf("reading results: %w", err)
		}
		for _, r := range records {
			if err := d.take(ctx, r); err != nil {
				return err
			}
		}
		if err := d.note(ctx, reader.Offset()); err != nil {
			return err
		}
		committed(reader.Offset())
	}
}

// start is the first offset that the audience was not told of. Whoever is told for the first time is not told of the
// past. What the topic no longer has cannot be told.
func (d *delivery) start(ctx context.Context) (int64, error) {
	first, end, err := d.client.Bounds(ctx, d.topic, d.partition)
	if err != nil {
		return 0, fmt.Errorf("asking for the bounds of the results: %w", err)
	}
	var next int64
	var known bool
	err = retry.Do(ctx, untilThere(), func(ctx context.Context) (err error) {
		next, known, err = d.offsets.Next(ctx, string(d.audience), d.topic, d.partition)
		return err
	})
	switch {
	case err != nil:
		return 0, err
	case !known:
		return end, d.note(ctx, end)
	case next < first || next > end:
		d.log.Error().Str("audience", string(d.audience)).Int("partition", d.partition).Int64("from", next).
			Int64("to", first).Int64("end", end).
			Msg("the results that were to be told are no longer in the topic; those that are there are told from " +
				"the beginning")
		return first, nil
	}
	return next, nil
}

func (d *delivery) note(ctx context.Context, next int64) error {
	return retry.Do(ctx, untilThere(), func(ctx context.Context) error {
		return d.offsets.Note(ctx, string(d.audience), d.topic, d.partition, next)
	})
}

// untilThere is how the database is waited for.
func untilThere() retry.Policy { return retry.Policy{Max: 5 * time.Second} }

// take tells the audience of one record, if it concerns it, and remembers that it did.
func (d *delivery) take(ctx context.Context, r bus.Record) error {
	decoded, _, err := wire.Decode(r)
	result, is := decoded.(wire.Result)
	if err == nil && !is {
		err = fmt.Errorf("a %T has no place among results (partition %d, offset %d)", decoded, r.Partition, r.Offset)
	}
	if err != nil {
		return d.skip(ctx, r, err)
	}
	m, to, concerns := notify.About(d.keeper.ChainID, result.Result)
	if !concerns || to != d.audience {
		return nil
	}
	if err := d.deliver(ctx, r, m); err != nil {
		return err
	}
	return d.note(ctx, r.Offset+1)
}

func (d *delivery) deliver(ctx context.Context, r bus.Record, m notify.Message) error {
	failing := d.metrics.failing.WithLabelValues(string(d.audience), strconv.Itoa(d.partition))
	err := d.poster.Deliver(ctx, m, func(attempt int, err error, pause time.Duration) {
		failing.Set(float64(attempt))
		d.log.Warn().Err(err).Str("audience", string(d.audience)).Str("message", m.ID).Int("attempt", attempt).
			Dur("pause_ms", pause).Msg("not told yet")
	})
	if ctx.Err() != nil && err != nil {
		return context.Cause(ctx)
	}
	failing.Set(0)
	if refused, is := errors.AsType[*notify.RefusedError](err); is {
		d.log.Error().Err(refused).Str("audience", string(d.audience)).Str("message", m.ID).
			Msg("the receiver does not want this message: it is a dead letter")
		d.metrics.messages.WithLabelValues(string(d.audience), "refused").Inc()
		return d.deadLetter(ctx, r, refused)
	}
	if err != nil {
		return err
	}
	d.metrics.messages.WithLabelValues(string(d.audience), "delivered").Inc()
	d.log.Info().Str("audience", string(d.audience)).Str("message", m.ID).Str("event", m.Event).Msg("told")
	return nil
}

// skip makes a record that nobody can read a dead letter, so that what stands behind it is told.
func (d *delivery) skip(ctx context.Context, r bus.Record, why error) error {
	d.log.Error().Err(why).Str("audience", string(d.audience)).Int("partition", r.Partition).Int64("offset", r.Offset).
		Msg("passing over a result that nobody can read: it is a dead letter")
	d.metrics.messages.WithLabelValues(string(d.audience), "unreadable").Inc()
	if err := d.deadLetter(ctx, r, why); err != nil {
		return err
	}
	return d.note(ctx, r.Offset+1)
}

// deadLetter puts a result that an audience would not have with the dead letters, as it was.
func (d *delivery) deadLetter(ctx context.Context, r bus.Record, why error) error {
	letter := wire.DeadLetter(d.topic, r, fmt.Sprintf("telling the %s: %v", d.audience, why))
	const onlyPartition = 0
	if _, err := d.client.Producer(wire.DeadLetterTopic(d.keeper.ChainID)).
		Produce(ctx, onlyPartition, []bus.Record{letter}); err != nil {
		return fmt.Errorf("putting a result with the dead letters: %w", err)
	}
	return nil
}
