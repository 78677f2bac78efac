package statevm

import (
	"reflect"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"perpkeeper/pkg/metric"
	"perpkeeper/pkg/pg"
)

// Metrics are the metrics of statevm.
type Metrics struct {
	block     *prometheus.GaugeVec
	finalized *prometheus.GaugeVec
	blockTime *prometheus.GaugeVec
	offset    *prometheus.GaugeVec
	halted    *prometheus.GaugeVec
	waiting   *prometheus.GaugeVec
	lacking   *prometheus.GaugeVec
	blocks    *prometheus.CounterVec
	undos     *prometheus.CounterVec
	unblocks  *prometheus.CounterVec
	events    *prometheus.CounterVec
	lost      *prometheus.CounterVec
	differed  *prometheus.CounterVec
	seconds   prometheus.Histogram
	losses    losses
	snapshots snapshotMetrics
}

// NewMetrics registers the metrics of statevm.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	in := metric.In{Registerer: reg}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return in.Gauges(name, help, "generation", "partition")
	}
	return &Metrics{
		losses:    newLosses(reg),
		snapshots: newSnapshotMetrics(reg),
		block: gauge("statevm_block",
			"Number of the last block committed, of the partitions this process owns."),
		finalized: gauge("statevm_finalized_block", "Number of the highest finalized block heard of."),
		blockTime: gauge("statevm_block_timestamp_seconds",
			"Time of the last block committed, Unix seconds; time() minus this is the lag."),
		offset: gauge("statevm_offset", "Offset of the first record not yet committed."),
		halted: gauge("statevm_halted", "1 while a partition cannot go on; readiness says why."),
		waiting: gauge("statevm_waiting_for_proof",
			"1 while a partition waits for the proof or the correction of a block that contradicts its rows."),
		lacking: gauge("statevm_lost_blocks",
			"Blocks in the rows that the log topic has lost with its end, and that the scanner has not written "+
				"again yet."),
		blocks: in.Counters("statevm_blocks_total", "Blocks committed.", "generation", "partition"),
		undos:  in.Counters("statevm_undos_total", "Reorgs undone.", "generation", "partition"),
		unblocks: in.Counters("statevm_undone_blocks_total",
			"Blocks taken back by reorgs.", "generation", "partition"),
		events: in.Counters("statevm_events_total",
			"Events applied, by what they mean; those of steps that had to be repeated count again.", "event"),
		lost: in.Counters("statevm_fenced_total",
			"Times another process was found to own a partition.", "generation", "partition"),
		differed: in.Counters("statevm_words_differed_total",
			"Words of the exchange's DataStore that an audit found not to be what events had said, by name.", "word"),
		seconds: in.Histogram("statevm_commit_seconds",
			"Time to decode, apply and commit what was read at once.", prometheus.ExponentialBuckets(0.0005, 2, 16)),
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
	m.offset.WithLabelValues(m.labels...).Set(float64(at.Next))
	m.block.WithLabelValues(m.labels...).Set(float64(at.Tip.Number))
	m.blockTime.WithLabelValues(m.labels...).Set(float64(at.Tip.TimeMs) / 1000)
	m.finalized.WithLabelValues(m.labels...).Set(float64(at.Finalized.Number))
}

func (m *partitionMetrics) applied(blocks int, took time.Duration) {
	m.blocks.WithLabelValues(m.labels...).Add(float64(blocks))
	m.seconds.Observe(took.Seconds())
}

func (m *partitionMetrics) undone(blocks uint64) {
	m.undos.WithLabelValues(m.labels...).Inc()
	m.unblocks.WithLabelValues(m.labels...).Add(float64(blocks))
}

func (m *partitionMetrics) counted(steps []step) {
	counts, now := map[reflect.Type]int{}, time.Now()
	for _, s := range steps {
		if s.share == nil {
			continue
		}
		for _, h := range s.share.events {
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

func (m *partitionMetrics) waits(is bool) {
	m.waiting.WithLabelValues(m.labels...).Set(metric.Bool(is))
}

func (m *partitionMetrics) lacks(tail *lostTail) {
	n := 0
	if tail != nil {
		n = len(tail.lacking)
	}
	m.lacking.WithLabelValues(m.labels...).Set(float64(n))
}

// forget drops what is another process's to report from now on.
func (m *partitionMetrics) forget() {
	for _, gauge := range []*prometheus.GaugeVec{m.block, m.finalized, m.blockTime, m.offset, m.halted, m.waiting,
		m.lacking} {
		gauge.DeleteLabelValues(m.labels...)
	}
}
