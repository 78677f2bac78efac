package metric_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"perpkeeper/pkg/instrument/metric"
)

// What is made is registered under its name, with its help and its labels; a second one of a name panics.
func TestRegistered(t *testing.T) {
	reg := prometheus.NewRegistry()
	in := metric.In{Registerer: reg}
	in.Counter("c_total", "C.").Inc()
	in.Counters("cs_total", "Cs.", "a", "b").WithLabelValues("x", "y").Add(2)
	in.Gauge("g", "G.").Set(metric.Bool(true))
	in.Gauges("gs", "Gs.", "a").WithLabelValues("x").Set(metric.Bool(false))
	in.Histogram("h", "H.", []float64{1}).Observe(2)
	in.Histograms("hs", "Hs.", []float64{3}, "a").WithLabelValues("x").Observe(2)
	want := `
# HELP c_total C.
# TYPE c_total counter
c_total 1
# HELP cs_total Cs.
# TYPE cs_total counter
cs_total{a="x",b="y"} 2
# HELP g G.
# TYPE g gauge
g 1
# HELP gs Gs.
# TYPE gs gauge
gs{a="x"} 0
# HELP h H.
# TYPE h histogram
h_bucket{le="1"} 0
h_bucket{le="+Inf"} 1
h_sum 2
h_count 1
# HELP hs Hs.
# TYPE hs histogram
hs_bucket{a="x",le="3"} 1
hs_bucket{a="x",le="+Inf"} 1
hs_sum{a="x"} 2
hs_count{a="x"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	metric.In{}.Counter("c_total", "C.").Inc() // of no registry
	defer func() {
		if recover() == nil {
			t.Error("a name was registered twice")
		}
	}()
	in.Counter("c_total", "C.")
}

// What is observed of a job names it as exemplar; an id that no exemplar can hold costs the observation nothing.
func TestExemplarsNameTheJob(t *testing.T) {
	reg := prometheus.NewRegistry()
	h := metric.In{Registerer: reg}.Histogram("h", "H.", []float64{1, 2, 3})
	metric.OfJob(h, 1.5, "liquidation/1")
	metric.OfJob(h, 2.5, strings.Repeat("x", prometheus.ExemplarMaxRunes))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := families[0].GetMetric()[0].GetHistogram()
	named := map[float64]string{}
	for _, b := range got.GetBucket() {
		for _, l := range b.GetExemplar().GetLabel() {
			named[b.GetUpperBound()] = l.GetName() + "=" + l.GetValue()
		}
	}
	if got.GetSampleCount() != 2 || named[2] != "job_id=liquidation/1" || len(named) != 1 {
		t.Errorf("%d observed; exemplars %v", got.GetSampleCount(), slices.Sorted(maps.Values(named)))
	}
}
