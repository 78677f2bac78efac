package sender

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/headtrack"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txm"
)

// LIQ-10: people are told of what waits for its receipt for too long, once. What it waited for its turn before it was
// sent does not count.
func TestLateReceiptsAreTold(t *testing.T) {
	now, metrics := time.Now(), NewMetrics(prometheus.NewRegistry())
	b := &broadcast{last: map[chain.Hash]sent{}, horizon: headtrack.New(time.Now)}
	c := &confirm{
		turns: alone(), broadcast: b, timeout: 10 * time.Second, clock: func() time.Time { return now },
		metrics: metrics, log: zerolog.Nop(),
		missing: map[int64]time.Time{}, seen: map[int64]time.Time{}, late: map[int64]bool{},
	}
	f := txm.Flight{Attempts: []txm.Attempt{{}}}
	f.Intent = txm.Intent{ID: 1, Job: job.Job{Kind: job.Liquidation}, Waited: time.Minute}
	told := func() float64 { return testutil.ToFloat64(metrics.timeouts.WithLabelValues(string(job.Liquidation))) }
	for i, want := range []float64{0, 0, 1, 1} {
		c.remember([]txm.Flight{f})
		if c.watch(f, txm.Sight{}); told() != want {
			t.Errorf("after %d s: told %.0f times", 5*i, told())
		}
		now = now.Add(5 * time.Second)
	}
	if c.remember(nil); len(c.seen) != 0 || len(c.late) != 0 {
		t.Errorf("remembers %v and %v of what is no longer in flight", c.seen, c.late)
	}
}
