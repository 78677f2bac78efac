package txmanager

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/chain"
	"perpkeeper/pkg/job"
	"perpkeeper/pkg/txmgr/txm"
)

// unlanded is a collector: the age of what has not landed grows while nothing happens, also while nobody can ask the
// store. It is safe for concurrent use.
type unlanded struct {
	desc  *prometheus.Desc
	clock func() time.Time

	mu sync.Mutex
	// since when a signer's oldest transaction of a lane has had its nonce; a signer that is worked here has all lanes,
	// those without such a transaction with the zero time
	since map[chain.Address]map[job.Lane]time.Time
}

func newUnlanded() *unlanded {
	return &unlanded{
		desc: prometheus.NewDesc("sender_oldest_unlanded_seconds",
			"How long the oldest transaction still to land has had its nonce. It grows while the "+
				"database cannot be asked.", []string{"signer", "lane"},
			nil),
		clock: time.Now, since: map[chain.Address]map[job.Lane]time.Time{},
	}
}

// show takes what a signer has in flight and has not left to another tier.
func (u *unlanded) show(signer chain.Address, inFlight []txm.PendingTx) {
	oldest := map[job.Lane]time.Duration{}
	for _, f := range inFlight {
		if lane := f.Intent.Job.Kind.Lane(); f.Mined == nil {
			oldest[lane] = max(oldest[lane], f.Age)
		}
	}
	since, now := map[job.Lane]time.Time{}, u.clock()
	for _, lane := range job.Lanes() {
		since[lane] = time.Time{}
		if age := oldest[lane]; age > 0 {
			since[lane] = now.Add(-age)
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.since[signer] = since
}

func (u *unlanded) forget(signer chain.Address) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.since, signer)
}

// Describe implements prometheus.Collector.
func (u *unlanded) Describe(descs chan<- *prometheus.Desc) { descs <- u.desc }

// Collect implements prometheus.Collector.
func (u *unlanded) Collect(metrics chan<- prometheus.Metric) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for signer, lanes := range u.since {
		for lane, since := range lanes {
			age := 0.0
			if !since.IsZero() {
				age = u.clock().Sub(since).Seconds()
			}
			metrics <- prometheus.MustNewConstMetric(u.desc, prometheus.GaugeValue, age, signer.Hex(), string(lane))
		}
	}
}
