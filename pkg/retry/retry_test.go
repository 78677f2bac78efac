package retry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"perpkeeper/pkg/retry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken")

// longest takes the whole pause, which makes the waits predictable.
func longest(bound time.Duration) time.Duration { return bound }

func TestDoWaitsLongerEachTimeAndStopsGrowingAtMax(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var tries []time.Duration
		p := retry.Policy{Initial: time.Second, Max: 5 * time.Second, Attempts: 6, Jitter: longest}
		err := retry.Do(t.Context(), p, func(context.Context) error {
			tries = append(tries, time.Since(start))
			return errBroken
		})
		want := []time.Duration{0, 1 * time.Second, 3 * time.Second, 7 * time.Second, 12 * time.Second,
			17 * time.Second}
		if !slices.Equal(tries, want) {
			t.Errorf("tried at %v, want %v", tries, want)
		}
		if !errors.Is(err, errBroken) || err.Error() != "giving up after 6 attempts: broken" {
			t.Errorf("got %v", err)
		}
	})
}

func TestDoEndsAtSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		err := retry.Do(t.Context(), retry.Policy{}, func(context.Context) error {
			if calls++; calls < 50 {
				return errBroken
			}
			return nil
		})
		if err != nil || calls != 50 {
			t.Fatalf("%d calls, error %v", calls, err)
		}
	})
}

func TestDoStopsAtAPermanentError(t *testing.T) {
	calls := 0
	err := retry.Do(t.Context(), retry.Policy{}, func(context.Context) error {
		calls++
		return fmt.Errorf("asking: %w", retry.Stop(errBroken))
	})
	if calls != 1 || !errors.Is(err, errBroken) || err.Error() != "asking: broken" {
		t.Fatalf("%d calls, error %v", calls, err)
	}
	if retry.Stop(nil) != nil {
		t.Fatal("Stop(nil) is an error")
	}
}

func TestDoIsCancelledInTheMiddleOfAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errEnough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		p := retry.Policy{Initial: time.Hour, Max: time.Hour, Jitter: longest}
		start := time.Now()
		done := make(chan error)
		go func() { done <- retry.Do(ctx, p, func(context.Context) error { return errBroken }) }()
		synctest.Wait() // Do sits in its first pause.
		cancel(errEnough)
		err := <-done
		if waited := time.Since(start); waited != 0 {
			t.Errorf("the cancelled pause lasted %s", waited)
		}
		if !errors.Is(err, errEnough) || !errors.Is(err, errBroken) ||
			err.Error() != "enough (attempt 1 had failed: broken)" {
			t.Errorf("got %v", err)
		}
	})
}

func TestDoEndsWithTheErrorThatCancellationCaused(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	err := retry.Do(ctx, retry.Policy{}, func(ctx context.Context) error {
		cancel()
		return fmt.Errorf("reading head: %w", ctx.Err())
	})
	if err == nil || err.Error() != "reading head: context canceled" {
		t.Fatalf("got %v", err)
	}
}

func TestDoDoesNotCallAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := retry.Do(ctx, retry.Policy{}, func(context.Context) error {
		t.Error("called")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
}

// A pause that is over at the same moment as ctx does not buy another try.
func TestEndOfContextWinsOverEndOfPause(t *testing.T) {
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		p := retry.Policy{Jitter: func(time.Duration) time.Duration { return 0 },
			OnRetry: func(int, error, time.Duration) { cancel() }}
		calls := 0
		_ = retry.Do(ctx, p, func(context.Context) error {
			calls++
			return errBroken
		})
		if calls != 1 {
			t.Fatalf("%d calls", calls)
		}
	}
}

func TestOnRetrySeesEveryFailureThatIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []string
		p := retry.Policy{Initial: time.Second, Attempts: 3, Jitter: longest,
			OnRetry: func(attempt int, err error, wait time.Duration) {
				seen = append(seen, fmt.Sprintf("%d %v %s", attempt, err, wait))
			}}
		calls := 0
		_ = retry.Do(t.Context(), p, func(context.Context) error {
			calls++
			return fmt.Errorf("call %d", calls)
		})
		if want := []string{"1 call 1 1s", "2 call 2 2s"}; !slices.Equal(seen, want) {
			t.Fatalf("saw %q, want %q", seen, want)
		}
	})
}

func TestBackoffAfterASuccessBeginsAgainWithAShortPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := retry.New(retry.Policy{Initial: time.Second, Max: time.Minute, Attempts: 4, Jitter: longest})
		start := time.Now()
		var at []float64 // in seconds
		for b.Next(t.Context()) {
			at = append(at, time.Since(start).Seconds())
			if len(at) == 3 {
				b.Reset()
			} else {
				b.Failed(errBroken)
			}
		}
		// 0, +1, +2, success: +1, +1 (first pause of the new count, then growing), +2, +4.
		want := []float64{0, 1, 3, 4, 5, 7, 11}
		if !slices.Equal(at, want) {
			t.Errorf("tried after %v seconds, want %v", at, want)
		}
		if b.Attempt() != 4 || !errors.Is(b.Err(t.Context()), errBroken) {
			t.Errorf("after %d attempts: %v", b.Attempt(), b.Err(t.Context()))
		}
	})
}

// Full jitter: every pause lies in [0, min(Max, Initial·2^(n−1))], whatever the policy, also after very many
// attempts.
func TestPausesStayInTheirBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		initial := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(rt, "initial"))
		p := retry.Policy{
			Initial:  initial,
			Max:      initial + time.Duration(rapid.Int64Range(0, int64(1000*time.Hour)).Draw(rt, "beyond")),
			Attempts: rapid.IntRange(1, 200).Draw(rt, "attempts"),
		}
		bounds := []time.Duration{}
		counting := p
		counting.Jitter = func(bound time.Duration) time.Duration {
			bounds = append(bounds, bound)
			return 0
		}
		fail := func(context.Context) error { return errBroken }
		_ = retry.Do(t.Context(), counting, fail)
		if len(bounds) != p.Attempts-1 || !slices.IsSorted(bounds) {
			rt.Fatalf("%d attempts with bounds %v", p.Attempts, bounds)
		}
		if n := len(bounds); n > 0 && (bounds[0] != p.Initial || bounds[n-1] > p.Max) {
			rt.Fatalf("bounds from %s to %s, want from %s to at most %s", bounds[0], bounds[n-1], p.Initial, p.Max)
		}
		i := 0
		p.OnRetry = func(_ int, _ error, wait time.Duration) {
			if wait < 0 || wait > bounds[i] {
				rt.Fatalf("pause %d is %s, bound %s", i, wait, bounds[i])
			}
			i++
		}
		synctest.Test(t, func(t *testing.T) { _ = retry.Do(t.Context(), p, fail) })
	})
}
