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

	"perpkeeper/pkg/instrument/metric"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/notify"
	"perpkeeper/pkg/operator/naming"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/retry"
)

// notifier notifies people of results (LIQ-12). It reads the result topic as anybody else would, so that no receiver,
// however slow, is in the way of a transaction. Each receiver has a place of its own in the topic: one that is away
// keeps nothing from the others, and gets everything when it is back.
//
// At least once: an offset is remembered after what is below it was delivered. What a receiver has refused as often as
// is configured becomes a dead letter, as the record it was. Of several consoles one has a partition at a time,
// and whoever gets it goes on from what the database remembers: a message is posted twice only where a console ends, or
// loses the partition, between the delivery and the note of it. Receivers drop what they have had, by its id.
type notifier struct {
	to      []notify.Receiver
	policy  notify.Policy
	keeper  wire.Config
	client  *bus.Client
	places  places
	metrics *noticeMetrics
	names   *naming.Names
	log     zerolog.Logger
}

// places remember how far a partition was delivered to a receiver.
type places interface {
	Place(ctx context.Context, receiver, topic string, partition int) (at pg.Place, known bool, err error)
	Note(ctx context.Context, receiver, topic string, partition int, at pg.Place) error
	Begin(ctx context.Context, receiver, topic string, partition int, at pg.Place) error
}

// noticeMetrics count what was delivered. The label audience holds the receiver's name, which is the audience where a
// webhook is configured by its address alone.
type noticeMetrics struct {
	messages *prometheus.CounterVec
	failing  *prometheus.GaugeVec
	stopped  *prometheus.GaugeVec
}

func newNoticeMetrics(reg prometheus.Registerer) *noticeMetrics {
	in := metric.In{Registerer: reg}
	return &noticeMetrics{
		messages: in.Counters("notify_messages_total",
			"Messages to a receiver: delivered; refused, or unreadable (dead letters).", "audience", "result"),
		failing: in.Gauges("notify_failed_tries",
			"Tries in a row that a receiver has not taken the message that is due.", "audience", "partition"),
		stopped: in.Gauges("notify_stopped",
			"1 while a receiver gets nothing; the log says why.", "audience"),
	}
}

// Run delivers to every receiver until ctx ends. What it cannot go on with is logged, counted and tried again, and the
// other receivers get their messages all the same.
func (n *notifier) Run(ctx context.Context) error {
	n.names.Learn(ctx)
	var group errgroup.Group
	for _, to := range n.to {
		group.Go(func() error {
			stopped := n.metrics.stopped.WithLabelValues(to.Name)
			stopped.Set(0)
			tries := retry.New(retry.Policy{Initial: time.Second, Max: time.Minute,
				OnRetry: func(_ int, err error, _ time.Duration) {
					stopped.Set(1)
					n.log.Error().Bool("critical", true).Err(err).Str("receiver", to.Name).
						Msg("this receiver gets nothing; trying again")
				}})
			for tries.Next(ctx) {
				tries.Failed(n.follow(ctx, to, func([]int) { stopped.Set(0) }))
			}
			return nil
		})
	}
	<-ctx.Done()
	return group.Wait()
}

// follow reads the partitions that this process has of a receiver's group.
func (n *notifier) follow(ctx context.Context, to notify.Receiver, assigned func([]int)) error {
	id := n.keeper.ChainID
	group := bus.GroupConfig{ID: fmt.Sprintf("perp.%d.notify.%s", id, to.Name), Topic: wire.ResultTopic(id),
		OnAssign: assigned}
	return n.client.Join(ctx, group, func(ctx context.Context, c bus.Claim) error {
		d := &delivery{notifier: n, to: to, partition: c.Partition, topic: group.Topic}
		defer n.metrics.failing.DeleteLabelValues(to.Name, strconv.Itoa(c.Partition))
		return d.run(ctx)
	})
}

// delivery is one partition of the results on its way to one receiver.
type delivery struct {
	*notifier
	to        notify.Receiver
	topic     string
	partition int
}

// run delivers until ctx ends. Where the topic is no longer the one that was read, it begins anew.
func (d *delivery) run(ctx context.Context) error {
	for {
		at, err := d.start(ctx)
		if err != nil {
			return err
		}
		if err := d.follow(ctx, at); !bus.LostLog(err) {
			return err
		}
		if err := d.anew(ctx, at.Next); err != nil {
			return err
		}
	}
}

// follow delivers from a place on.
func (d *delivery) follow(ctx context.Context, at pg.Place) error {
	reader := d.client.Reader(d.topic, d.partition, at.Next).Watch(at.Mark)
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
		if err := d.note(ctx, records[len(records)-1]); err != nil {
			return err
		}
	}
}

// start is the first place that the receiver has not had. A new receiver gets nothing of the past. What the topic no
// longer has cannot be delivered.
func (d *delivery) start(ctx context.Context) (at pg.Place, err error) {
	first, end, err := d.client.Bounds(ctx, d.topic, d.partition)
	if err != nil {
		return at, fmt.Errorf("asking for the bounds of the results: %w", err)
	}
	var known bool
	err = retry.Do(ctx, untilThere(), func(ctx context.Context) (err error) {
		at, known, err = d.places.Place(ctx, d.to.Name, d.topic, d.partition)
		return err
	})
	switch {
	case err != nil:
		return at, err
	case !known && end > first:
		last, err := d.client.Reader(d.topic, d.partition, end-1).Next(ctx)
		if err != nil {
			return at, fmt.Errorf("reading the newest result: %w", err)
		}
		at = after(last)
		return at, d.begin(ctx, at)
	case !known:
		return pg.Place{Next: end}, d.begin(ctx, pg.Place{Next: end})
	case at.Next < first || at.Next > end:
		return pg.Place{Next: first}, d.anew(ctx, at.Next)
	}
	return at, nil
}

// anew begins with the first record of a topic that does not have, or not in its place, what was read of it.
func (d *delivery) anew(ctx context.Context, from int64) error {
	first, end, err := d.client.Bounds(ctx, d.topic, d.partition)
	if err != nil {
		return fmt.Errorf("asking for the bounds of the results: %w", err)
	}
	d.log.Error().Str("receiver", d.to.Name).Int("partition", d.partition).Int64("from", from).
		Int64("to", first).Int64("end", end).
		Msg("the results that were to be delivered are no longer in the topic; those that are there are " +
			"delivered from the beginning")
	return d.begin(ctx, pg.Place{Next: first})
}

func (d *delivery) begin(ctx context.Context, at pg.Place) error {
	return retry.Do(ctx, untilThere(), func(ctx context.Context) error {
		return d.places.Begin(ctx, d.to.Name, d.topic, d.partition, at)
	})
}

// note remembers that a record was delivered.
func (d *delivery) note(ctx context.Context, r bus.Record) error {
	return retry.Do(ctx, untilThere(), func(ctx context.Context) error {
		return d.places.Note(ctx, d.to.Name, d.topic, d.partition, after(r))
	})
}

func after(r bus.Record) pg.Place { return pg.Place{Next: r.Offset + 1, Mark: wire.Fingerprint(r)} }

// untilThere is how the database is waited for.
func untilThere() retry.Policy { return retry.Policy{Max: 5 * time.Second} }

// take delivers one record, if it concerns the receiver's audience, and remembers that it did.
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
	if !concerns || to != d.to.Audience {
		return nil
	}
	if l := m.Liquidation; l != nil {
		d.names.Learn(ctx) // for the next one
		if l.MarketName = d.names.Market(result.Market); l.MarketName == text.Short(l.Market) {
			l.MarketName = ""
		}
		if l.TxHash != "" {
			l.Explorer = naming.Explorer(d.keeper.ChainID, "tx", l.TxHash)
		}
	}
	if err := d.deliver(ctx, r, m); err != nil {
		return err
	}
	return d.note(ctx, r)
}

func (d *delivery) deliver(ctx context.Context, r bus.Record, m notify.Message) error {
	failing := d.metrics.failing.WithLabelValues(d.to.Name, strconv.Itoa(d.partition))
	err := d.policy.Deliver(ctx, d.to, m, func(attempt int, err error, pause time.Duration) {
		failing.Set(float64(attempt))
		d.log.Warn().Err(err).Str("receiver", d.to.Name).Str("message", m.ID).Int("attempt", attempt).
			Dur("pause_ms", pause).Msg("not told yet")
	})
	if ctx.Err() != nil && err != nil {
		return context.Cause(ctx)
	}
	failing.Set(0)
	if refused, is := errors.AsType[*notify.RefusedError](err); is {
		d.log.Error().Err(refused).Str("receiver", d.to.Name).Str("message", m.ID).
			Msg("the receiver does not want this message: it is a dead letter")
		d.metrics.messages.WithLabelValues(d.to.Name, "refused").Inc()
		return d.deadLetter(ctx, r, refused)
	}
	if err != nil {
		return err
	}
	d.metrics.messages.WithLabelValues(d.to.Name, "delivered").Inc()
	d.log.Info().Str("receiver", d.to.Name).Str("message", m.ID).Str("event", m.Event).Msg("delivered")
	return nil
}

// skip makes a record that nobody can read a dead letter, so that what stands behind it is delivered.
func (d *delivery) skip(ctx context.Context, r bus.Record, why error) error {
	d.log.Error().Err(why).Str("receiver", d.to.Name).Int("partition", r.Partition).Int64("offset", r.Offset).
		Msg("passing over a result that nobody can read: it is a dead letter")
	d.metrics.messages.WithLabelValues(d.to.Name, "unreadable").Inc()
	if err := d.deadLetter(ctx, r, why); err != nil {
		return err
	}
	return d.note(ctx, r)
}

// deadLetter makes a result that a receiver has refused a dead letter, as it was.
func (d *delivery) deadLetter(ctx context.Context, r bus.Record, why error) error {
	letter := wire.DeadLetter(d.topic, r, fmt.Sprintf("telling the %s: %v", d.to.Name, why))
	const onlyPartition = 0
	if _, err := d.client.Producer(wire.DeadLetterTopic(d.keeper.ChainID)).
		Produce(ctx, onlyPartition, []bus.Record{letter}); err != nil {
		return fmt.Errorf("putting a result with the dead letters: %w", err)
	}
	return nil
}

// alarmPost delivers alarms to one receiver, one after the other, for as long as it takes. One that is away keeps
// nothing from the others.
type alarmPost struct {
	to     notify.Receiver
	policy notify.Policy
	unsent chan notify.Message
	log    zerolog.Logger
}

func newAlarmPost(to notify.Receiver, policy notify.Policy, log zerolog.Logger) *alarmPost {
	const most = 64 // alarms that wait for a receiver; further ones are dropped, and that is logged
	return &alarmPost{to: to, policy: policy, unsent: make(chan notify.Message, most),
		log: log.With().Str("receiver", to.Name).Logger()}
}

// queue has a message delivered. It never waits.
func (p *alarmPost) queue(message notify.Message) {
	select {
	case p.unsent <- message:
	default:
		p.log.Error().Str("message", message.ID).
			Msg("this receiver of the operators has been away for so long that it does not get this")
	}
}

// run delivers until ctx ends.
func (p *alarmPost) run(ctx context.Context) error {
	for {
		select {
		case message := <-p.unsent:
			err := p.policy.Deliver(ctx, p.to, message, func(_ int, err error, _ time.Duration) {
				p.log.Warn().Err(err).Str("message", message.ID).Msg("not told yet")
			})
			if err != nil && ctx.Err() == nil {
				p.log.Error().Err(err).Str("message", message.ID).Msg("this receiver of the operators refuses this")
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
