package sender

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/pg/txstore"
	"perpkeeper/pkg/retry"
	"perpkeeper/pkg/txmgr/txm"
)

// consume works one partition of the job topic while it is ours: its jobs become intents, whoever owns their signers.
// In worker-queue mode its signers have their workers here.
func (s *Sender) consume(ctx context.Context, c bus.Claim) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, key := range s.keys {
		if s.cfg.Sender.Mode == workerQueue &&
			wire.SignerPartition(key.Address(), s.cfg.Keeper.JobPartitions) == c.Partition {
			group.Go(func() error { return s.manager.Work(ctx, key) })
		}
	}
	if c.Partition == 0 {
		group.Go(func() error { return s.letters(ctx) })
	}
	group.Go(func() error { return s.intake(ctx, c.Partition) })
	return group.Wait()
}

// intake stores the jobs of the partition, beginning as far back as a job may be old: what a former owner read and did
// not store, it did not do. Planners say all that is due again with every sweep, so that of a backlog only the newest
// record of each job is stored, the most urgent first. Records that nobody can read become dead letters.
func (s *Sender) intake(ctx context.Context, partition int) error {
	part := fmt.Sprintf("partition %d", partition)
	defer s.notices.set(part, "")
	topic := wire.JobTopic(s.cfg.Keeper.ChainID)
	back := max(s.cfg.Sender.MaxJobAge, s.cfg.Tier.JobMaxAge)
	offset, end, err := s.client.OffsetBack(ctx, topic, partition, back)
	if err != nil {
		return fmt.Errorf("looking for the jobs of the last %s: %w", back, err)
	}
	reader := s.client.Reader(topic, partition, offset)
	newest := map[string]said{}
	for {
		records, err := reader.NextBatch(ctx, intakeBatch)
		if err != nil {
			return fmt.Errorf("reading jobs: %w", err)
		}
		for _, r := range records {
			j, err := wire.DecodeJob(r)
			if err == nil {
				newest[j.ID] = said{j, r}
			} else if err := s.discard(ctx, part, r, err); err != nil {
				return err
			}
		}
		if reader.Offset() < end {
			continue
		}
		for _, w := range slices.SortedFunc(maps.Values(newest), said.before) {
			if err := s.take(ctx, part, w); err != nil {
				return err
			}
		}
		clear(newest)
	}
}

// intakeBatch is of how many records at most the newest of each job are stored together.
const intakeBatch = 1000

// said is a job, and the record that says it.
type said struct {
	job    job.Job
	record bus.Record
}

// before orders jobs by their urgency, and those that are alike as they were said.
func (w said) before(other said) int {
	return cmp.Or(cmp.Compare(w.job.Class, other.job.Class), cmp.Compare(w.record.Offset, other.record.Offset))
}

// take stores a job, however long the database is away, or lets it wait for its turn. One that the database cannot hold
// is set aside.
func (s *Sender) take(ctx context.Context, part string, w said) error {
	if !s.turns.Admit(w.job) {
		return nil
	}
	err := s.patiently(ctx, part, func(ctx context.Context) error { return s.store(ctx, w.job) })
	if pg.Unfit(err) {
		return s.discard(ctx, part, w.record, err)
	}
	return err
}

// discard sets a record aside that holds no job, or one that cannot be stored.
func (s *Sender) discard(ctx context.Context, part string, r bus.Record, why error) error {
	topic := wire.JobTopic(s.cfg.Keeper.ChainID)
	s.unreadable.report(topic, r, why)
	return s.setAside(ctx, part, damaged{topic, r, why})
}

// patiently does what the database has to be there for, however long it is away.
func (s *Sender) patiently(ctx context.Context, part string, do func(context.Context) error) error {
	policy := retry.Policy{Max: 2 * time.Second,
		OnRetry: func(_ int, err error, _ time.Duration) { s.notices.set(part, err.Error()) }}
	err := retry.Do(ctx, policy, do)
	s.notices.set(part, "")
	return err
}

func (s *Sender) store(ctx context.Context, j job.Job) error {
	if s.shadow != nil {
		s.shadow.Offer(j)
		return nil
	}
	admission, err := s.intents.Enqueue(ctx, j)
	switch {
	case errors.Is(err, txm.ErrUnknownSigner):
		s.log.Error().Str("job", j.ID).Str("signer", j.Signer.Hex()).
			Msg("a job for a signer that no sender of this keeper has: check keeper.signers against the keys")
		return nil
	case pg.Refused(err):
		return retry.Stop(err)
	case err != nil:
		return err
	}
	if admission != txm.NewAttempt {
		return nil
	}
	s.log.Info().Str("job", j.ID).Str("account", j.Account.Hex()).Str("signer", j.Signer.Hex()).
		Dur("age_ms", s.headTracker.Age(j.DueSinceMs)).Msg("queued")
	s.manager.Wake(j.Signer)
	return nil
}

// takeTurns stores the jobs that have waited for their turn, as soon as it has come, until ctx ends.
func (s *Sender) takeTurns(ctx context.Context) error {
	const part = "turns"
	defer s.notices.set(part, "")
	for {
		changed, head := s.turns.Changed(), s.headTracker.Next()
		for _, j := range s.turns.Ready() {
			if err := s.patiently(ctx, part, func(ctx context.Context) error { return s.store(ctx, j) }); err != nil {
				return err
			}
		}
		if err := s.turns.FindOthers(ctx, txstore.NewIntents(s.db)); err != nil && ctx.Err() == nil {
			s.log.Warn().Err(err).Msg("who has sent this tier's transactions is asked again")
		}
		select {
		case <-changed:
		case <-head:
		case <-time.After(again):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
