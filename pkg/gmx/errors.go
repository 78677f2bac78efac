package gmx

import (
	"fmt"

	"perpkeeper/pkg/chain"
)

// UnknownEventError reports that the contracts emitted an event this package does not know: a newer version, or the
// wrong address. It names a position, an order, a market or an account, so rows may follow from it, and no row of its
// owner can be trusted after it.
type UnknownEventError struct {
	// Name is the event's name, empty if it is not one of the EventEmitter's three forms at all.
	Name  string
	Topic chain.Hash // the name's hash, or topic 0
	Item  string     // the item that names what it touches
	Place
}

// Error implements error.
func (e *UnknownEventError) Error() string {
	if e.Name == "" {
		return fmt.Sprintf("%s is no event of the EventEmitter (topic %s)", e.Place, e.Topic)
	}
	return fmt.Sprintf("unknown event %q at %s, whose item %q says that rows may follow from it: run a build that "+
		"knows it, or name it in venue.ignore_events if none do", e.Name, e.Place, e.Item)
}

// DecodeError reports that a known event does not look as expected: the contracts' version differs, or the data is
// damaged.
type DecodeError struct {
	Event string
	Place
	Cause error
}

// Error implements error.
func (e *DecodeError) Error() string {
	return fmt.Sprintf("event %s at %s: %v", e.Event, e.Place, e.Cause)
}

// Unwrap returns the cause.
func (e *DecodeError) Unwrap() error { return e.Cause }

// Place is the position of a log on the chain.
type Place struct {
	Block  uint64
	Index  uint32
	TxHash chain.Hash
}

// String names the place for an operator.
func (p Place) String() string {
	return fmt.Sprintf("block %d, transaction %s, log %d", p.Block, p.TxHash, p.Index)
}

func placeOf(l *chain.Log) Place { return Place{Block: l.Block, Index: l.Index, TxHash: l.TxHash} }
