// Package deadletter reads the dead letter topic, and has jobs done that were given up. It is what operators do by the
// command line and by the console.
//
// Guaranteed: only jobs are replayed. A job goes back as it was, to where its signer's jobs are, but for the block it
// is known from. A sender looks at a job anew before it does anything about it, and has one arm of it at a time:
// replaying a job, or doing so twice, executes nothing twice.
package deadletter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/wire"
)

// partition is the one of the dead letter topic.
const partition = 0

// Topic is a keeper's dead letter topic, and what a replay needs beside it.
type Topic struct {
	Client *bus.Client
	State  State
	Keeper wire.Config
}

// State says how far the state is.
type State interface {
	Standing(ctx context.Context) (pg.Standing, error)
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
		return fmt.Sprintf("%s arm %s", id, l.Header("arm"))
	}
	return l.Header("t")
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
