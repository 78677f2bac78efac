package statevm

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/instrument/metric"
	"perpkeeper/pkg/pg"
)

// Metrics are the metrics of statevm.
type Metrics struct {
	block     *prometheus.GaugeVec
	blockTime *prometheus.GaugeVec
	halted    *prometheus.GaugeVec
	events    *prometheus.CounterVec
	lost      *prometheus.CounterVec
	differed  *prometheus.CounterVec
	losses    losses
}

// NewMetrics registers the metrics of statevm.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return in.Gauges(name, help, "generation", "partition")
	}
	return &Metrics{
		losses: newLosses(reg),
		block: gauge("statevm_block",
			"Last block committed, of this process's partitions."),
		blockTime: gauge("statevm_block_timestamp_seconds",
			"Time of the last block committed, Unix seconds."),
		halted: gauge("statevm_halted",
			"1 while a partition cannot go on."),
		events: in.Counters("statevm_events_total",
			"Events applied, by meaning; those passed over as `unknown` and their name.", "event"),
		lost: in.Counters("statevm_fenced_total",
			"Times another process owned a partition.", "generation", "partition"),
		differed: in.Counters("statevm_words_differed_total",
			"Parameters that an audit found to differ from what events had said, by name.", "word"),
	}
}

// RegisterMetrics registers everything this process counts, for the catalogue.
func RegisterMetrics(reg prometheus.Registerer) { NewMetrics(reg) }

// of returns the metrics of one partition of a generation.
func (m *Metrics) of(generation, partition int) *partitionMetrics {
	return &partitionMetrics{Metrics: m, labels: []string{strconv.Itoa(generation), strconv.Itoa(partition)}}
}

// partitionMetrics are the metrics as one partition reports to them.
type partitionMetrics struct {
	*Metrics
	labels []string
}

// stands reports where the partition is.
func (m *partitionMetrics) stands(at pg.Offset) {
	m.block.WithLabelValues(m.labels...).Set(float64(at.Tip.Number))
	m.blockTime.WithLabelValues(m.labels...).Set(float64(at.Tip.TimeMs) / 1000)
}

func (m *partitionMetrics) counted(steps []step) {
	counts, now := map[reflect.Type]int{}, time.Now()
	for _, s := range steps {
		if s.part == nil {
			continue
		}
		for _, name := range s.part.unknown {
			m.events.WithLabelValues("unknown " + strings.ToValidUTF8(name[:min(len(name), 64)], "?")).Inc()
		}
		for _, h := range s.part.events {
			for _, e := range h.events {
				counts[reflect.TypeOf(e)]++
				m.losses.counted(e, now)
			}
		}
	}
	for event, n := range counts {
		m.events.WithLabelValues(event.Name()).Add(float64(n))
	}
}

func (m *partitionMetrics) fenced() { m.lost.WithLabelValues(m.labels...).Inc() }

func (m *partitionMetrics) stuck(is bool) { m.halted.WithLabelValues(m.labels...).Set(metric.Bool(is)) }

// forget drops what is another process's to report from now on.
func (m *partitionMetrics) forget() {
	for _, gauge := range []*prometheus.GaugeVec{m.block, m.blockTime, m.halted} {
		gauge.DeleteLabelValues(m.labels...)
	}
}
