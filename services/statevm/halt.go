package statevm

import (
	"errors"
	"fmt"

	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/pg"
)

// halt is why a partition cannot go on: what it read is not understood, or cannot be true. Another try would meet the
// same.
type halt struct {
	error
	record *bus.Record // the record that is not understood, where it is one
	broken bool        // finality was contradicted: nobody may act on the state
}

func (h halt) Unwrap() error { return h.error }

func haltf(format string, args ...any) error { return halt{error: fmt.Errorf(format, args...)} }

// contradictf reports that what was called final is not.
func contradictf(format string, args ...any) error {
	return halt{error: fmt.Errorf(format, args...), broken: true}
}

// halts reports whether an error will come again at every try.
func halts(err error) bool {
	_, own := errors.AsType[halt](err)
	return own || errors.Is(err, bus.ErrGap) || errors.Is(err, bus.ErrForeignBatch) || pg.Refused(err)
}

// contradicts reports whether an error means that finality was broken.
func contradicts(err error) bool {
	h, own := errors.AsType[halt](err)
	return own && h.broken
}
