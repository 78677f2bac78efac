package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"perpkeeper/pkg/retry"
)

// Pauses between tries grow from the first to the second: short enough that a call goes on within about a second of the
// brokers' return.
const (
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
)

// trial is one call's loop of tries. While it is between a failure and the next success the call shows in Health.
type trial struct {
	*retry.Backoff

	c      *Client
	doing  string
	failed time.Time // of the first failure since the last success; zero when there is none
}

// try starts a loop; doing completes the sentence "bus: … fails".
func (c *Client) try(doing string) *trial {
	t := &trial{c: c, doing: doing}
	t.begin()
	return t
}

func (t *trial) begin() {
	t.Backoff = retry.New(retry.Policy{Initial: firstPause, Max: longestPause, OnRetry: t.onRetry})
}

func (t *trial) onRetry(attempt int, err error, _ time.Duration) {
	t.c.waiting.add(t, fmt.Errorf("%s: %w", t.doing, err))
	if t.failed.IsZero() {
		t.failed = time.Now()
		t.c.log.Warn().Err(err).Msgf("bus: %s fails, trying again", t.doing)
		return
	}
	t.c.log.Debug().Err(err).Int("attempt", attempt).Msgf("bus: %s still fails", t.doing)
}

// succeeded begins anew: the next try comes without a pause, and the next failure is a first one.
func (t *trial) succeeded() {
	if !t.failed.IsZero() {
		t.c.log.Info().Dur("after", time.Since(t.failed)).Msgf("bus: %s works again", t.doing)
	}
	t.end()
	t.begin()
}

// end takes the call out of Health; every loop must end.
func (t *trial) end() {
	t.failed = time.Time{}
	t.c.waiting.remove(t)
}

// do repeats fn until it succeeds, refuses for good (final), or ctx ends.
func (c *Client) do(ctx context.Context, doing string, fn func(context.Context) error) error {
	t := c.try(doing)
	defer t.end()
	for t.Next(ctx) {
		err := fn(ctx)
		if err == nil {
			t.succeeded()
			return nil
		}
		if final(err) {
			return fmt.Errorf("%s: %w", doing, err)
		}
		t.Failed(err)
	}
	return fmt.Errorf("%s: %w", doing, t.Err(ctx))
}

// waiting is the set of calls that are trying again. The zero value is ready.
type waiting struct {
	mu    sync.Mutex
	calls map[*trial]error
}

func (w *waiting) add(t *trial, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls == nil {
		w.calls = make(map[*trial]error)
	}
	w.calls[t] = err
}

func (w *waiting) remove(t *trial) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.calls, t)
}

func (w *waiting) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	problems := make([]error, 0, len(w.calls))
	for _, err := range w.calls {
		problems = append(problems, err)
	}
	slices.SortFunc(problems, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(problems...)
}
