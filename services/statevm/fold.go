package statevm

import (
	"fmt"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/perp"
	"perpkeeper/pkg/pg"
	"perpkeeper/pkg/wire"
)

// Decoder understands the contracts' logs. The logs of one call are of one transaction.
type Decoder interface {
	Transaction(logs []chain.Log, blockTimeMs uint64) ([]perp.Event, error)
}

// happening is the events that a run of messages says, and whence.
type happening struct {
	tx     chain.Hash // zero for a parameter
	events []perp.Event
}

// happenings decodes a block. Logs stand together by transaction.
func (b *block) happenings(d Decoder) ([]happening, error) {
	var all []happening
	var logs []chain.Log
	flush := func() error {
		if len(logs) == 0 {
			return nil
		}
		events, err := d.Transaction(logs, b.Block.TimeMs)
		if err != nil {
			return haltf("block %d, transaction %s: %w", b.Block.Number, logs[0].TxHash, err)
		}
		all, logs = append(all, happening{tx: logs[0].TxHash, events: events}), nil
		return nil
	}
	for _, m := range b.messages {
		l, isLog := m.(wire.Log)
		if !isLog || len(logs) > 0 && logs[0].TxHash != l.TxHash {
			if err := flush(); err != nil {
				return nil, err
			}
		}
		switch m := m.(type) {
		case wire.Log:
			logs = append(logs, m.Log)
		case wire.Tx:
			all = append(all, happening{tx: m.Hash, events: []perp.Event{b.transaction(m)}})
		case wire.Param:
			all = append(all, happening{events: []perp.Event{b.parameter(m)}})
		}
	}
	return all, flush()
}

func (b *block) transaction(m wire.Tx) perp.Event {
	return perp.TransactionSeen{Transaction: perp.Transaction{Tx: m.Tx, Stamp: perp.Stamp{Block: m.Block, TxHash: m.Hash, TimeMs: b.Block.TimeMs}}}
}

func (b *block) parameter(m wire.Param) perp.Event {
	return perp.ParameterSet{Parameter: perp.Parameter{
		Key: m.Key, Value: m.Value, Source: perp.FromCall, Stamp: perp.Stamp{Block: m.Block.Number, TimeMs: b.Block.TimeMs},
	}}
}

// applied is the block as the store knows it.
func (b *block) applied() pg.Block {
	return pg.Block{BlockRef: b.Block, Attempt: b.Attempt, Verified: b.Verified}
}

// touches lists the rows that happenings may touch, each once.
func touches(blocks [][]happening) []perp.RowKey {
	seen := map[perp.RowKey]bool{}
	var keys []perp.RowKey
	for _, block := range blocks {
		for _, h := range block {
			for _, e := range h.events {
				for _, k := range e.Touches() {
					if !seen[k] {
						seen[k] = true
						keys = append(keys, k)
					}
				}
			}
		}
	}
	return keys
}

// fold applies the happenings of one block.
func (w *workingSet) fold(number uint64, happenings []happening) ([]pg.Change, error) {
	for _, h := range happenings {
		for _, e := range h.events {
			err := perp.Apply(w, e)
			if err == nil && len(w.strayed) > 0 {
				err = fmt.Errorf("applying %T: it touches rows it does not name: %v", e, w.strayed)
			}
			if err != nil {
				return nil, haltf("block %d, transaction %s: %w", number, h.tx, err)
			}
		}
	}
	return w.take(), nil
}
