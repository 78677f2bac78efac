package statevm

import (
	"context"

	"perpkeeper/pkg/failpoint"
	"perpkeeper/pkg/kafka/bus"
)

const (
	// parcelRecords is how many records are decoded at once, and parcelsAhead how many such lots may wait: decoding
	// goes on while the last commit is under way, and no further.
	parcelRecords = 1000
	parcelsAhead  = 4
)

// parcel is what was read and decoded at once.
type parcel struct {
	steps   []step
	records int
	err     error // why there is nothing after the steps
}

// intake reads and decodes a partition ahead of whoever commits it. The longer a commit takes, the more is ready after
// it, so that steps grow by themselves when the partition is behind, and are single blocks at the head.
type intake struct {
	parcels chan parcel
	stop    context.CancelFunc
}

// startIntake begins to read; the caller must close it.
func startIntake(ctx context.Context, reader *bus.Reader, records assembler, decoder decoder, limit int) *intake {
	ctx, cancel := context.WithCancel(ctx)
	in := &intake{parcels: make(chan parcel, parcelsAhead), stop: cancel}
	go in.run(ctx, reader, records, decoder, min(limit, parcelRecords))
	return in
}

func (in *intake) run(ctx context.Context, reader *bus.Reader, records assembler, decoder decoder, limit int) {
	defer close(in.parcels)
	for {
		p := next(ctx, reader, &records, decoder, limit)
		select {
		case in.parcels <- p:
		case <-ctx.Done():
			return
		}
		if p.err != nil {
			return
		}
	}
}

// next waits for records and makes steps of them.
func next(ctx context.Context, reader *bus.Reader, records *assembler, decoder decoder, limit int) (p parcel) {
	read, err := reader.NextBatch(ctx, limit)
	if err != nil {
		return parcel{err: err}
	}
	failpoint.Hit("statevm.fetched")
	p.records = len(read)
	for _, r := range read {
		s, complete, err := records.take(r)
		if err == nil && s.share != nil {
			s.share.fault = s.share.decode(decoder)
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
func (in *intake) take(ctx context.Context, limit int) (all parcel) {
	select {
	case first, open := <-in.parcels:
		if !open {
			return parcel{err: context.Canceled}
		}
		all = first
	case <-ctx.Done():
		return parcel{err: context.Cause(ctx)}
	}
	for all.err == nil && all.records < limit {
		select {
		case more, open := <-in.parcels:
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
	for range in.parcels { // what was read ahead is dropped
	}
}
