package keeperctl

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"perpkeeper/pkg/bus"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/wire"
)

const dlqUsage = "dlq list [SOURCE] | show OFFSET | replay OFFSET | replay SOURCE"

// dlq lets operators read the dead letter topic and have jobs done that were given up.
func dlq(ctx context.Context, s *session, args []string) error {
	ctx, cancel := s.within(ctx)
	defer cancel()
	client, err := s.kafka()
	if err != nil {
		return err
	}
	defer client.Close()
	db, err := s.anyDatabase(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	return deadLetters{client: client, state: db, keeper: s.Keeper, limit: s.Own.Limit, out: s.out}.run(ctx, args)
}

// deadLetters is one invocation of the command.
type deadLetters struct {
	client *bus.Client
	state  interface {
		Standing(ctx context.Context) (pg.Standing, error)
	}
	keeper wire.Config
	limit  int
	out    printer
}

func (d deadLetters) run(ctx context.Context, args []string) error {
	verb, rest := "", args
	if len(args) > 0 {
		verb, rest = args[0], args[1:]
	}
	switch {
	case verb == "list" && len(rest) == 0:
		return d.list(ctx, "")
	case verb == "list" && len(rest) == 1:
		source, known := d.source(rest[0])
		if !known {
			return usagef("%q is no topic of this keeper (write job, log, price or result, or a topic's whole name)",
				rest[0])
		}
		return d.list(ctx, source)
	case verb == "show" && len(rest) == 1:
		return d.show(ctx, rest[0])
	case verb == "replay" && len(rest) == 1:
		return d.replay(ctx, rest[0])
	}
	return usagef("usage: keeperctl %s", dlqUsage)
}

// source is the topic that an operator means.
func (d deadLetters) source(name string) (topic string, known bool) {
	t, known := topicOf(d.keeper, name)
	return t.Name, known
}

// onlyPartition is the one of the dead letter topic.
const onlyPartition = 0

// letter is a record of the dead letter topic: another topic's record, with where it came from and why in further
// headers.
type letter struct{ bus.Record }

func (l letter) source() string { return string(l.Key) }

func (l letter) header(key string) string {
	i := slices.IndexFunc(l.Headers, func(h bus.Header) bool { return h.Key == key })
	if i < 0 {
		return ""
	}
	return string(l.Headers[i].Value)
}

// place is where the record was in its source; jobs are written anew and have no offset there.
func (l letter) place() string {
	place := l.header("source.partition")
	if offset := l.header("source.offset"); offset != "" {
		place += "/" + offset
	}
	return place
}

// about is what the letter is about, as far as its headers say.
func (l letter) about() string {
	if id := l.header("job"); id != "" {
		return fmt.Sprintf("%s arm %s", id, l.header("arm"))
	}
	return l.header("t")
}

// why is what went wrong, on one line.
func (l letter) why() string {
	why := firstLine(l.header("error"))
	if outcome := l.header("outcome"); outcome != "" {
		why = strings.TrimSuffix(outcome+": "+why, ": ")
	}
	return why
}

// letters reads what there is, oldest first, from a source or from all.
func (d deadLetters) letters(ctx context.Context, source string) (found []letter, err error) {
	topic := wire.DeadLetterTopic(d.keeper.ChainID)
	first, end, err := d.client.Bounds(ctx, topic, onlyPartition)
	if err != nil {
		return nil, notAsked(err)
	}
	for reader := d.client.Reader(topic, onlyPartition, first); reader.Offset() < end; {
		batch, err := reader.NextBatch(ctx, int(min(1000, end-reader.Offset())))
		if err != nil {
			return nil, err
		}
		for _, r := range batch {
			if l := (letter{r}); source == "" || l.source() == source {
				found = append(found, l)
			}
		}
	}
	return found, nil
}

// letter reads one.
func (d deadLetters) letter(ctx context.Context, offset int64) (l letter, err error) {
	topic := wire.DeadLetterTopic(d.keeper.ChainID)
	first, end, err := d.client.Bounds(ctx, topic, onlyPartition)
	if err != nil {
		return l, notAsked(err)
	}
	if offset < first || offset >= end {
		return l, fmt.Errorf("there is no dead letter %d (keeperctl dlq list shows them; they are kept for 30 days)",
			offset)
	}
	l.Record, err = d.client.Reader(topic, onlyPartition, offset).Next(ctx)
	return l, err
}

func (d deadLetters) list(ctx context.Context, source string) error {
	found, err := d.letters(ctx, source)
	if err != nil {
		return err
	}
	rows := newTable("offset", "at", "source", "place", "about", "error")
	rows.empty = "no dead letters"
	left := max(len(found)-d.limit, 0)
	for _, l := range slices.Backward(found[left:]) {
		rows.add(l.Offset, moment(l.Time), l.source(), l.place(), l.about(), l.why())
	}
	if err := d.out.table(rows); err != nil || left == 0 {
		return err
	}
	return d.out.note(fmt.Sprintf("… %d more (keeperctl.limit)", left))
}

func (d deadLetters) show(ctx context.Context, text string) error {
	offset, err := letterOffset(text)
	if err != nil {
		return err
	}
	l, err := d.letter(ctx, offset)
	if err != nil {
		return err
	}
	return d.out.object(shownLetter(l))
}

func letterOffset(text string) (int64, error) {
	offset, err := strconv.ParseInt(text, 10, 64)
	if err != nil || offset < 0 {
		return 0, fmt.Errorf("%q is no offset of a dead letter (keeperctl dlq list shows them)", text)
	}
	return offset, nil
}

// shownLetter is a letter as show prints it. What cannot be decoded, which is what most letters of the log topic are
// about, is shown as it is.
func shownLetter(l letter) any {
	type shown struct {
		Offset  int64             `json:"offset"`
		At      time.Time         `json:"at"`
		Source  string            `json:"source"`
		Headers map[string]string `json:"headers"`
		Key     string            `json:"key,omitempty"`
		Message any               `json:"message,omitempty"`
		Decoded string            `json:"notDecoded,omitempty"`
		Value   string            `json:"value,omitempty"`
	}
	s := shown{Offset: l.Offset, At: l.Time.UTC(), Source: l.source(), Headers: map[string]string{}}
	for _, h := range l.Headers {
		s.Headers[h.Key] = readable(h.Value)
	}
	message, _, err := wire.Decode(l.Record)
	if err != nil {
		s.Decoded, s.Value = err.Error(), "0x"+hex.EncodeToString(l.Value)
		return s
	}
	s.Message = message
	return s
}

// readable is text as it is, and anything else as digits.
func readable(value []byte) string {
	if bytes.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == '\uFFFD' }) {
		return "0x" + hex.EncodeToString(value)
	}
	return string(value)
}

var errNeverReplayed = errors.New("only jobs are replayed. The state is what all records of the log topic make of " +
	"it in their order: " +
	"a record is never put in again. Its partition goes on from the same offset when a build understands it " +
	"(docs/runbooks/partition-stopped.md), or the state is built anew (keeperctl rebuild)")
