package sender

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
)

// unreadable are the records of the job and price topics that nobody can read. Each is reported and passed over: both
// topics say again what still matters. A record of the log topic never is.
//
// Each becomes a dead letter, which one process of a keeper writes: of jobs the owner of the partition, of prices the
// owner of the first partition of jobs. It notes in the database how far it has, as records are read again at each
// start. A process that dies between writing and noting makes its successor write the letter once more.
type unreadable struct {
	found  *prometheus.CounterVec
	log    zerolog.Logger
	prices chan damaged // for the process that writes letters of them

	mu       sync.Mutex
	reported map[place]bool // several readers of one process meet a record
}

// place is where a record is.
type place struct {
	topic     string
	partition int
	offset    int64
}

// damaged is a record that nobody can read, and why.
type damaged struct {
	topic  string
	record bus.Record
	why    error
}

// mostDamaged is how many damaged price records wait for their letters; further ones stay in their topic alone.
const mostDamaged = 1000

func newUnreadable(found *prometheus.CounterVec, log zerolog.Logger) *unreadable {
	return &unreadable{found: found, log: log, prices: make(chan damaged, mostDamaged), reported: map[place]bool{}}
}

// report counts a record and logs where it is, once.
func (u *unreadable) report(topic string, r bus.Record, why error) {
	if u.knows(place{topic, r.Partition, r.Offset}) {
		return
	}
	u.found.WithLabelValues(topic).Inc()
	u.log.Error().Err(why).Str("topic", topic).Int("partition", r.Partition).Int64("offset", r.Offset).
		Msg("passing over a record that nobody can read")
}

// knows reports whether a record was reported before, as far back as is remembered.
func (u *unreadable) knows(at place) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.reported[at] {
		return true
	}
	if len(u.reported) >= mostDamaged {
		clear(u.reported)
	}
	u.reported[at] = true
	return false
}

// price reports a record of the price topic and has a letter written, without waiting for it.
func (u *unreadable) price(topic string, r bus.Record, why error) {
	u.report(topic, r, why)
	select {
	case u.prices <- damaged{topic, r, why}:
	default:
		u.log.Error().Int64("offset", r.Offset).Msg("too many price records that nobody can read: this one " +
			"becomes no dead letter")
	}
}

// letters writes those of price records until ctx ends.
func (s *Sender) letters(ctx context.Context) error {
	for {
		select {
		case d := <-s.unreadable.prices:
			if err := s.setAside(ctx, "dead letters", d); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// unreadableAudience is under which name it is noted how far the damaged records of a partition are dead letters.
const unreadableAudience = "dead letters"

// setAside makes a record a dead letter, once, however long the database or the brokers are away. Part is what waits
// meanwhile.
func (s *Sender) setAside(ctx context.Context, part string, d damaged) error {
	where := fmt.Sprintf("offset %d of %s/%d", d.record.Offset, d.topic, d.record.Partition)
	return s.patiently(ctx, part, func(ctx context.Context) error {
		progress := s.db.Notified() // how far damaged records are dead letters
		at, known, err := progress.Place(ctx, unreadableAudience, d.topic, d.record.Partition)
		if err != nil || known && d.record.Offset < at.Next {
			return err
		}
		const onlyPartition = 0
		letter := wire.DeadLetter(d.topic, d.record, d.why.Error())
		_, err = s.client.Producer(wire.DeadLetterTopic(s.cfg.Keeper.ChainID)).
			Produce(ctx, onlyPartition, []bus.Record{letter})
		switch {
		case errors.Is(err, bus.ErrTooLarge):
			s.log.Error().Err(err).Msg(where + " does not fit into a dead letter and stays where it is")
		case err != nil:
			return fmt.Errorf("sending %s to the dead letters: %w", where, err)
		}
		return progress.Note(ctx, unreadableAudience, d.topic, d.record.Partition,
			pg.Place{Next: d.record.Offset + 1})
	})
}
