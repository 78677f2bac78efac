package txmanager

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
	b := &broadcast{last: map[chain.Hash]sent{}, heads: headtrack.New(time.Now)}
	c := &confirm{
		turns: alone{}, broadcast: b, ages: newAges(func() time.Time { return now }, 10*time.Second),
		metrics: metrics, log: zerolog.Nop(),
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
	if c.remember(nil); len(c.ages.seen) != 0 || len(c.ages.told) != 0 {
		t.Errorf("remembers %v and %v of what is no longer in flight", c.ages.seen, c.ages.told)
	}
}
