package evidence

import (
	"context"
	"sync"
	"time"

	"perpkeeper/pkg/retry"
)

// Follow reads with one reader after the other until ctx ends. One that ends has met something in the log topic that it
// does not understand, or another topic in its place: the evidence stands still, and after a pause the next reader
// begins a while back, as at a start. Jobs that it finds there may have been reported before, and executions that were
// are not reported again: they come after later ones, and would be held against their keepers a second time. Told is
// called with why a reader has ended, and with nil when one has read the past.
func Follow(ctx context.Context, pause time.Duration, next func() *Reader, told func(why error)) error {
	reported := newReportedSet()
	for {
		reader := next()
		reader.reported, reader.standing = reported, sync.OnceFunc(func() { told(nil) })
		err := reader.Run(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if told(err); !retry.Sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}
