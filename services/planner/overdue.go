package planner

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/job"
	"perpkeeper/pkg/risk/due"
)

// overdue is a collector: for how long the oldest job of each kind has been due, without a break and whatever it was
// renewed as. It is the alarm for what does not happen: what nobody executes shows in no figure of what was
// executed. It grows while the planner cannot look. It is safe for concurrent use.
type overdue struct {
	desc  *prometheus.Desc
	clock func() time.Time // compared with itself alone

	mu    sync.Mutex
	shown time.Time // when the ages below were those
	ages  map[job.Kind]time.Duration
}

// showEvery is how often the ages are looked up between two passes over everything.
const showEvery = time.Second

func newOverdue() *overdue {
	return &overdue{
		desc: prometheus.NewDesc("planner_oldest_due_seconds",
			"How long the oldest unexecuted job has been due, by the chain's clock. It grows while the "+
				"planner cannot look.", []string{"kind"}, nil),
		clock: time.Now,
	}
}

// stale reports whether the ages are old enough to be looked up again.
func (o *overdue) stale() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.clock().Sub(o.shown) >= showEvery
}

// show takes how old each kind's oldest job is now.
func (o *overdue) show(ages map[job.Kind]time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.shown, o.ages = o.clock(), ages
}

// Describe implements prometheus.Collector.
func (o *overdue) Describe(descs chan<- *prometheus.Desc) { descs <- o.desc }

// Collect implements prometheus.Collector.
func (o *overdue) Collect(metrics chan<- prometheus.Metric) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, kind := range job.Kinds() {
		age, due := o.ages[kind]
		if due {
			age += o.clock().Sub(o.shown)
		}
		metrics <- prometheus.MustNewConstMetric(o.desc, prometheus.GaugeValue, age.Seconds(), string(kind))
	}
}

// oldest returns how long the oldest job of each kind that is due at a moment has been so.
func (f *finder) oldest(m *due.Moment) map[job.Kind]time.Duration {
	nowMs, ages := max(m.Block.TimeMs, m.Seconds()*1000), map[job.Kind]time.Duration{}
	for _, market := range f.live.markets {
		for _, j := range market {
			since := min(f.dueTimes.beganMs(j), nowMs)
			ages[j.Kind] = max(ages[j.Kind], time.Duration(nowMs-since)*time.Millisecond)
		}
	}
	return ages
}
