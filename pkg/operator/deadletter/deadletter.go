// Package deadletter reads the dead letter topic, and has jobs done that were given up. It is what operators do by the
// command line and by the console.
//
// Guaranteed: only jobs are replayed. A job goes back as it was, to where its signer's jobs are, but for the block it
// is known from. A sender looks at a job anew before it does anything about it, and has one attempt of it at a time:
// replaying a job, or doing so twice, executes nothing twice.
package deadletter

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
)

// partition is the one of the dead letter topic.
const partition = 0

// Topic is a keeper's dead letter topic, and what a replay needs beside it.
type Topic struct {
	Client *bus.Client
	State  State
	Keeper wire.Config
}

// State returns how far the state is.
type State interface {
	Progress(ctx context.Context) (pg.Progress, error)
}

// Letter is a record of the dead letter topic: another topic's record, with where it came from and why in further
// headers.
type Letter struct{ bus.Record }

// Source is the topic that the record was in.
func (l Letter) Source() string { return string(l.Key) }

// Header is the text of a header; empty where there is none.
func (l Letter) Header(key string) string {
	i := slices.IndexFunc(l.Headers, func(h bus.Header) bool { return h.Key == key })
	if i < 0 {
		return ""
	}
	return string(l.Headers[i].Value)
}

// Place is where the record was in its source; jobs are written anew and have no offset there.
func (l Letter) Place() string {
	place := l.Header("source.partition")
	if offset := l.Header("source.offset"); offset != "" {
		place += "/" + offset
	}
	return place
}

// About is what the letter is about, as far as its headers say.
func (l Letter) About() string {
	if id := l.Header("job"); id != "" {
		return fmt.Sprintf("%s attempt %s", id, l.Header("attempt"))
	}
	return cmp.Or(l.Header("endpoint"), l.Header("t"))
}

// Why is what went wrong, on one line.
func (l Letter) Why() string {
	why := text.FirstLine(l.Header("error"))
	if outcome := l.Header("outcome"); outcome != "" {
		why = strings.TrimSuffix(outcome+": "+why, ": ")
	}
	return why
}

// Letters reads the newest records that there are, oldest first, and returns those of a source, or of all; newest 0
// reads every record.
func (t Topic) Letters(ctx context.Context, source string, newest int64) (found []Letter, err error) {
	topic := wire.DeadLetterTopic(t.Keeper.ChainID)
	first, end, err := t.Client.Bounds(ctx, topic, partition)
	if err != nil {
		return nil, err
	}
	if newest > 0 {
		first = end - newest
	}
	for r, err := range t.Client.Scan(ctx, topic, partition, first) {
		if err != nil {
			return nil, err
		}
		if l := (Letter{r}); source == "" || l.Source() == source {
			found = append(found, l)
		}
	}
	return found, nil
}

// Letter reads one.
func (t Topic) Letter(ctx context.Context, offset int64) (l Letter, err error) {
	topic := wire.DeadLetterTopic(t.Keeper.ChainID)
	first, end, err := t.Client.Bounds(ctx, topic, partition)
	if err != nil {
		return l, err
	}
	if offset < first || offset >= end {
		return l, fmt.Errorf("there is no dead letter %d (keeperctl dlq list shows them; they are kept for 30 days)",
			offset)
	}
	l.Record, err = t.Client.Reader(topic, partition, offset).Next(ctx)
	return l, err
}

// ErrNotReplayed refuses letters of other topics than that of jobs.
var ErrNotReplayed = errors.New("only jobs are replayed. The state is what all records of the log topic make of " +
	"it in their order: " +
	"a record is never put in again. Its partition goes on from the same offset when a build understands it " +
	"(docs/runbooks/halted.md), or the state is built anew (keeperctl rebuild)")

// Replayed is a job that was published again.
type Replayed struct {
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
func (t Topic) Replay(ctx context.Context, letters []Letter) (replayed []Replayed, at chain.BlockRef, err error) {
	if at, err = t.present(ctx); err != nil {
		return nil, at, err
	}
	for _, l := range letters {
		s, err := t.republish(ctx, l, at)
		if err != nil {
			return replayed, at, fmt.Errorf("replaying letter %d: %w", l.Offset, err)
		}
		replayed = append(replayed, s)
	}
	return replayed, at, nil
}

// present is the block the state stands at.
func (t Topic) present(ctx context.Context) (chain.BlockRef, error) {
	progress, err := t.State.Progress(ctx)
	switch {
	case err != nil:
		return chain.BlockRef{}, fmt.Errorf("asking how far the state is: %w", err)
	case progress.Halted != "":
		return chain.BlockRef{}, fmt.Errorf("the state is halted, and no sender would act on it: %s", progress.Halted)
	case progress.Watermark.Hash.IsZero():
		return chain.BlockRef{}, errors.New("the state has no block yet, and no sender would act on it")
	}
	return progress.Watermark, nil
}

// republish writes the job as it was, to where its signer's jobs are, but for the block it is known from: a sender
// passes over what was known before the last attempt ended, and this is the operator's word that the job is still to be
// done.
func (t Topic) republish(ctx context.Context, l Letter, at chain.BlockRef) (s Replayed, err error) {
	message, _, err := wire.Decode(l.Record)
	if err != nil {
		return s, err
	}
	replayed, is := message.(wire.Job)
	if !is {
		return s, fmt.Errorf("it holds a %T and no job", message)
	}
	j := replayed.Job
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
	return Replayed{j.ID, partition}, nil
}
