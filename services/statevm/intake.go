package statevm

import (
	"context"

	"perpkeeper/pkg/instrument/failpoint"
	"perpkeeper/pkg/kafka/bus"
)

const (
	// batchRecords is how many records are decoded at once, and batchesAhead how many such lots may wait: decoding
	// goes on while the last commit is under way, and no further.
	batchRecords = 1000
	batchesAhead = 4
)

// batch is what was read and decoded at once.
type batch struct {
	steps   []step
	records int
	err     error // why there is nothing after the steps
}

// intake reads and decodes a partition ahead of whoever commits it. The longer a commit takes, the more is ready after
// it, so that steps grow by themselves when the partition is behind, and are single blocks at the head.
type intake struct {
	batches chan batch
	stop    context.CancelFunc
}

// startIntake begins to read; the caller must close it.
func startIntake(ctx context.Context, reader *bus.Reader, records assembler, decoder decoder, limit int) *intake {
	ctx, cancel := context.WithCancel(ctx)
	in := &intake{batches: make(chan batch, batchesAhead), stop: cancel}
	go in.run(ctx, reader, records, decoder, min(limit, batchRecords))
	return in
}

func (in *intake) run(ctx context.Context, reader *bus.Reader, records assembler, decoder decoder, limit int) {
	defer close(in.batches)
	for {
		p := next(ctx, reader, &records, decoder, limit)
		select {
		case in.batches <- p:
		case <-ctx.Done():
			return
		}
		if p.err != nil {
			return
		}
	}
}

// next waits for records and makes steps of them.
func next(ctx context.Context, reader *bus.Reader, records *assembler, decoder decoder, limit int) (p batch) {
	read, err := reader.NextBatch(ctx, limit)
	if err != nil {
		return batch{err: err}
	}
	failpoint.Hit("statevm.fetched")
	p.records = len(read)
	for _, r := range read {
		s, complete, err := records.take(r)
		if err == nil && s.part != nil {
			s.part.fault = s.part.decode(decoder)
		}
		if err != nil {
			p.err = err
			return p
		}
		if complete {
			p.steps = append(p.steps, s)
		}
	}
	failpoint.Hit("statevm.decoded")
	return p
}

// take returns what is ready, waiting for something: as much as has been decoded, but no more than about limit records.
func (in *intake) take(ctx context.Context, limit int) (all batch) {
	select {
	case first, open := <-in.batches:
		if !open {
			return batch{err: context.Canceled}
		}
		all = first
	case <-ctx.Done():
		return batch{err: context.Cause(ctx)}
	}
	for all.err == nil && all.records < limit {
		select {
		case more, open := <-in.batches:
			if !open {
				return all
			}
			all.steps, all.records, all.err = append(all.steps, more.steps...), all.records+more.records, more.err
		default:
			return all
		}
	}
	return all
}

// close ends the reading and waits for its end.
func (in *intake) close() {
	in.stop()
	for range in.batches { // what was read ahead is dropped
	}
}
