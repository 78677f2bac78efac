package evidence

import (
	"context"
	"errors"
	"sync"

	"perpkeeper/pkg/retry"
)

// Follow reads with one reader after the other until ctx ends. One that ends has met something in the log topic that it
// does not understand, or another topic in its place: the evidence stands still, and after a pause the next reader
// begins a while back, as at a start. Pauses grow until a reader has read the past. Jobs that it finds there may have
// been reported before, and executions that were are not reported again: they come after later ones, and would be held
// against their keepers a second time. Told is called with why a reader has ended, and with nil when one has read the
// past.
func Follow(ctx context.Context, pauses retry.Policy, next func() *Reader, told func(why error)) error {
	reported, ambiguous := newReportedSet(), false
	return repeat(ctx, pauses, func(ctx context.Context, caughtUp func()) error {
		reader := next()
		reader.reported, reader.onCaughtUp, reader.certain = reported, caughtUp, ambiguous
		err := reader.Run(ctx)
		ambiguous = errors.Is(err, errAmbiguousEpoch)
		return err
	}, told)
}

// repeat reads again whenever a reading has ended, until ctx ends. Each calls caughtUp, as often as it likes, once it
// has read the past.
func repeat(ctx context.Context, pauses retry.Policy, read func(ctx context.Context, caughtUp func()) error,
	told func(why error)) error {
	b := retry.New(pauses)
	for b.Next(ctx) {
		stood := false
		err := read(ctx, sync.OnceFunc(func() {
			stood = true
			told(nil)
		}))
		if ctx.Err() != nil {
			break
		}
		if told(err); stood {
			b.Reset()
		}
	}
	return context.Cause(ctx)
}
