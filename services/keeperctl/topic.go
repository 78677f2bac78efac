package keeperctl

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/deadletter"
)

// topicView is what of a topic is shown, and how.
type topicView struct {
	client    *bus.Client
	keeper    wire.Config
	out       printer
	now       time.Time
	partition int // -1 = all
	key, kind string
	from, to  string
	decode    bool
	follow    bool
}

const topicUsage = "topic cat|tail log|price|job|result|dlq"

// topicCommand prints the records of a topic that there are (cat), or those that come from now on (tail).
func topicCommand(follow bool) func(*cobra.Command) runner {
	return func(cmd *cobra.Command) runner {
		v := topicView{follow: follow}
		flags := cmd.Flags()
		flags.IntVar(&v.partition, "partition", -1, "only this partition; -1 = all")
		flags.StringVar(&v.key, "key", "", "only records whose key is this text or begins with these hexadecimal "+
			"digits, 0x…")
		flags.StringVar(&v.kind, "kind", "", "only records of this kind, such as LOG, BLOCK_END, JOB")
		flags.StringVar(&v.from, "from", "", "where to begin: an offset, a moment such as 2026-01-31T12:00:00Z, or "+
			"a time back such as 10m")
		if !follow {
			flags.StringVar(&v.to, "to", "", "where to end, as --from; what is there belongs to it no more")
		}
		flags.BoolVar(&v.decode, "decode", false, "print what is in the records, as JSON")
		return func(ctx context.Context, s *session, args []string) error {
			if len(args) != 1 {
				return usagef("name one topic; usage: keeperctl %s", topicUsage)
			}
			client, err := s.kafka()
			if err != nil {
				return err
			}
			v.client, v.keeper, v.out, v.now = client, s.Keeper, s.out, time.Now()
			return v.print(ctx, args[0], s.Own.Patience)
		}
	}
}

// span is the part of a partition that is asked for.
type span struct {
	partition int
	from, to  int64
}

func (v topicView) print(ctx context.Context, name string, patience time.Duration) error {
	topic, known := topicOf(v.keeper, name)
	if !known {
		return usagef("%q is no topic of this keeper; usage: keeperctl %s", name, topicUsage)
	}
	if v.partition < -1 || v.partition >= topic.Partitions {
		return usagef("--partition: %s has %d, from 0 on", topic.Name, topic.Partitions)
	}
	spans, err := v.spans(ctx, topic, patience)
	if err != nil {
		return err
	}
	if !v.follow {
		for _, s := range spans {
			if err := v.read(ctx, topic.Name, s); err != nil {
				return err
			}
		}
		return nil
	}
	readers, ctx := errgroup.WithContext(ctx)
	for _, s := range spans {
		readers.Go(func() error { return v.read(ctx, topic.Name, s) })
	}
	if err := readers.Wait(); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil // somebody has seen enough
}

// topicOf is the topic that an operator means by its name or the short form of it, such as job.
func topicOf(keeper wire.Config, name string) (topic wire.Topic, known bool) {
	for _, t := range keeper.Topics() {
		if name == t.Name || strings.HasPrefix(t.Name, fmt.Sprintf("perp.%d.%s.", keeper.ChainID, name)) {
			return t, true
		}
	}
	return topic, false
}

// spans asks where each partition is to be read.
func (v topicView) spans(ctx context.Context, topic wire.Topic, patience time.Duration) (all []span, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience,
		fmt.Errorf("gave up after %s (keeperctl.patience)", patience))
	defer cancel()
	for p := range topic.Partitions {
		if v.partition >= 0 && p != v.partition {
			continue
		}
		first, end, err := v.client.Bounds(ctx, topic.Name, p)
		if err != nil {
			return nil, notAsked(err)
		}
		s := span{partition: p, from: first, to: end}
		if v.follow {
			s.from = end
		}
		if s.from, err = v.place(ctx, topic.Name, p, v.from, s.from); err != nil {
			return nil, fmt.Errorf("--from: %w", err)
		}
		if s.to, err = v.place(ctx, topic.Name, p, v.to, s.to); err != nil {
			return nil, fmt.Errorf("--to: %w", err)
		}
		s.from, s.to = min(max(s.from, first), end), min(s.to, end)
		all = append(all, s)
	}
	return all, nil
}

// place is the offset that a text means in a partition.
func (v topicView) place(ctx context.Context, topic string, partition int, text string, otherwise int64) (int64,
	error) {
	if text == "" {
		return otherwise, nil
	}
	if offset, err := strconv.ParseInt(text, 10, 64); err == nil && offset >= 0 {
		return offset, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if back, wrong := time.ParseDuration(text); err != nil && wrong == nil && back > 0 {
		at, err = v.now.Add(-back), nil
	}
	if err != nil {
		return 0, usagef("%q is no offset, no moment such as 2026-01-31T12:00:00Z and no time back such as 10m", text)
	}
	offset, err := v.client.OffsetAt(ctx, topic, partition, at)
	return offset, notAsked(err)
}

// read prints what is asked for of a partition: up to the end of the span, or for ever.
func (v topicView) read(ctx context.Context, topic string, s span) error {
	for reader := v.client.Reader(topic, s.partition, s.from); v.follow || reader.Offset() < s.to; {
		limit := int64(1000)
		if !v.follow {
			limit = min(limit, s.to-reader.Offset())
		}
		records, err := reader.NextBatch(ctx, int(limit))
		if err != nil {
			return err
		}
		for _, r := range records {
			if !v.wants(r) {
				continue
			}
			if err := v.line(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v topicView) wants(r bus.Record) bool {
	if v.kind != "" && !strings.EqualFold(v.kind, headerOf(r, "t")) {
		return false
	}
	digits, isHex := strings.CutPrefix(strings.ToLower(v.key), "0x")
	return v.key == "" || string(r.Key) == v.key || isHex && strings.HasPrefix(hex.EncodeToString(r.Key), digits)
}

func headerOf(r bus.Record, key string) string { return deadletter.Letter{Record: r}.Header(key) }

// shownRecord is a record as JSON has it. The key of a dead letter is the topic it was in.
type shownRecord struct {
	Partition int               `json:"partition"`
	Offset    int64             `json:"offset"`
	At        time.Time         `json:"at"`
	Kind      string            `json:"kind"`
	Key       string            `json:"key"`
	Bytes     int               `json:"bytes"`
	Headers   map[string]string `json:"headers"`
	Message   any               `json:"message,omitempty"`
	Problem   string            `json:"notDecoded,omitempty"`
	Value     string            `json:"value,omitempty"`
}

// shownOf is a record as it is shown, with what is in it or without. What cannot be decoded, which is what most letters
// of the log topic are about, is shown as it is.
func shownOf(r bus.Record, decode bool) shownRecord {
	s := shownRecord{
		Partition: r.Partition, Offset: r.Offset, At: r.Time.UTC(), Kind: headerOf(r, "t"), Key: keyText(r.Key),
		Bytes: len(r.Value), Headers: map[string]string{},
	}
	for _, h := range r.Headers {
		s.Headers[h.Key] = readable(h.Value)
	}
	if !decode {
		return s
	}
	if s.Key == wire.Disputes && json.Valid(r.Value) {
		s.Message = json.RawMessage(r.Value)
		return s
	}
	message, _, err := wire.Decode(r)
	if s.Message = message; err != nil {
		s.Message, s.Problem, s.Value = nil, err.Error(), "0x"+hex.EncodeToString(r.Value)
	}
	return s
}

// line prints one record on one line, in one piece, so that readers side by side do not mix them.
func (v topicView) line(r bus.Record) error {
	s := shownOf(r, v.decode)
	if v.out.json {
		return json.NewEncoder(v.out).Encode(s)
	}
	content := fmt.Sprintf("%d bytes", s.Bytes)
	switch {
	case s.Problem != "":
		content = s.Problem + " " + s.Value
	case v.decode:
		var text bytes.Buffer
		if err := json.NewEncoder(&text).Encode(s.Message); err != nil {
			return err
		}
		content = strings.TrimSpace(text.String())
	}
	_, err := fmt.Fprintf(v.out, "%d/%d %s %s %s %s\n", s.Partition, s.Offset, s.At.Format("2006-01-02T15:04:05.000Z"),
		inLine(s.Kind), inLine(s.Key), inLine(content))
	return err
}

// keyText is a key as text where it is one, and as digits otherwise.
func keyText(key []byte) string {
	for _, b := range key {
		if b < ' ' || b > '~' {
			return "0x" + hex.EncodeToString(key)
		}
	}
	return string(key)
}
