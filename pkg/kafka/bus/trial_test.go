package bus

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/segmentio/kafka-go"
)

// While a call tries again Health says what and why; when it works again, or ends, Health is silent.
func TestHealthTellsWhatIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := &Client{log: zerolog.New(&log), metrics: NewMetrics(prometheus.NewRegistry())}
		away := errors.New("broker away")
		tries := 0
		done := make(chan error, 1)
		start := time.Now()
		go func() {
			done <- c.do(t.Context(), "asking", func(context.Context) error {
				if tries++; tries <= 5 {
					return away
				}
				return nil
			})
		}()
		synctest.Wait() // until the first pause
		if err := c.Health(); !errors.Is(err, away) || !strings.Contains(err.Error(), "asking: broker away") {
			t.Fatalf("Health: %v", err)
		}
		if err := <-done; err != nil || tries != 6 {
			t.Fatalf("after %d tries: %v", tries, err)
		}
		if err := c.Health(); err != nil {
			t.Fatalf("Health after success: %v", err)
		}
		if took := time.Since(start); took > 5*longestPause {
			t.Fatalf("five pauses took %s", took)
		}
		if text := log.String(); strings.Count(text, `"warn"`) != 1 || strings.Count(text, `"info"`) != 1 {
			t.Fatalf("one warning and one all-clear were due:\n%s", text)
		}
	})
}

// Success after success is not slowed down.
func TestSuccessesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Client{log: zerolog.Nop(), metrics: NewMetrics(prometheus.NewRegistry())}
		loop := c.try("asking")
		defer loop.end()
		start := time.Now()
		for range 100 {
			if !loop.Next(t.Context()) {
				t.Fatal("the loop ended")
			}
			loop.succeeded()
		}
		if took := time.Since(start); took != 0 {
			t.Fatalf("a hundred successes took %s", took)
		}
	})
}

func TestFinalErrorsAreNotTriedAgain(t *testing.T) {
	c := &Client{log: zerolog.Nop(), metrics: NewMetrics(prometheus.NewRegistry())}
	for _, err := range []error{noTopic("t", 0, 0), kafka.TopicAuthorizationFailed,
		kafka.SASLAuthenticationFailed} {
		tries := 0
		got := c.do(t.Context(), "asking", func(context.Context) error { tries++; return err })
		if !errors.Is(got, err) || tries != 1 {
			t.Errorf("%v: %d tries, %v", err, tries, got)
		}
	}
	if err := c.Health(); err != nil {
		t.Fatal(err)
	}
}
