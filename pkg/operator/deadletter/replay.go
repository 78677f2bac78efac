package deadletter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/wire"
)

// ErrNotReplayed refuses letters of other topics than that of jobs.
var ErrNotReplayed = errors.New("only jobs are replayed. The state is what all records of the log topic make of " +
	"it in their order: " +
	"a record is never put in again. Its partition goes on from the same offset when a build understands it " +
	"(docs/runbooks/partition-stopped.md), or the state is built anew (keeperctl rebuild)")

// Said is a job that was published again.
type Said struct {
	JobID     string
	Partition int
}

// Replayable returns the letter at an offset, if it is of a job.
func (t Topic) Replayable(ctx context.Context, offset int64) (Letter, error) {
	l, err := t.Letter(ctx, offset)
	if err == nil && l.Source() != wire.JobTopic(t.Keeper.ChainID) {
		err = ErrNotReplayed
	}
	return l, err
}

// GivenUp returns the newest letter of each job.
func (t Topic) GivenUp(ctx context.Context) ([]Letter, error) {
	found, err := t.Letters(ctx, wire.JobTopic(t.Keeper.ChainID), 0)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	slices.Reverse(found)
	found = slices.DeleteFunc(found, func(l Letter) bool {
		id := l.Header("job")
		older := seen[id]
		seen[id] = true
		return older
	})
	slices.Reverse(found)
	return found, nil
}

// Replay publishes the jobs of letters again, as of the block that the state stands at. After an error those that are
// returned were published all the same.
func (t Topic) Replay(ctx context.Context, letters []Letter) (said []Said, at chain.BlockRef, err error) {
	if at, err = t.present(ctx); err != nil {
		return nil, at, err
	}
	for _, l := range letters {
		s, err := t.sayAgain(ctx, l, at)
		if err != nil {
			return said, at, fmt.Errorf("replaying letter %d: %w", l.Offset, err)
		}
		said = append(said, s)
	}
	return said, at, nil
}

// present is the block the state stands at.
func (t Topic) present(ctx context.Context) (chain.BlockRef, error) {
	standing, err := t.State.Standing(ctx)
	switch {
	case err != nil:
		return chain.BlockRef{}, fmt.Errorf("asking how far the state is: %w", err)
	case standing.Halted != "":
		return chain.BlockRef{}, fmt.Errorf("the state is halted, and no sender would act on it: %s", standing.Halted)
	case standing.Watermark.Hash.IsZero():
		return chain.BlockRef{}, errors.New("the state has no block yet, and no sender would act on it")
	}
	return standing.Watermark.BlockRef, nil
}

// sayAgain writes the job as it was, to where its signer's jobs are, but for the block it is known from: a sender
// passes over what was known before the last arm ended, and this is the operator's word that the job is still to be
// done.
func (t Topic) sayAgain(ctx context.Context, l Letter, at chain.BlockRef) (s Said, err error) {
	message, _, err := wire.Decode(l.Record)
	if err != nil {
		return s, err
	}
	said, is := message.(wire.Job)
	if !is {
		return s, fmt.Errorf("it holds a %T and no job", message)
	}
	j := said.Job
	if key := l.Header("source.key"); !bytes.Equal([]byte(key), j.Signer[:]) {
		return s, fmt.Errorf("its key %x is not the job's signer %s", key, j.Signer)
	}
	j.Evidence.Block = at
	record, err := wire.Encode(j.Signer[:], wire.Job{Job: j}, 0, 0)
	if err != nil {
		return s, err
	}
	partition := wire.SignerPartition(j.Signer, t.Keeper.JobPartitions)
	if _, err := t.Client.Producer(wire.JobTopic(t.Keeper.ChainID)).
		Produce(ctx, partition, []bus.Record{record}); err != nil {
		return s, err
	}
	return Said{j.ID, partition}, nil
}
