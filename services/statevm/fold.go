package statevm

import (
	"errors"
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/gmx"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
)

// decoder understands the contracts' logs. The logs of one call are of one transaction.
type decoder interface {
	Transaction(logs []chain.Log, blockTimeMs uint64) ([]perp.Event, error)
	// Unknown returns the name of an event that is passed over without being known.
	Unknown(l chain.Log) (name string, is bool)
}

// txEvents is the events of one transaction or block record, and where they are from.
type txEvents struct {
	block  uint64
	tx     chain.Hash // zero for a parameter
	events []perp.Event
}

// decode fills the happenings. Logs stand together by transaction.
func (s *blockPart) decode(d decoder) error {
	for from := 0; from < len(s.messages); {
		to := from + 1
		switch m := s.messages[from].(type) {
		case wire.Log:
			for to < len(s.messages) && sameTransaction(m, s.messages[to]) {
				to++
			}
			logs := logsOf(s.messages[from:to])
			events, err := d.Transaction(logs, s.timeMs(m.Block))
			if err != nil {
				return halt{error: fmt.Errorf("block %d, transaction %s: %w", m.Block, m.TxHash, err),
					record: blamed(err, s.records[from:to], s.messages[from:to])}
			}
			s.events = append(s.events, txEvents{m.Block, m.TxHash, events})
			for _, l := range logs {
				if name, is := d.Unknown(l); is {
					s.unknown = append(s.unknown, name)
				}
			}
		case wire.Tx:
			s.events = append(s.events, txEvents{m.Block, m.Hash, []perp.Event{s.transaction(m)}})
		case wire.Param:
			s.events = append(s.events,
				txEvents{m.Block.Number, chain.Hash{}, []perp.Event{m.Event(s.timeMs(m.Block.Number))}})
		case wire.Audit:
			s.events = append(s.events,
				txEvents{m.Block.Number, chain.Hash{}, []perp.Event{m.Event(s.timeMs(m.Block.Number))}})
		}
		from = to
	}
	return nil
}

// keep leaves out the logs that make no rows of this partition: what the scanner did not understand is in all of them.
func (s *blockPart) keep(own func(key chain.Hash) bool) {
	if own == nil {
		return
	}
	records, messages := s.records[:0], s.messages[:0]
	for i, m := range s.messages {
		var key chain.Hash
		copy(key[:], s.records[i].Key)
		if l, isLog := m.(wire.Log); isLog && !gmx.Concerns(l.Log, key, own) {
			continue
		}
		records, messages = append(records, s.records[i]), append(messages, m)
	}
	s.records, s.messages = records, messages
}

func sameTransaction(first wire.Log, m wire.Message) bool {
	l, isLog := m.(wire.Log)
	return isLog && l.TxHash == first.TxHash
}

func logsOf(messages []wire.Message) []chain.Log {
	logs := make([]chain.Log, 0, len(messages))
	for _, m := range messages {
		if l, isLog := m.(wire.Log); isLog {
			logs = append(logs, l.Log)
		}
	}
	return logs
}

// blamed finds the record whose log could not be decoded, where the error names it; else it is the first of the
// transaction.
func blamed(err error, records []bus.Record, messages []wire.Message) *bus.Record {
	var at gmx.Place
	if unknown, is := errors.AsType[*gmx.UnknownEventError](err); is {
		at = unknown.Place
	} else if broken, is := errors.AsType[*gmx.DecodeError](err); is {
		at = broken.Place
	}
	for i, m := range messages {
		if l, isLog := m.(wire.Log); isLog && l.TxHash == at.TxHash && l.Index == at.Index {
			return &records[i]
		}
	}
	return &records[0]
}

func (s *blockPart) transaction(m wire.Tx) perp.Event {
	return perp.TransactionSeen{Transaction: perp.Transaction{Tx: m.Tx,
		Stamp: perp.Stamp{Block: m.Block, TxHash: m.Hash, TimeMs: s.timeMs(m.Block)}}}
}

// touches lists the rows outside memory that steps may touch, each once.
func touches(steps []step) []perp.RowKey {
	seen := map[perp.RowKey]bool{}
	var keys []perp.RowKey
	for _, s := range steps {
		if s.part == nil {
			continue
		}
		for _, h := range s.part.events {
			for _, e := range h.events {
				for _, k := range e.Touches() {
					if !k.Table.Resident() && !seen[k] {
						seen[k] = true
						keys = append(keys, k)
					}
				}
			}
		}
	}
	return keys
}

// fold applies what happened in a block part.
func (w *workingSet) fold(s *blockPart) (pg.AppliedBlock, error) {
	if s.fault != nil {
		return pg.AppliedBlock{}, s.fault
	}
	for _, h := range s.events {
		for _, e := range h.events {
			err := w.apply(e)
			if err == nil && len(w.strayed) > 0 {
				err = fmt.Errorf("applying %T: it touches rows it does not name: %v", e, w.strayed)
			}
			if err != nil {
				return pg.AppliedBlock{}, haltf("block %d, transaction %s: %w", h.block, h.tx, err)
			}
		}
	}
	return pg.AppliedBlock{BlockRef: s.last, Before: s.before, Changes: w.take()}, nil
}
