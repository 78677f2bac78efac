package keeperctl

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"time"

	"perpkeeper/pkg/operator/deadletter"
	"perpkeeper/pkg/operator/text"
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
	return deadLetters{deadletter.Topic{Client: client, State: db, Keeper: s.Keeper}, s.Own.Limit, s.out}.run(ctx, args)
}

// deadLetters is one invocation of the command.
type deadLetters struct {
	deadletter.Topic

	limit int
	out   printer
}

func (d deadLetters) run(ctx context.Context, args []string) error {
	if _, _, err := d.Client.Bounds(ctx, wire.DeadLetterTopic(d.Keeper.ChainID), 0); err != nil {
		return notAsked(err)
	}
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
	t, known := topicOf(d.Keeper, name)
	return t.Name, known
}

func (d deadLetters) list(ctx context.Context, source string) error {
	found, err := d.Letters(ctx, source, 0)
	if err != nil {
		return err
	}
	rows := newTable("offset", "at", "source", "place", "about", "error")
	rows.empty = "no dead letters"
	left := max(len(found)-d.limit, 0)
	for _, l := range slices.Backward(found[left:]) {
		rows.add(l.Offset, text.Moment(l.Time), l.Source(), l.Place(), l.About(), l.Why())
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
	l, err := d.Letter(ctx, offset)
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
func shownLetter(l deadletter.Letter) any {
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
	s := shown{Offset: l.Offset, At: l.Time.UTC(), Source: l.Source(), Headers: map[string]string{}}
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
