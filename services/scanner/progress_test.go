package scanner

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Progress is a log line now and then, with an ETA.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lines bytes.Buffer
		p := &progress{log: zerolog.New(&lines), metrics: newMetrics(prometheus.NewRegistry())}
		p.begin(1000, 11_000)
		for i := range uint64(10) {
			<-time.After(4 * time.Second)
			p.add(1000+(i+1)*500, 500, 50)
		}
		if got := strings.Count(lines.String(), "\n"); got != 3 {
			t.Errorf("%d lines in 40 s:\n%s", got, &lines)
		}
		last := `"block":5500,"to":11000,"blocks_per_second":125,"logs_per_second":12.5,"eta_seconds":44`
		if !strings.Contains(lines.String(), last) {
			t.Errorf("want …%s…:\n%s", last, &lines)
		}
		if got, want := p.String(), "publishing history: block 6000 of 11000, 125 blocks/s, 40 s to go"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		p.end()
		if got := p.String(); got != "publishing history" {
			t.Errorf("it goes on after its end: %q", got)
		}
	})
}
