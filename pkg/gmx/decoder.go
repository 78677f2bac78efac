package gmx

import (
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
)

// Decoder turns logs of the EventEmitter at one address into events. It holds no state and may be shared.
type Decoder struct {
	emitter chain.Address
}

// NewDecoder returns a decoder for the logs of an EventEmitter.
func NewDecoder(emitter chain.Address) *Decoder { return &Decoder{emitter: emitter} }

// Transaction decodes logs of one transaction, in the order of their index, mined in a block of the given time (Unix milliseconds). The
// logs may be the part of a transaction that one routing key owns. Events that carry no state yield nothing.
//
// It fails with an [UnknownEventError] or a [DecodeError] and never panics.
func (d *Decoder) Transaction(logs []chain.Log, blockTimeMs uint64) ([]perp.Event, error) {
	var events []perp.Event
	for i, l := range logs {
		if err := checkFollows(logs[:i], l); err != nil {
			return nil, err
		}
		decoded, err := d.log(l, blockTimeMs)
		if err != nil {
			return nil, err
		}
		events = append(events, decoded...)
	}
	if err := joinInsolvent(events); err != nil {
		return nil, err
	}
	return events, nil
}

// checkFollows demands that a log comes after those before it, in the same transaction.
func checkFollows(before []chain.Log, l chain.Log) error {
	if len(before) == 0 {
		return nil
	}
	last := before[len(before)-1]
	if l.TxHash != last.TxHash || !last.Pos().Before(l.Pos()) {
		return fmt.Errorf("log at %s does not follow the one at %s in one transaction", placeOf(l), placeOf(last))
	}
	return nil
}

func (d *Decoder) log(l chain.Log, blockTimeMs uint64) ([]perp.Event, error) {
	kind, err := d.identify(l)
	if err != nil || kind.decode == nil {
		return nil, err
	}
	items, err := eventItems(l.Data)
	if err != nil {
		return nil, &DecodeError{Event: kind.name, Place: placeOf(l), Cause: err}
	}
	r := &reader{log: l, items: items, stamp: perp.Stamp{Block: l.Block, Log: l.Index, TxHash: l.TxHash, TimeMs: blockTimeMs}}
	r.checkOwner(kind.scope)
	if events := kind.decode(r); r.err == nil {
		return events, nil
	}
	return nil, &DecodeError{Event: kind.name, Place: placeOf(l), Cause: r.err}
}

// identify names the event of a log. The name in the data must be the one whose hash is the topic.
func (d *Decoder) identify(l chain.Log) (eventKind, error) {
	if l.Address != d.emitter {
		return eventKind{}, fmt.Errorf("log at %s is of %s, not of the EventEmitter %s", placeOf(l), l.Address, d.emitter)
	}
	topics, ok := emitterTopics(l)
	if !ok {
		e := &UnknownEventError{Place: placeOf(l)}
		if len(l.Topics) > 0 {
			e.Topic = l.Topics[0]
		}
		return eventKind{}, e
	}
	name, err := eventName(l.Data)
	if err != nil {
		return eventKind{}, &DecodeError{Event: l.Topics[1].Hex(), Place: placeOf(l), Cause: fmt.Errorf("reading its name: %w", err)}
	}
	kind, known := eventKinds[l.Topics[1]]
	switch {
	case !known && chain.Keccak256([]byte(name)) == l.Topics[1]:
		return eventKind{}, &UnknownEventError{Name: name, Topic: l.Topics[1], Place: placeOf(l)}
	case name != kind.name:
		return eventKind{}, &DecodeError{Event: name, Place: placeOf(l), Cause: fmt.Errorf("its topic %s is not the hash of its name", l.Topics[1])}
	case kind.decode != nil && topics != kind.topics:
		return eventKind{}, &DecodeError{Event: name, Place: placeOf(l), Cause: fmt.Errorf("it has %d topics of its own, want %d", topics, kind.topics)}
	}
	return kind, nil
}

// emitterTopics returns how many topics follow the name's hash, and whether the log is one of the three forms of EventLog.
func emitterTopics(l chain.Log) (topics int, ok bool) {
	topics = len(l.Topics) - 2
	return topics, topics >= 0 && topics < len(eventLogTopics) && l.Topics[0] == eventLogTopics[topics]
}

// joinInsolvent completes each insolvent close with the position that the same order decreases later in the transaction: the event names
// none.
func joinInsolvent(events []perp.Event) error {
	for i, e := range events {
		insolvent, ok := e.(perp.ClosedInsolvent)
		if !ok {
			continue
		}
		position, ok := decreasedBy(events[i:], insolvent.Debt.OrderKey)
		if !ok {
			s := insolvent.Debt.Stamp
			return &DecodeError{
				Event: "InsolventClose", Place: Place{Block: s.Block, Index: s.Log, TxHash: s.TxHash},
				Cause: fmt.Errorf("no PositionDecrease of order %s follows it in the transaction", insolvent.Debt.OrderKey),
			}
		}
		insolvent.Debt.PositionKey, insolvent.Debt.Account, insolvent.Debt.Market = position.PositionKey, position.Account, position.Market
		events[i] = insolvent
	}
	return nil
}

func decreasedBy(events []perp.Event, order chain.Hash) (perp.Position, bool) {
	for _, e := range events {
		if d, ok := e.(perp.PositionDecreased); ok && d.OrderKey == order {
			return d.Position, true
		}
	}
	return perp.Position{}, false
}
