package service_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"perpkeeper/pkg/service"
)

// silent is a collector that has nothing to show before it runs.
type silent struct{ desc *prometheus.Desc }

func (s silent) Describe(ch chan<- *prometheus.Desc) { ch <- s.desc }
func (s silent) Collect(chan<- prometheus.Metric)    {}

func TestCatalogueListsWhatIsRegistered(t *testing.T) {
	rows, err := service.Catalogue(func(reg prometheus.Registerer) {
		auto := promauto.With(reg)
		auto.NewCounter(prometheus.CounterOpts{Name: "c_total", Help: "A counter."})
		auto.NewGauge(prometheus.GaugeOpts{Name: "g", Help: `With "quotes", a | and {braces}.`})
		auto.NewGaugeFunc(prometheus.GaugeOpts{Name: "g_func", Help: "A function.",
			ConstLabels: prometheus.Labels{"fixed": "a,b}"}}, func() float64 { return 1 })
		auto.NewHistogram(prometheus.HistogramOpts{Name: "h_seconds", Help: "A histogram\nin two lines."})
		auto.NewSummary(prometheus.SummaryOpts{Name: "s_seconds", Help: "A summary."})
		auto.NewCounterVec(prometheus.CounterOpts{Name: "cv_total", Help: "Counters."}, []string{"op", "result"})
		auto.NewGaugeVec(prometheus.GaugeOpts{Name: "gv", Help: "Gauges."}, []string{"tier"})
		auto.NewHistogramVec(prometheus.HistogramOpts{Name: "hv_seconds", Help: "Histograms."}, []string{"stage"})
		auto.NewSummaryVec(prometheus.SummaryOpts{Name: "sv_seconds", Help: "Summaries."}, []string{"stage"})
		reg.MustRegister(silent{prometheus.NewDesc("quiet", "A collector of its own.", []string{"x"}, nil)})
	})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := service.WriteCatalogue(&b, rows); err != nil {
		t.Fatal(err)
	}
	want := "| `c_total` | counter |  | A counter. |\n" +
		"| `cv_total` | counter | op, result | Counters. |\n" +
		"| `g` | gauge |  | With \"quotes\", a \\| and {braces}. |\n" +
		"| `g_func` | gauge | fixed | A function. |\n" +
		"| `gv` | gauge | tier | Gauges. |\n" +
		"| `h_seconds` | histogram |  | A histogram in two lines. |\n" +
		"| `hv_seconds` | histogram | stage | Histograms. |\n" +
		"| `quiet` | unknown | x | A collector of its own. |\n" +
		"| `s_seconds` | summary |  | A summary. |\n" +
		"| `sv_seconds` | summary | stage | Summaries. |\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestCatalogueRefusesTheSameNameTwice(t *testing.T) {
	_, err := service.Catalogue(func(reg prometheus.Registerer) {
		for range 2 {
			reg.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "c_total", Help: "A counter."}))
		}
	})
	if _, again := errors.AsType[prometheus.AlreadyRegisteredError](err); !again {
		t.Errorf("got %v", err)
	}
}
