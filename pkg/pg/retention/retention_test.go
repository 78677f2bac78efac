package retention

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
)

// fake is a store with so many jobs to move and weeks to drop, each step of which takes a while.
type fake struct {
	waiting, weeks int
	step           time.Duration
	fail           error
	busy           time.Duration // of all steps
}

func (f *fake) Await(context.Context) error { return nil }

func (f *fake) Move(_ context.Context, _ time.Duration, most int) (int, error) {
	if f.fail != nil {
		return 0, f.fail
	}
	n := min(f.waiting, most)
	if n > 0 {
		time.Sleep(f.step) // of the bubble's clock
		f.busy += f.step
	}
	f.waiting -= n
	return n, nil
}

func (f *fake) Expire(context.Context, time.Duration) (d Dropped, err error) {
	if f.weeks > 0 {
		f.weeks--
		d.Week = time.Unix(1, 0)
	}
	return d, f.fail
}

func run(t *testing.T, cfg Config, f *fake, last time.Duration) *Metrics {
	t.Helper()
	m := NewMetrics(prometheus.NewRegistry())
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), last)
		defer cancel()
		if err := New(cfg, f, m, zerolog.Nop()).Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ended with %v", err)
		}
	})
	return m
}

// What has piled up is moved batch by batch, for a fifth of the time at most, before weeks are dropped.
func TestBacklogIsMovedGently(t *testing.T) {
	f := &fake{waiting: 1050, weeks: 2, step: 100 * time.Millisecond}
	cfg := DefaultConfig()
	cfg.Batch = 100
	run(t, cfg, f, 3900*time.Millisecond)
	if f.waiting < 1050-800 || f.waiting > 1050-700 || f.weeks != 2 {
		t.Errorf("after 3.9 s %d wait, and %d weeks: the archive took %s", f.waiting, f.weeks, f.busy)
	}
	m := run(t, cfg, f, time.Minute)
	if f.waiting != 0 || f.weeks != 0 {
		t.Errorf("after a minute %d wait, and %d weeks", f.waiting, f.weeks)
	}
	if got := testutil.ToFloat64(m.failures); got != 0 {
		t.Errorf("%f failures", got)
	}
}

// A store that fails is asked again a minute later, and nothing ends.
func TestFailureIsTriedAgain(t *testing.T) {
	m := run(t, DefaultConfig(), &fake{fail: errors.New("away")}, 3*time.Minute+time.Second)
	if got := testutil.ToFloat64(m.failures); got != 4 {
		t.Errorf("%f failures in three minutes", got)
	}
}

// What is to be kept for ever is.
func TestForEver(t *testing.T) {
	f := &fake{waiting: 5, weeks: 5}
	run(t, Config{Batch: 1}, f, time.Hour)
	if f.waiting != 5 || f.weeks != 5 {
		t.Errorf("%+v", f)
	}
}

func TestConfigNamesEveryProblem(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	for want, c := range map[string]Config{
		"keep: 168h0m0s": {After: 48 * time.Hour, Keep: 7 * 24 * time.Hour, Batch: 1},
		"keep: -1h0m0s":  {Keep: -time.Hour, Batch: 1},
	} {
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
