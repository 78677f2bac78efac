package demo

import (
	"math"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"pgregory.net/rapid"
)

// The bound of a quantile, read off two processes' pages, is that of the bucket in which the quantile of all values
// lies.
func TestSpreadBoundsQuantiles(t *testing.T) {
	bounds := prometheus.ExponentialBuckets(0.01, 2, 5)
	rapid.Check(t, func(t *rapid.T) {
		var s spread
		var values []float64
		for range 2 {
			h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "delay", Help: "-", Buckets: bounds})
			for _, v := range rapid.SliceOfN(rapid.Float64Range(0, 0.3), 0, 20).Draw(t, "values") {
				h.Observe(v)
				values = append(values, v)
			}
			for _, read := range pageOf(t, h).histograms["delay"] {
				s.add(read)
			}
		}
		slices.Sort(values)
		for _, share := range []float64{0.5, 0.99, 1} {
			want := 0.0
			if n := len(values); n > 0 {
				quantile := values[int(math.Ceil(share*float64(n)))-1]
				want = math.Inf(1)
				if at, _ := slices.BinarySearch(bounds, quantile); at < len(bounds) {
					want = bounds[at]
				}
			}
			if got := s.within(share); got != want {
				t.Fatalf("%v of %v is within %v, want %v", share, values, got, want)
			}
		}
	})
}

// pageOf is a histogram as a process shows it.
func pageOf(t *rapid.T, h prometheus.Histogram) metrics {
	registry := prometheus.NewRegistry()
	registry.MustRegister(h)
	page := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	m, err := parseMetrics(page.Body.String())
	if err != nil {
		t.Fatal(err)
	}
	return m
}
