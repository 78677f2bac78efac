package jobstory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/price"
)

// Topics are read around the times that are known: records carry their writer's clock.
const (
	beforeKnown = time.Minute
	afterKnown  = 2 * time.Minute
	mostRead    = 200_000 // records of a partition
)

// scan visits the records of a partition between two times, until the visit returns that it is enough.
func (s Source) scan(ctx context.Context, topic string, partition int, from, to time.Time,
	visit func(bus.Record) (enough bool)) error {
	if from.UnixMilli() < 0 {
		from = time.UnixMilli(0) // below it, times are other questions to brokers
	}
	offset, err := s.Kafka.OffsetAt(ctx, topic, partition, from)
	if err != nil {
		return err
	}
	for r, err := range s.Kafka.Scan(ctx, topic, partition, offset) {
		if err != nil {
			return fmt.Errorf("reading %s/%d: %w", topic, partition, err)
		}
		if r.Time.After(to) || r.Offset >= offset+mostRead || visit(r) {
			return nil
		}
	}
	return nil
}

func placeOf(topic string, r bus.Record) string {
	return fmt.Sprintf("%s %d/%d", topic, r.Partition, r.Offset)
}

// locate finds the record of a log near its block's time. Empty where it is not there: history is published later.
func (s Source) locate(ctx context.Context, at perp.Stamp) (where string) {
	topic, blockAt := wire.LogTopic(s.Keeper.ChainID), time.UnixMilli(int64(at.TimeMs))
	for part := range s.Keeper.LogPartitions {
		err := s.scan(ctx, topic, part, blockAt.Add(-10*time.Second), blockAt.Add(beforeKnown),
			func(r bus.Record) bool {
				m, _, err := wire.Decode(r)
				if l, is := m.(wire.Log); err == nil && is && l.Block == at.Block && l.Index == at.Log {
					where = placeOf(topic, r)
				}
				return where != ""
			})
		if err != nil || where != "" {
			return where
		}
	}
	return where
}

// publishedJob is one due time of a job, with what planners have published of it.
type publishedJob struct {
	first, last bus.Record
	times       int
	job         job.Job
}

// AddTopics adds what planners and senders have published of the jobs; of those that no store knows, since a time.
func (y *Story) AddTopics(ctx context.Context, since time.Time) error {
	from, to := since, time.Now()
	if len(y.Lines) > 0 {
		first := slices.MinFunc(y.Lines, func(a, b Line) int { return a.At.Compare(b.At) }).At
		last := slices.MaxFunc(y.Lines, func(a, b Line) int { return a.At.Compare(b.At) }).At
		from, to = first.Add(-beforeKnown), last.Add(afterKnown)
	}
	if err := y.addPublished(ctx, from, to); err != nil {
		return err
	}
	return y.addResults(ctx, from, to)
}

// about reports whether something published is of the jobs that are asked for.
func (y *Story) about(id string, key [32]byte) bool {
	if _, known := y.dueTimes[id]; known {
		return true
	}
	return slices.Contains(y.Keys, key)
}

func (y *Story) addPublished(ctx context.Context, from, to time.Time) error {
	topic, dueTimes := wire.JobTopic(y.Keeper.ChainID), map[string]*publishedJob{}
	var order []string
	for part := range y.Keeper.JobPartitions {
		err := y.scan(ctx, topic, part, from, to, func(r bus.Record) bool {
			m, _, err := wire.Decode(r)
			j, is := m.(wire.Job)
			if err != nil || !is || !y.about(j.ID, j.Key) {
				return false
			}
			name := fmt.Sprint(j.ID, " ", j.DueSinceMs)
			b := dueTimes[name]
			if b == nil {
				b = &publishedJob{first: r, job: j.Job}
				dueTimes[name], order = b, append(order, name)
			}
			b.last, b.times = r, b.times+1
			return false
		})
		if bus.NoTopic(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	for _, name := range order {
		b := dueTimes[name]
		y.said = append(y.said, b.job)
		what := "said due"
		if y.born(b.job) > 1 {
			what = "renewed"
		}
		y.addf(b.first.Time, b.job.ID, 0, what, placeOf(topic, b.first),
			"%s; born %s, by block %d and reports %s, "+
				"for signer %s; said %d times, last at %d/%d", b.job.Evidence.Reason,
			time.UnixMilli(int64(b.job.DueSinceMs)).UTC().Format("15:04:05.000"), b.job.Evidence.Block.Number,
			strings.Join(b.job.Evidence.Reports, " "), b.job.Signer, b.times, b.last.Partition, b.last.Offset)
		if err := y.addReports(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// addReports adds the price reports that a due time was first published with, and where the topic has them.
func (y *Story) addReports(ctx context.Context, b *publishedJob) error {
	topic, wanted := wire.PriceTopic(y.Keeper.ChainID), slices.Clone(b.job.Evidence.Reports)
	if len(wanted) == 0 {
		return nil
	}
	err := y.scan(ctx, topic, 0, b.first.Time.Add(-beforeKnown), b.first.Time, func(r bus.Record) bool {
		m, _, err := wire.Decode(r)
		message, is := m.(wire.Price)
		if err != nil || !is {
			return false
		}
		report := price.FromMessage(message)
		if at := slices.Index(wanted, report.ID()); at >= 0 {
			wanted = slices.Delete(wanted, at, at+1)
			y.quoted[b.job.ID] = append(y.quoted[b.job.ID], report)
			y.addf(r.Time, b.job.ID, 0, "price report", placeOf(topic, r), "%s to %s for %s, of %s, by %s",
				y.Names.Price(report.Token, report.Min), y.Names.Price(report.Token, report.Max), report.Token,
				time.UnixMilli(int64(report.TimeMs)).UTC().Format("15:04:05.000"),
				report.Source)
		}
		return len(wanted) == 0
	})
	if bus.NoTopic(err) {
		return nil
	}
	return err
}

func (y *Story) addResults(ctx context.Context, from, to time.Time) error {
	topic := wire.ResultTopic(y.Keeper.ChainID)
	partitions, err := y.Kafka.Describe(ctx, topic)
	if bus.NoTopic(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for part := range partitions {
		if err := y.scan(ctx, topic, part, from, to, func(r bus.Record) bool {
			m, _, err := wire.Decode(r)
			if result, is := m.(wire.Result); err == nil && is && y.about(result.JobID, result.Key) {
				y.addf(r.Time, result.JobID, result.Attempt, "result", placeOf(topic, r), "%s%s", result.Outcome,
					text.Because(result.Reason))
			}
			return false
		}); err != nil {
			return err
		}
	}
	return nil
}
