package statevm

import (
	"context"
	"errors"
	"fmt"

	"perpkeeper/pkg/instrument/failpoint"
	"perpkeeper/pkg/kafka/bus"
	"perpkeeper/pkg/kafka/wire"
	"perpkeeper/pkg/pg"
)

// bury sends the record that halted a partition to the dead letter topic if it, or its log, could not be decoded. It
// does so once: the next owner halts at it again and finds it sent. A process that dies between sending and noting it
// makes its successor send it once more.
func (s *Statevm) bury(ctx context.Context, p *pg.Partition, why error) error {
	h, own := errors.AsType[halt](why)
	if !own || h.record == nil {
		return nil
	}
	sent, err := p.DeadLetter(ctx)
	if err != nil || sent >= h.record.Offset {
		return err
	}
	letters := s.client.Producer(wire.DeadLetterTopic(s.cfg.Keeper.ChainID))
	if _, err := letters.Produce(ctx, 0,
		[]bus.Record{wire.DeadLetter(wire.LogTopic(s.cfg.Keeper.ChainID), *h.record, why.Error())}); err != nil {
		return fmt.Errorf("sending offset %d of partition %d to the dead letters: %w", h.record.Offset,
			h.record.Partition, err)
	}
	failpoint.Hit("statevm.dead_letter")
	// also when the claim has just ended: it is sent
	return p.NoteDeadLetter(context.WithoutCancel(ctx), h.record.Offset)
}
