package gmx

import (
	"fmt"
	"slices"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Decoder turns logs of EventEmitters into events. It holds no state and may be shared.
type Decoder struct {
	emitters []chain.Address // none = the logs were chosen already
	copies   bool            // parameters' logs are copies: what else they say is said elsewhere
	ignored  map[string]bool // names of unknown events that touch nothing, as the operator knows
	passing  bool            // every unknown event is passed over
}

// NewDecoder returns a decoder for the logs of the given EventEmitters. Without any it takes every log for one of
// theirs, as all of the log topic are.
func NewDecoder(emitters ...chain.Address) *Decoder { return &Decoder{emitters: emitters} }

// For returns the decoder for the logs of one partition of the log topic. The logs of parameters go to every partition
// (see [IsParameter]); what such a log means beside its parameter makes rows of partition 0 alone.
func (d *Decoder) For(partition int) *Decoder {
	own := *d
	own.copies = partition != 0
	return &own
}

// Passing returns a decoder that passes over every event it does not know, for readers that keep no rows and ask only
// what known events say.
func (d *Decoder) Passing() *Decoder {
	own := *d
	own.passing = true
	return &own
}

// takes reports whether a log is of an EventEmitter.
func (d *Decoder) takes(l *chain.Log) bool {
	return len(d.emitters) == 0 || slices.Contains(d.emitters, l.Address)
}

// Transaction decodes logs of one transaction, in the order of their index, mined in a block of the given time (Unix
// milliseconds). The logs may be the part of a transaction that one routing key owns. Events that carry no state yield
// nothing.
//
// So does an unknown event of administration: see unknown.go. It fails with an [UnknownEventError] or a [DecodeError],
// and never panics.
func (d *Decoder) Transaction(logs []chain.Log, blockTimeMs uint64) ([]perp.Event, error) {
	r := reader{joins: joins{events: make([]perp.Event, 0, len(logs))}}
	for i := range logs {
		l := &logs[i]
		if i > 0 {
			if err := checkFollows(&logs[i-1], l); err != nil {
				return nil, err
			}
		}
		if err := d.log(&r, l, blockTimeMs); err != nil {
			return nil, err
		}
	}
	if err := r.join(); err != nil {
		return nil, err
	}
	return r.events, nil
}

// checkFollows demands that a log comes after the one before it, in the same transaction.
func checkFollows(last, l *chain.Log) error {
	if l.TxHash != last.TxHash || !last.Pos().Before(l.Pos()) {
		return fmt.Errorf("log at %s does not follow the one at %s in one transaction", placeOf(l), placeOf(last))
	}
	return nil
}

// log adds the events of one log to those of the reader.
func (d *Decoder) log(r *reader, l *chain.Log, blockTimeMs uint64) error {
	kind, err := d.identify(l)
	if err != nil {
		return d.pass(l, err)
	}
	if kind.decode == nil {
		return nil
	}
	if err := r.load(l, kind); err != nil {
		return r.fault(err)
	}
	r.copies = d.copies
	r.stamp = perp.Stamp{Block: l.Block, Log: l.Index, TxHash: l.TxHash, TimeMs: blockTimeMs}
	r.checkOwner()
	if kind.decode(r); r.err != nil {
		return r.fault(r.err)
	}
	return nil
}

// identify names the event of a log. The name in the data must be the one whose hash is the topic.
func (d *Decoder) identify(l *chain.Log) (*eventKind, error) {
	if !d.takes(l) {
		return nil, fmt.Errorf("log at %s is of %s, not of the EventEmitter %s", placeOf(l), l.Address, d.emitters)
	}
	topics, ok := emitterTopics(l)
	if !ok {
		e := &UnknownEventError{Place: placeOf(l)}
		if len(l.Topics) > 0 {
			e.Topic = l.Topics[0]
		}
		return nil, e
	}
	name, err := eventName(l.Data)
	if err != nil {
		return nil, &DecodeError{Event: l.Topics[1].Hex(), Place: placeOf(l),
			Cause: fmt.Errorf("reading its name: %w", err)}
	}
	kind, known := eventKinds[l.Topics[1]]
	switch {
	case !known && chain.Keccak256(name) == l.Topics[1]:
		return nil, &UnknownEventError{Name: string(name), Topic: l.Topics[1], Place: placeOf(l)}
	case !known || string(name) != kind.name:
		cause := fmt.Errorf("its topic %s is not the hash of its name", l.Topics[1])
		return nil, &DecodeError{Event: string(name), Place: placeOf(l), Cause: cause}
	case kind.decode != nil && topics != kind.topics:
		cause := fmt.Errorf("it has %d topics of its own, want %d (contracts before v2.2 are not supported)", topics,
			kind.topics)
		return nil, &DecodeError{Event: kind.name, Place: placeOf(l), Cause: cause}
	}
	return kind, nil
}

// emitterTopics returns how many topics follow the name's hash, and whether the log is one of the three forms of
// EventLog.
func emitterTopics(l *chain.Log) (topics int, ok bool) {
	topics = len(l.Topics) - 2
	return topics, topics >= 0 && topics < len(eventLogTopics) && l.Topics[0] == eventLogTopics[topics]
}
