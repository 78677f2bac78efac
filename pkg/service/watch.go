package service

import (
	"context"
	"time"

	"perpkeeper/pkg/retry"
)

// watchEvery is how old an answer of a watched part may be.
const watchEvery = 500 * time.Millisecond

// Watch makes a condition of a part that knows its own health, such as a client of a broker: it is asked twice a second
// until the stop, and its error is the reason why the process is not ready. The error must say what is waited for; it
// never stops the process.
func (sh *Shell) Watch(name string, healthy func(ctx context.Context) error) {
	condition := sh.Ready(name)
	sh.Go("watch "+name, func(ctx context.Context) error {
		for {
			err := healthy(ctx)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				condition.Fail(err.Error())
			} else {
				condition.OK()
			}
			if !retry.Sleep(ctx, watchEvery) {
				return ctx.Err()
			}
		}
	})
}
