package evidence

import (
	"context"
	"sync"
	"time"

	"perpkeeper/pkg/retry"
)

// Follow reads with one reader after the other until ctx ends. One that ends has met something in the log topic that it
// does not understand, or another topic in its place: the evidence stands still, and after a pause the next reader
// begins a while back, as at a start. What it finds there may have been reported before. Told is called with why a
// reader has ended, and with nil when one has read the past.
func Follow(ctx context.Context, pause time.Duration, next func() *Reader, told func(why error)) error {
	for {
		reader := next()
		reader.standing = sync.OnceFunc(func() { told(nil) })
		err := reader.Run(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if told(err); !retry.Sleep(ctx, pause) {
			return context.Cause(ctx)
		}
	}
}
