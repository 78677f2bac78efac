package keeperctl

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/operator/deadletter"
	"perpkeeper/pkg/operator/text"
	"perpkeeper/pkg/txmgr/txm"
)

// dlq lets operators read the dead letter topic and have jobs done that were given up.
func dlq(ctx context.Context, s *session, args []string) error {
	client, err := s.kafka()
	if err != nil {
		return err
	}
	db, err := s.anyDatabase(ctx)
	if err != nil {
		return err
	}
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
	return verbs{"list": d.list, "show": d.show, "replay": d.replay}.do(ctx, "dlq", args)
}

// source is the topic that an operator means.
func (d deadLetters) source(name string) (topic string, known bool) {
	t, known := topicOf(d.Keeper, name)
	if name == wire.Disputes {
		return name, true
	}
	return t.Name, known
}

func (d deadLetters) list(ctx context.Context, args []string) error {
	source := ""
	if len(args) > 0 {
		var known bool
		if source, known = d.source(args[0]); !known {
			return usagef("%q is no topic of this keeper (write job, log, price or result, a topic's whole name, or "+
				"endpoint for what endpoints say against each other)",
				args[0])
		}
	}
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

func (d deadLetters) show(ctx context.Context, args []string) error {
	offset, err := letterOffset(args[0])
	if err != nil {
		return err
	}
	l, err := d.Letter(ctx, offset)
	if err != nil {
		return err
	}
	return d.out.object(shownOf(l.Record, true))
}

func letterOffset(text string) (int64, error) {
	offset, err := strconv.ParseInt(text, 10, 64)
	if err != nil || offset < 0 {
		return 0, fmt.Errorf("%q is no offset of a dead letter (keeperctl dlq list shows them)", text)
	}
	return offset, nil
}

// readable is text as it is, and anything else as digits.
func readable(value []byte) string {
	if bytes.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == '\uFFFD' }) {
		return "0x" + hex.EncodeToString(value)
	}
	return string(value)
}

// replay has one job, or every job that was given up, published again.
func (d deadLetters) replay(ctx context.Context, args []string) error {
	chosen, err := d.choose(ctx, args[0])
	if err != nil {
		return err
	}
	replayed, at, err := d.Replay(ctx, chosen)
	for _, s := range replayed {
		if failed := sayf(d.out, "%s: partition %d\n", s.JobID, s.Partition); failed != nil {
			return errors.Join(err, failed)
		}
	}
	if err != nil {
		return err
	}
	return sayf(d.out, "%d said again as of block %d; a sender takes a job up unless it is doing it, "+
		"or the rest after its last attempt is not over at that block (%s of chain time, up to %s for what goes on "+
		"reverting); what becomes of it is in %s\n", len(replayed), at.Number,
		txm.CoolDown(job.Refused, txm.Retries, 0), txm.CoolDown(job.Reverted, math.MaxUint32, 0),
		wire.ResultTopic(d.Keeper.ChainID))
}

// choose returns the letter at an offset, or the newest one of each job.
func (d deadLetters) choose(ctx context.Context, which string) ([]deadletter.Letter, error) {
	if strings.Trim(which, "0123456789") == "" {
		offset, err := letterOffset(which)
		if err != nil {
			return nil, err
		}
		l, err := d.Replayable(ctx, offset)
		return []deadletter.Letter{l}, err
	}
	if source, _ := d.source(which); source != wire.JobTopic(d.Keeper.ChainID) {
		return nil, deadletter.ErrNotReplayed
	}
	return d.GivenUp(ctx)
}
